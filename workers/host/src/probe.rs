//! Probes of the machine: free space, the price of an fsync, memory in use.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// What one durable write costs on a disk, whatever the software.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FsyncFloor {
    pub p50: Duration,
    pub p99: Duration,
    pub samples: usize,
}

/// Measures a 4 KiB append with `fdatasync`, as the ledger does one for each group commit.
///
/// # Errors
/// The directory cannot be written to.
pub fn fsync_floor(dir: &Path, samples: usize) -> std::io::Result<FsyncFloor> {
    let samples = samples.max(1);
    let path = dir.join(format!(".fsync-probe-{}", std::process::id()));
    let mut file = OpenOptions::new().create(true).write(true).truncate(true).open(&path)?;
    let block = [0x5a_u8; 4096];
    let mut times = Vec::with_capacity(samples);
    let written = (|| {
        for _ in 0..samples {
            let start = Instant::now();
            file.write_all(&block)?;
            file.sync_data()?;
            times.push(start.elapsed());
        }
        Ok(())
    })();
    std::fs::remove_file(&path)?;
    written.map(|()| {
        times.sort_unstable();
        let at = |percent: usize| times[(times.len() - 1) * percent / 100];
        FsyncFloor { p50: at(50), p99: at(99), samples }
    })
}

/// Bytes that this user may still write to the file system of `path`.
///
/// # Errors
/// The path cannot be looked at.
pub fn free_bytes(path: &Path) -> std::io::Result<u64> {
    let stat = rustix::fs::statvfs(path)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Resident memory of a process in bytes; `None` where there is no `/proc`.
pub fn resident_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probes_answer_with_plausible_numbers() {
        let dir = std::env::temp_dir();
        let floor = fsync_floor(&dir, 5).unwrap();
        assert!(floor.p50 > Duration::ZERO && floor.p50 <= floor.p99 && floor.samples == 5);
        assert!(free_bytes(&dir).unwrap() > 0);
        assert!(resident_bytes(std::process::id()).unwrap() > 100_000);
        assert!(fsync_floor(Path::new("/proc/none"), 1).is_err());
    }
}
