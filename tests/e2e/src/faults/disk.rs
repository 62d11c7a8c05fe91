//! Disks that are full, and disks that must not be written.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::refused;
use crate::harness::{Harness, assert_chain, wait};
use crate::outside;

#[tokio::test]
async fn a_full_disk_refuses_and_loses_nothing() {
    // As root, a file system of its own that really fills up; otherwise there is no such disk here.
    // Much larger than the store's log (16 MiB) and file: what is given back later has to be room for both.
    let Some(disk) = SmallDisk::mount("the full disk") else { return };
    let mut fleet = Harness::start_on(TempDir::new().unwrap(), disk.path().join("data"), &[]).await;
    fleet.create("full", json!({ "moniker": "echo" })).await;
    let ballast = disk.path().join("ballast");
    let text = "x".repeat(64 << 10);
    let mut accepted = 0;
    // Inputs until there is no room; the ballast takes what the fleet leaves.
    let refusal = loop {
        let answer = fleet
            .post("/api/actions", &json!({ "type": "input", "session_id": "full", "payload": { "text": text } }))
            .await;
        if !answer.status.is_success() {
            break answer;
        }
        accepted += 1;
        fill(&ballast);
        assert!(accepted < 2_000, "the disk does not fill up");
    };
    assert_eq!((refusal.status.as_u16(), &refusal.body["code"]), (507, &json!("storage_full")), "{}", refusal.body);
    std::fs::remove_file(&ballast).unwrap();
    wait("there is room again", || async {
        let answer = fleet
            .post("/api/actions", &json!({ "type": "input", "session_id": "full", "payload": { "text": "last" } }))
            .await;
        answer.status.is_success().then_some(())
    })
    .await;
    let steps = fleet.wait_steps("full", accepted + 1).await;
    assert_chain(&steps);
    assert_eq!(steps.len(), accepted + 1, "what was accepted came out, what was refused did not");
    assert_eq!(steps.last().unwrap()["text"], "last");
    // The archive missed nothing, either.
    fleet.wait_archived().await;
    let committed = outside::committed(&fleet, &["full"]).await;
    assert_eq!(committed["full"], steps.len() as u64);
    outside::assert_gapless(&fleet.data_dir.join("history"), &committed).await;
    // The doctor wants a disk with more room than this one has had.
    disk.remount("size=600m");
    let (ok, out, err) = fleet.cli(&["doctor", "--verify-history", "--json"]).await;
    assert!(ok, "{out}{err}");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((&report["well"], &report["history"]["broken"]), (&json!(true), &json!(0)), "{report}");
    assert_eq!(report["history"]["steps"], json!(steps.len()), "{report}");
    fleet.kill();
}

#[tokio::test]
async fn a_read_only_disk_is_named_with_the_remedy_and_nothing_is_lost() {
    let Some(disk) = SmallDisk::mount("the read-only disk") else { return };
    let data = disk.path().join("data");
    let mut fleet = Harness::start_on(TempDir::new().unwrap(), data.clone(), &[]).await;
    fleet.create("before", json!({ "moniker": "count", "config": { "until": 50 } })).await;
    fleet.wait_status("before", "completed").await;
    assert!(fleet.stop().await.success(), "{}", fleet.log());
    disk.remount("ro");
    let cwd = TempDir::new().unwrap();
    let error = refused(cwd.path(), &data).await;
    let named = format!("cannot write to the data directory {}", data.display());
    for part in [named.as_str(), "Read-only file system", "make it writable", "--data-dir"] {
        assert!(error.contains(part), "{part:?} is not in: {error}");
    }
    let other = disk.path().join("other");
    let error = refused(cwd.path(), &other).await;
    let named = format!("cannot create the data directory {}", other.display());
    for part in [named.as_str(), "Read-only file system", "choose another one with --data-dir"] {
        assert!(error.contains(part), "{part:?} is not in: {error}");
    }
    let (ok, out, _) = fleet.cli(&["doctor"]).await;
    let ledger = data.join("ledger.db").display().to_string();
    assert!(!ok && out.contains(&ledger) && out.contains("may write there"), "{out}");
    // Writable again, it is as it was, and goes on.
    disk.remount("rw");
    fleet.up().await;
    assert_eq!(fleet.status("before").await, "completed");
    let steps = fleet.steps("before").await;
    assert_chain(&steps);
    assert_eq!(steps.len(), 50);
    fleet.create("after", json!({ "moniker": "count", "config": { "until": 5 } })).await;
    fleet.wait_status("after", "completed").await;
    fleet.kill();
}

/// Takes the rest of the disk but for about a megabyte.
fn fill(ballast: &Path) {
    let space = Command::new("df").args(["--output=avail", "-k"]).arg(ballast.parent().unwrap()).output().unwrap();
    let text = String::from_utf8_lossy(&space.stdout);
    let free: u64 = text.lines().nth(1).and_then(|line| line.trim().parse().ok()).unwrap_or(0);
    let have = std::fs::metadata(ballast).map_or(0, |meta| meta.len());
    if free > 2_048 {
        let size = have + (free - 1_024) * 1_024;
        Command::new("fallocate").arg("-l").arg(size.to_string()).arg(ballast).status().unwrap();
    }
}

/// A tmpfs of 96 megabytes.
struct SmallDisk(TempDir);

impl SmallDisk {
    /// `None` where nothing can be mounted, which is said: `what` is not tested then.
    fn mount(what: &str) -> Option<Self> {
        let dir = TempDir::new().unwrap();
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=96m", "tmpfs"])
            .arg(dir.path())
            .stderr(Stdio::null())
            .status();
        if status.is_ok_and(|status| status.success()) {
            return Some(Self(dir));
        }
        // Not with a macro: what those print of a test that succeeds is shown to nobody.
        let text = format!("not root, or no tmpfs: {what} is tested where tests run as root\n");
        drop(std::io::stderr().write_all(text.as_bytes()));
        None
    }

    fn remount(&self, options: &str) {
        let options = format!("remount,{options}");
        let status = Command::new("mount").args(["-o", &options]).arg(self.path()).status().expect("mount");
        assert!(status.success(), "mount -o {options} {}", self.path().display());
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(self.0.path()).status());
    }
}
