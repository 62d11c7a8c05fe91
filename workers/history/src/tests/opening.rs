//! What does not open says why and what to do, and is left as it was.

use std::fs;
use std::path::Path;

use super::*;
use crate::OpenError;

async fn refused(path: &Path) -> OpenError {
    match LanceArchive::open(path.to_str().expect("a text"), OpenOptions::default()).await {
        Ok(_) => panic!("{} should not open", path.display()),
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains(&path.display().to_string()) && text.contains(';'), "names place and remedy: {text}");
            error
        }
    }
}

#[tokio::test]
async fn a_directory_of_something_else_is_left_alone() {
    let dir = TempDir::new().expect("a directory");
    fs::write(dir.path().join("thesis.txt"), "precious").expect("a file");
    assert!(matches!(refused(dir.path()).await, OpenError::Foreign(_)));
    let names: Vec<_> = fs::read_dir(dir.path()).expect("a listing").collect();
    assert_eq!(names.len(), 1, "nothing was written");
}

#[tokio::test]
async fn a_place_that_is_no_directory_is_refused() {
    let dir = TempDir::new().expect("a directory");
    let file = dir.path().join("file");
    fs::write(&file, "x").expect("a file");
    assert!(matches!(refused(&file).await, OpenError::Unusable { .. }));
    assert!(matches!(refused(&file.join("below")).await, OpenError::Unusable { .. }));
    assert_eq!(fs::read_to_string(&file).expect("still there"), "x");
}

#[tokio::test]
async fn a_marker_of_another_kind_is_refused() {
    let dir = TempDir::new().expect("a directory");
    let marker = dir.path().join("stepfleet-history.json");
    fs::write(&marker, "{\"format\": 99}").expect("a file");
    assert!(matches!(refused(dir.path()).await, OpenError::Newer { found: 99, .. }));
    fs::write(&marker, "hello").expect("a file");
    assert!(matches!(refused(dir.path()).await, OpenError::Foreign(_)));
}

#[tokio::test]
async fn nothing_is_created_unless_asked() {
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join("none");
    let options = OpenOptions { create: false, ..OpenOptions::default() };
    let opened = LanceArchive::open(path.to_str().expect("a text"), options.clone()).await;
    assert!(matches!(opened.err(), Some(OpenError::Missing(_))));
    assert!(!path.exists());
    // An archive that is there opens so, and can be read.
    let (mut author, a1) = (Author::new(0), key("a1"));
    append(&open(&dir, OpenOptions::default()).await, &[author.commit(&a1, 2)]).await;
    assert_eq!(steps_of(&open(&dir, options).await, &a1).await.len(), 2);
}

#[tokio::test]
async fn uris_of_no_place_are_refused() {
    for uri in ["", "ftp://host/x", "file://relative", "s3://", "s3:///x", "s3://me:hush@host/x", "s3://b/x?y=z"] {
        let opened = LanceArchive::open(uri, OpenOptions::default()).await;
        let error = opened.err().unwrap_or_else(|| panic!("{uri} should not open"));
        assert!(matches!(error, OpenError::Uri(_)) && !error.to_string().contains("hush"), "{uri}: {error}");
    }
    let dir = TempDir::new().expect("a directory");
    let uri = format!("file://{}", dir.path().join("fine").display());
    LanceArchive::open(&uri, OpenOptions::default()).await.expect("a file URI of a directory");
}

#[tokio::test]
async fn a_damaged_table_is_never_replaced_by_an_empty_one() {
    let (mut author, a1) = (Author::new(0), key("a1"));
    let rows = [author.commit(&a1, 2)];
    for damage in ["no versions", "empty manifest", "garbage manifest"] {
        let dir = TempDir::new().expect("a directory");
        append(&open(&dir, OpenOptions::default()).await, &rows).await;
        let path = dir.path().join("history with blanks");
        let versions = path.join("agent_steps.lance/_versions");
        for entry in fs::read_dir(&versions).expect("a listing") {
            let file = entry.expect("an entry").path();
            match damage {
                "no versions" => fs::remove_file(file),
                "empty manifest" => fs::write(file, ""),
                _ => fs::write(file, "garbage ".repeat(100)),
            }
            .expect("damage");
        }
        let error = refused(&path).await;
        assert!(matches!(error, OpenError::Damaged { table: "agent_steps", .. }), "{damage}: {error}");
    }
}

#[tokio::test]
async fn any_number_of_processes_may_create_the_archive_at_once() {
    for _ in 0..10 {
        let dir = TempDir::new().expect("a directory");
        let opened = futures::future::join_all((0..8).map(|_| open(&dir, OpenOptions::default()))).await;
        for archive in opened {
            // A second version would be an empty table in the place of the first, and of its rows.
            let steps = archive.0.steps.newest().await.expect("a table of steps");
            let events = archive.0.events.newest().await.expect("a table of events");
            assert_eq!([steps.version().version, events.version().version], [1, 1]);
        }
    }
}
