//! What `up` says once it is ready.

use std::fmt::Write;
use std::path::Path;

/// What the banner tells.
pub struct Banner<'a> {
    pub base: &'a str,
    pub token: &'a str,
    pub token_file: &'a Path,
    pub data_dir: &'a Path,
    /// In words, from the performer.
    pub provider: &'a str,
}

impl Banner<'_> {
    pub fn text(&self) -> String {
        let Self { base, token, provider, .. } = self;
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

A first request, a digest of the text files in a folder:

  curl -sS {base}/api/actions -H \"authorization: bearer $(cat {file})\" \\
    -d '{{\"type\":\"create\",\"payload\":{{\"moniker\":\"digest\",\"config\":{{\"paths\":[\"/usr/share/doc\"],\"glob\":\"**/README*\"}}}}}}'

And one that goes on until it is stopped:

  stepfleet create tell_a_joke --session jokes --state '{{\"subject\":\"cats\"}}'
  stepfleet tail jokes

Ctrl-C stops it; everything goes on where it was at the next start.
",
            version = env!("CARGO_PKG_VERSION"),
            file = self.token_file.display(),
            data = self.data_dir.display(),
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_banner_has_what_one_needs_to_start() {
        let banner = Banner {
            base: "http://127.0.0.1:7070",
            token: "sf_x",
            token_file: Path::new("d/token"),
            data_dir: Path::new("d"),
            provider: "scripted (built in)",
        };
        let text = banner.text();
        for part in
            ["http://127.0.0.1:7070/#token=sf_x", "$(cat d/token)", "\"moniker\":\"digest\"", "scripted (built in)"]
        {
            assert!(text.contains(part), "{part}");
        }
    }
}
