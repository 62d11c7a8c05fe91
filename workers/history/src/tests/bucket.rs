//! The archive in a bucket, on a server of the S3 protocol (`ops/s3`).

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::*;
use crate::{OpenError, S3Settings};

/// The variables to reach the server, which lives as long as this process.
fn variables() -> &'static [(String, String)] {
    static SERVER: OnceLock<Vec<(String, String)>> = OnceLock::new();
    SERVER.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ops/s3");
        let (me, scratch) = (std::process::id().to_string(), std::env::temp_dir());
        let dir = scratch.join(format!("stepfleet-s3-{me}"));
        let started = Command::new(script).arg("up").arg(&dir).args(["--parent", &me]).status();
        assert!(started.expect("a shell").success(), "ops/s3 says why");
        let text = std::fs::read_to_string(dir.join("s3.env")).expect("its settings");
        let variable = |line: &str| {
            let (name, value) = line.strip_prefix("export ")?.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        };
        text.lines().filter_map(variable).collect()
    })
}

fn options() -> OpenOptions {
    OpenOptions { s3: S3Settings::of(variables().iter().cloned()), ..OpenOptions::default() }
}

/// A place that no other test uses.
fn fresh(bucket: &str) -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    format!("s3://{bucket}/place-{}/history", NEXT.fetch_add(1, Ordering::Relaxed))
}

async fn refused(uri: &str, options: OpenOptions) -> OpenError {
    match LanceArchive::open(uri, options).await {
        Ok(_) => panic!("{uri} should not open"),
        Err(error) => {
            let text = error.to_string();
            for (name, value) in variables().iter().filter(|(name, _)| name.contains("KEY")) {
                assert!(!text.contains(value), "{name} is in: {text}");
            }
            assert!(text.contains(uri) && text.contains(';'), "names place and remedy: {text}");
            error
        }
    }
}

#[tokio::test]
async fn a_bucket_keeps_the_contract() {
    suite(&async || {
        let archive = LanceArchive::open(&fresh("stepfleet"), options()).await.expect("it opens");
        Arc::new(archive) as Arc<dyn Archive>
    })
    .await;
}

#[tokio::test]
async fn two_writers_in_a_race_leave_every_row_once() {
    super::writers::race(&fresh("stepfleet"), &options(), 6).await;
}

#[tokio::test]
async fn upkeep_prunes_in_a_bucket_too() {
    let (uri, options) = (fresh("stepfleet"), OpenOptions { keep_versions: Duration::ZERO, ..options() });
    let archive = LanceArchive::open(&uri, options.clone()).await.expect("it opens");
    let (mut author, a1) = (Author::new(0), key("a1"));
    let rows = journal(&mut author, &a1, 80);
    for row in &rows {
        append(&archive, std::slice::from_ref(row)).await;
    }
    archive.maintain().await.expect("upkeep");
    let dataset = archive.0.steps.newest().await.expect("a table");
    assert!(dataset.get_fragments().len() < 10);
    assert!(dataset.versions().await.expect("a read").len() < 5);
    drop(archive);
    let archive = LanceArchive::open(&uri, OpenOptions { create: false, ..options }).await.expect("it opens");
    assert_eq!(archive.watermarks().await.expect("a read"), [(schemas::id::Shard(0), 80)].into());
    let steps: usize = rows.iter().map(|row| row.entry.steps.len()).sum();
    assert_eq!(iterations(&steps_of(&archive, &a1).await), (0..steps as u64).collect::<Vec<_>>());
}

#[tokio::test]
async fn any_number_of_processes_may_create_the_archive_at_once() {
    let uri = fresh("stepfleet");
    let opened = futures::future::join_all((0..6).map(|_| LanceArchive::open(&uri, options()))).await;
    for archive in opened {
        archive.expect("it opens");
    }
}

#[tokio::test]
async fn storage_that_ignores_conditions_is_refused() {
    let error = refused(&fresh("careless"), options()).await;
    assert!(matches!(error, OpenError::Unconditional(_)), "{error}");
}

#[tokio::test]
async fn what_is_not_there_is_said_and_may_come() {
    let error = refused(&fresh("nowhere"), options()).await;
    assert!(matches!(error, OpenError::Away { .. }) && error.may_pass(), "{error}");
    let error = refused(&fresh("stepfleet"), OpenOptions { create: false, ..options() }).await;
    assert!(matches!(error, OpenError::Missing(_)) && error.may_pass(), "{error}");
}

#[tokio::test]
async fn a_bucket_of_something_else_is_left_alone() {
    let uri = fresh("stepfleet");
    let store = options().s3.store("stepfleet").expect("a store");
    let thesis = object_store::path::Path::parse(uri.replace("s3://stepfleet/", "")).expect("a path").join("thesis");
    object_store::ObjectStoreExt::put(&*store, &thesis, "precious".into()).await.expect("an object");
    for create in [true, false] {
        let error = refused(&uri, OpenOptions { create, ..options() }).await;
        assert!(matches!(error, OpenError::Foreign(_)) && !error.may_pass(), "{error}");
    }
}
