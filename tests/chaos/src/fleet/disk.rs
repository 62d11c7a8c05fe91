//! A small disk for the history, that can be filled: a file system in memory, where root may mount
//! one.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// What an attempt to fill it leaves free: more each time, because the fleet writes meanwhile.
/// Never so much that it would not be full soon.
const LEFT_KIB: [u64; 4] = [16, 64, 256, 1_024];

pub struct Disk {
    dir: PathBuf,
}

impl Disk {
    /// None where nobody may mount.
    pub fn mount(dir: &Path, megabytes: u64) -> Option<Self> {
        std::fs::create_dir_all(dir).ok()?;
        let size = format!("size={megabytes}m");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(dir).stderr(Stdio::null());
        mount.status().is_ok_and(|status| status.success()).then(|| Self { dir: dir.to_owned() })
    }

    /// Takes all room but for a few pages.
    ///
    /// # Errors
    /// The room cannot be taken.
    pub fn fill(&self) -> Result<()> {
        for left_kib in LEFT_KIB {
            let space = Command::new("df").args(["--output=avail", "-k"]).arg(&self.dir).output()?;
            let text = String::from_utf8_lossy(&space.stdout).into_owned();
            let free: u64 = text.lines().nth(1).and_then(|line| line.trim().parse().ok()).context("the free space")?;
            let have = std::fs::metadata(self.ballast()).map_or(0, |meta| meta.len() / 1_024);
            if free <= left_kib {
                return Ok(());
            }
            let size = format!("{}K", have + free - left_kib);
            let status = Command::new("fallocate").args(["-l", &size]).arg(self.ballast()).status()?;
            // The fleet writes at the same time, and soon takes what is left.
            if status.success() {
                return Ok(());
            }
        }
        bail!("the disk at {} cannot be filled", self.dir.display())
    }

    /// # Errors
    /// The ballast cannot be removed.
    pub fn free(&self) -> Result<()> {
        match std::fs::remove_file(self.ballast()) {
            // It was full of history alone.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed.context("the ballast"),
        }
    }

    fn ballast(&self) -> PathBuf {
        self.dir.join("ballast")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(&self.dir).status());
    }
}
