//! Files that `up` leaves in the data directory for the other commands.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The admin token of namespace `default`, readable by its owner only.
pub const TOKEN_FILE: &str = "token";
/// Where the running fleet listens.
pub const ADDRESS_FILE: &str = "address";

/// Replaces a file whole, with mode 0600: a reader finds the old text or the new one.
pub fn write_private(dir: &Path, name: &str, text: &str) -> std::io::Result<()> {
    let scratch = dir.join(format!(".{name}.new"));
    let mut file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&scratch)?;
    writeln!(file, "{text}")?;
    file.sync_all()?;
    fs::rename(&scratch, dir.join(name))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_written_is_private_and_replaces_the_old() {
        let dir = std::env::temp_dir().join(format!("stepfleet-files-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        write_private(&dir, "token", "one").unwrap();
        write_private(&dir, "token", "two").unwrap();
        assert_eq!(fs::read_to_string(dir.join("token")).unwrap(), "two\n");
        assert_eq!(fs::metadata(dir.join("token")).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        fs::remove_dir_all(&dir).unwrap();
    }
}
