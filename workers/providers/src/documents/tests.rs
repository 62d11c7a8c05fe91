//! Documents of folders and files, in order, within bounds.

use std::fs;
use std::path::Path;

use super::*;
use crate::fake_server::{FakeServer, Say};

struct Corpus {
    folder: tempfile::TempDir,
}

impl Corpus {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, text).expect("written");
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_string_lossy().into_owned()
    }

    fn root(&self) -> String {
        self.folder.path().to_string_lossy().into_owned()
    }
}

async fn next(documents: &Documents, paths: &[String], glob: Option<&str>, after: Option<&str>) -> Value {
    let net = Net::new(true).expect("a client");
    match documents.next(&net, paths, glob, after).await.json() {
        Ok(value) => value.clone(),
        Err(failure) => json!({"failed": failure.message, "code": failure.code.as_str()}),
    }
}

/// All documents, each with its text or the reason why it has none.
async fn all(documents: &Documents, paths: &[String], glob: Option<&str>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let value = next(documents, paths, glob, after.as_deref()).await;
        if value["done"] == true {
            assert_eq!(value["total"], found.len());
            return found;
        }
        let name = value["name"].as_str().unwrap_or_else(|| panic!("{value}")).to_owned();
        assert_eq!(value["index"], found.len() + 1);
        let said = value.get("text").or(value.get("skipped")).and_then(Value::as_str).unwrap_or("").to_owned();
        found.push((name.clone(), said));
        after = Some(name);
    }
}

fn free() -> Documents {
    Documents::new(None).expect("valid")
}

#[tokio::test]
async fn folders_are_read_in_path_order() {
    let corpus = Corpus::new(&[
        ("b.md", "bee"),
        ("a/z.txt", "zed"),
        ("a/b/c.md", "see"),
        (".git/x.md", "no"),
        ("a/.h.md", "no"),
        ("a.md", "ay"),
    ]);
    let names: Vec<String> = all(&free(), &[corpus.root()], None).await.into_iter().map(|(name, _)| name).collect();
    let expected = ["a.md", "a/b/c.md", "a/z.txt", "b.md"].map(|name| corpus.path(name));
    assert_eq!(names, expected);
    let some = all(&free(), &[corpus.path("b.md"), corpus.path("a")], Some("*.md")).await;
    assert_eq!(some, [(corpus.path("a/b/c.md"), "see".to_owned()), (corpus.path("b.md"), "bee".to_owned())]);
}

#[tokio::test]
async fn the_cursor_holds_when_files_come_and_go() {
    let corpus = Corpus::new(&[("a.md", "a"), ("c.md", "c"), ("e.md", "e")]);
    let paths = [corpus.root()];
    fs::remove_file(corpus.path("c.md")).expect("removed");
    fs::write(corpus.path("b.md"), "b").expect("written");
    let value = next(&free(), &paths, None, Some(&corpus.path("a.md"))).await;
    assert_eq!(value["name"], corpus.path("b.md"));
    let value = next(&free(), &paths, None, Some(&corpus.path("c.md"))).await;
    assert_eq!(value["name"], corpus.path("e.md"), "the cursor's own file is gone, what follows is not");
    let value = next(&free(), &paths, None, Some(&corpus.path("z"))).await;
    assert_eq!(value["done"], true);
}

#[tokio::test]
async fn a_file_that_vanishes_after_the_listing_is_skipped() {
    let corpus = Corpus::new(&[("a.md", "a"), ("b.md", "b")]);
    let (documents, paths) = (free(), [corpus.root()]);
    next(&documents, &paths, None, None).await;
    fs::remove_file(corpus.path("b.md")).expect("removed");
    let value = next(&documents, &paths, None, Some(&corpus.path("a.md"))).await;
    assert_eq!((&value["name"], &value["skipped"]), (&json!(corpus.path("b.md")), &json!("it does not exist")));
}

#[tokio::test(start_paused = true)]
async fn listings_are_renewed() {
    let corpus = Corpus::new(&[("a.md", "a")]);
    let (documents, paths) = (free(), [corpus.root()]);
    assert_eq!(all(&documents, &paths, None).await.len(), 1);
    fs::write(corpus.path("b.md"), "b").expect("written");
    tokio::time::advance(Duration::from_millis(LISTING_MS + 1)).await;
    assert_eq!(all(&documents, &paths, None).await.len(), 2);
}

#[tokio::test]
async fn unreadable_documents_are_told_with_the_reason() {
    let corpus = Corpus::new(&[("a.bin", "x\0y"), ("b.txt", ""), ("c.txt", "fine")]);
    let found = all(&free(), &[corpus.root()], None).await;
    let said: Vec<&str> = found.iter().map(|(_, said)| said.as_str()).collect();
    assert_eq!(said, ["it is binary", "it is empty", "fine"]);
}

#[tokio::test]
async fn a_huge_file_is_cut() {
    let corpus = Corpus::new(&[("a.txt", &"word ".repeat(DOCUMENT_BYTES_MAX / 5 + 100))]);
    let value = next(&free(), &[corpus.root()], None, None).await;
    assert_eq!(value["truncated"], true);
    assert!(value["text"].as_str().is_some_and(|text| text.len() <= DOCUMENT_BYTES_MAX));
    assert_eq!(value["bytes"], 5 * (DOCUMENT_BYTES_MAX / 5 + 100));
}

#[tokio::test]
async fn a_path_that_is_not_there_fails_the_corpus() {
    let value = next(&free(), &["/no/such/place".to_owned()], None, None).await;
    assert_eq!(
        (value["code"].as_str(), value["failed"].as_str()),
        (Some("read_failed"), Some("payload.config.paths[0]: /no/such/place: it does not exist"))
    );
    let value = next(&free(), &["/dev/null".to_owned()], None, None).await;
    assert!(value["failed"].as_str().is_some_and(|said| said.contains("neither a file nor a folder")), "{value}");
    let corpus = Corpus::new(&[("a.md", "a")]);
    let value = next(&free(), &[corpus.root()], Some("[a"), None).await;
    assert!(value["failed"].as_str().is_some_and(|said| said.contains("payload.config.glob")), "{value}");
}

fn link(to: &Path, from: &Path) {
    std::os::unix::fs::symlink(to, from).expect("linked");
}

#[tokio::test]
async fn links_do_not_lead_out() {
    let corpus = Corpus::new(&[("in/a.md", "inside"), ("out/secret.md", "secret"), ("out/deep/more.md", "secret")]);
    let at = |name: &str| corpus.folder.path().join(name);
    link(&at("out/secret.md"), &at("in/link.md"));
    link(&at("in/a.md"), &at("in/same.md"));
    link(&at("out/deep"), &at("in/folder"));
    link(&at("in"), &at("in/loop"));
    let documents = Documents::new(Some(&[at("in")])).expect("valid");
    let found = all(&documents, &[corpus.path("in")], None).await;
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0].1, "inside");
    assert!(found[1].1.contains("outside the folders"), "{found:?}");
    for path in ["out", "out/secret.md", "in/../out/secret.md", "in/folder"] {
        let value = next(&documents, &[corpus.path(path)], None, None).await;
        assert!(value["failed"].as_str().is_some_and(|said| said.contains("outside the folders")), "{path}: {value}");
    }
    let free = all(&free(), &[corpus.path("in")], None).await;
    assert_eq!(free.iter().filter(|(_, text)| text == "secret").count(), 1, "{free:?}");
}

#[tokio::test]
async fn pages_are_read_and_bad_ones_skipped() {
    let page = "<html><body><h1>T</h1><p>Words.</p></body></html>".to_owned();
    let server = FakeServer::start(vec![
        Say::Answer(200, "content-type: text/html\r\n", page),
        Say::Answer(404, "", "gone".to_owned()),
    ])
    .await;
    let paths = [format!("{}/a?key=hidden", server.url), format!("{}/b", server.url)];
    let found = all(&free(), &paths, None).await;
    assert_eq!(found[0].1.trim(), "# T\n\nWords.");
    assert!(found[1].1.contains("status 404"), "{found:?}");
}

#[tokio::test]
async fn redirects_to_private_addresses_are_refused() {
    let server = FakeServer::start(vec![Say::Answer(200, "", "private words".to_owned())]).await;
    let net = Net::new(false).expect("a client");
    let outcome = free().next(&net, &[format!("{}/a", server.url)], None, None).await;
    let Outcome::Ok(value) = outcome else { panic!("{outcome:?}") };
    assert!(value["skipped"].as_str().is_some_and(|said| said.contains("STEPFLEET_ALLOW_PRIVATE")), "{value}");
    assert!(server.requests().is_empty());
}
