//! The folder of a program: made for it, held to a size, and removed with all that the program left.

use std::fs::DirEntry;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use schemas::limits::CODE_FILES_BYTES_MAX;

/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// What a file takes beside its content, so that many empty ones are not free.
const FILE_BYTES: u64 = 4 << 10;
/// Of `st_blocks`.
const BLOCK_BYTES: u64 = 512;

/// It goes with its handle.
pub struct Folder(PathBuf);

impl Folder {
    /// A new one with one file in it.
    ///
    /// # Errors
    /// When it cannot be made or written to.
    pub fn with(file: &str, content: &str) -> std::io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("stepfleet-code-{}-{number}", std::process::id()));
        // What a process of the same number left behind is not ours to run in.
        if path.exists() {
            std::fs::remove_dir_all(&path)?;
        }
        std::fs::create_dir(&path)?;
        let folder = Self(path);
        std::fs::write(folder.path().join(file), content)?;
        Ok(folder)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Ends when the program keeps more than it may: in its folder, or in files that it has removed and holds open.
    pub async fn filled(&self, program: Option<u32>) {
        loop {
            tokio::time::sleep(LOOK).await;
            let path = self.0.clone();
            let is_filled = move || {
                let removed = program.map_or(0, bytes_removed_of);
                removed > CODE_FILES_BYTES_MAX || is_filled(path, CODE_FILES_BYTES_MAX - removed)
            };
            if tokio::task::spawn_blocking(is_filled).await.unwrap_or_default() {
                return;
            }
        }
    }
}

/// What a process keeps of the disk in files that have no name any more. A system without `/proc` does not say.
fn bytes_removed_of(process: u32) -> u64 {
    let open = std::fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let files = open.filter_map(|entry| std::fs::metadata(entry.path()).ok());
    files.filter(|file| file.is_file() && file.nlink() == 0).map(|file| file.blocks() * BLOCK_BYTES).sum()
}

/// Whether files below a folder take more than so many bytes of the disk.
fn is_filled(folder: PathBuf, bytes: u64) -> bool {
    let (mut folders, mut used) = (vec![folder], 0);
    while let Some(folder) = folders.pop() {
        // What cannot be read was just removed, or is gone with its program.
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            used += size_of(&entry);
            if used > bytes {
                return true;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    false
}

/// A link counts as itself.
fn size_of(entry: &DirEntry) -> u64 {
    FILE_BYTES + entry.metadata().map_or(0, |file| file.blocks() * BLOCK_BYTES)
}

impl Drop for Folder {
    fn drop(&mut self) {
        let left = Left(std::mem::take(&mut self.0));
        // A program may leave much, and this may be a thread that others wait for.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            drop(runtime.spawn_blocking(move || drop(left)));
        }
    }
}

/// What a program left, removed wherever this is dropped: also by a runtime that ends and starts nothing more.
struct Left(PathBuf);

impl Drop for Left {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(folder = %self.0.display(), %error, "a folder of a program was left behind");
        }
    }
}
