//! What `up` says once it is ready.

use std::ffi::OsStr;
use std::fmt::Write;
use std::path::Path;

/// The name of the binary, as it is installed.
const NAME: &str = "stepfleet";

/// What the banner tells.
pub struct Banner<'a> {
    pub base: &'a str,
    pub token: &'a str,
    /// Absolute, as is the data directory.
    pub token_file: &'a Path,
    pub data_dir: &'a Path,
    /// What to type in a shell for this very binary.
    pub program: &'a str,
    /// In words, from the performer.
    pub provider: &'a str,
    /// An agent that one can talk to at once.
    pub guide: Option<&'a str>,
}

impl Banner<'_> {
    pub fn text(&self) -> String {
        let Self { base, token, provider, .. } = self;
        // From any directory: the commands find address and token in the data directory.
        let program = format!("{} --data-dir {}", self.program, quoted(&self.data_dir.display().to_string()));
        let talk = self.guide.map_or_else(String::new, |guide| {
            format!(
                "
Talk to {guide}, an agent that explains Stepfleet and remembers what it is told:

  {program} say hello 'What can you do?' --with {guide}

or in the console, with one click:

  {base}/#token={token}&conversations
"
            )
        });
        let mut text = String::new();
        // Writing to a String cannot fail.
        _ = write!(
            text,
            "
Stepfleet {version} is up.

  console   {base}/#token={token}
  API       {base}/api  ({base}/openapi.json)
  token     {file}  (Authorization: Bearer)
  data      {data}
  models    {provider}
{talk}
A request that needs no model, a digest of the text files in a folder:

  curl -sS {base}/api/actions -H \"authorization: bearer $(cat {quoted_file})\" \\
    -d '{{\"type\":\"create\",\"payload\":{{\"moniker\":\"digest\",\"config\":{{\"paths\":[\"/usr/share/doc\"],\"glob\":\"**/README*\"}}}}}}'

And one that goes on until it is stopped:

  {program} create tell_a_joke --session jokes --state '{{\"subject\":\"cats\"}}'
  {program} tail jokes

Ctrl-C stops it; everything goes on where it was at the next start.
",
            version = env!("CARGO_PKG_VERSION"),
            file = self.token_file.display(),
            quoted_file = quoted(&self.token_file.display().to_string()),
            data = self.data_dir.display(),
        );
        text
    }
}

/// What to type in a shell for this very binary: its name if that is enough, else its path.
pub fn program() -> String {
    match std::env::current_exe() {
        Ok(own) => called(NAME, &own, &std::env::var_os("PATH").unwrap_or_default()),
        Err(_) => NAME.to_owned(),
    }
}

fn called(name: &str, own: &Path, search: &OsStr) -> String {
    let found = std::env::split_paths(search).map(|folder| folder.join(name)).find(|file| file.is_file());
    let is_own = |file: &Path| file.canonicalize().ok() == Some(own.canonicalize().unwrap_or_else(|_| own.into()));
    if found.is_some_and(|file| is_own(&file)) { name.to_owned() } else { quoted(&own.display().to_string()) }
}

/// A word of a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+');
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_banner_has_what_one_needs_to_start() {
        let banner = Banner {
            base: "http://127.0.0.1:7070",
            token: "sf_x",
            token_file: Path::new("/a fleet/token"),
            data_dir: Path::new("/a fleet"),
            program: "/opt/fleet/stepfleet",
            provider: "scripted (built in)",
            guide: Some("guide"),
        };
        let text = banner.text();
        for part in [
            "http://127.0.0.1:7070/#token=sf_x",
            "$(cat '/a fleet/token')",
            "\"moniker\":\"digest\"",
            "scripted (built in)",
            "  /opt/fleet/stepfleet --data-dir '/a fleet' say hello 'What can you do?' --with guide\n",
            "  http://127.0.0.1:7070/#token=sf_x&conversations\n",
            "  /opt/fleet/stepfleet --data-dir '/a fleet' create tell_a_joke --session jokes --state '{\"subject\":\"cats\"}'\n",
            "  /opt/fleet/stepfleet --data-dir '/a fleet' tail jokes\n",
        ] {
            assert!(text.contains(part), "{part}");
        }
        let without = Banner { guide: None, ..banner }.text();
        assert!(!without.contains("Talk to") && without.contains("scripted (built in)\n\nA request"), "{without}");
    }

    #[test]
    fn commands_are_told_as_they_can_be_typed() {
        let own = std::env::current_exe().unwrap();
        let (folder, name) = (own.parent().unwrap(), own.file_name().unwrap().to_str().unwrap());
        let path = quoted(&own.display().to_string());
        assert_eq!(called(name, &own, folder.as_os_str()), name);
        assert_eq!(called(name, &own, OsStr::new("/nowhere")), path);
        assert_eq!(called("sh", &own, OsStr::new("/nowhere:/bin")), path, "that is another file");
        assert_eq!(quoted("/my fleet's/stepfleet"), r"'/my fleet'\''s/stepfleet'");
    }
}
