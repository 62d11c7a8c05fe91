//! The main job: a folder of documents, one a step, and at the end the digest of them all.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Harness, assert_chain};

struct Document {
    /// Below the folder.
    name: &'static str,
    title: &'static str,
    text: &'static str,
}

const fn document(name: &'static str, title: &'static str, text: &'static str) -> Document {
    Document { name, title, text }
}

/// In the order of their names, which is the order of the steps.
static DOCUMENTS: [Document; 12] = [
    document("bees.md", "A Winter in the Hive", include_str!("digest/texts/bees.md")),
    document("bread.md", "What Happens in Dough", include_str!("digest/texts/bread.md")),
    document("bridges.md", "Why Bridges Are Closed at Night", include_str!("digest/texts/bridges.md")),
    document("clocks.txt", "The Clock in the Tower", include_str!("digest/texts/clocks.txt")),
    document("glass.md", "Glass From the Beach", include_str!("digest/texts/glass.md")),
    document("ice.md", "Harvesting Ice", include_str!("digest/texts/ice.md")),
    document("land/compost.md", "The Warm Heap", include_str!("digest/texts/land/compost.md")),
    document("land/wells.md", "Digging a Well", include_str!("digest/texts/land/wells.md")),
    document("maps.md", "Measuring a Country", include_str!("digest/texts/maps.md")),
    document("salt.html", "The Salt Garden", include_str!("digest/texts/salt.html")),
    document("tides.md", "Two Tides a Day", include_str!("digest/texts/tides.md")),
    document("wool.md", "From Fleece to Thread", include_str!("digest/texts/wool.md")),
];
/// Binary, and the last of all names.
const UNREADABLE: &str = "zebra.png";
/// Sentences per document, unless the session says otherwise.
const SENTENCES: usize = 3;

#[tokio::test]
async fn a_folder_is_digested_a_document_a_step_and_then_as_a_whole() {
    let fleet = Harness::start().await;
    let folder = fleet.scratch("texts");
    write(&folder);
    fleet.create("digest", json!({ "moniker": "digest", "config": { "paths": [folder] } })).await;
    fleet.wait_status("digest", "completed").await;
    let steps = fleet.steps("digest").await;
    assert_chain(&steps);
    assert!(steps.iter().all(|step| step["status"] == "ok"), "{steps:?}");
    let (whole, documents) = steps.split_last().expect("steps");
    let (skipped, read) = documents.split_last().expect("steps of documents");
    assert_eq!(read.len(), DOCUMENTS.len(), "one document a step");
    let openings: usize =
        read.iter().zip(&DOCUMENTS).enumerate().map(|(at, (step, document))| check(step, at, document, &folder)).sum();
    assert!(2 * openings < read.len(), "{openings} documents are told by the sentence that they begin with");
    assert_eq!(skipped["data"]["document"], json!(folder.join(UNREADABLE)), "{skipped}");
    assert_eq!(skipped["notes"], "it is binary", "{skipped}");
    assert_eq!((&skipped["state"]["skipped"], token(skipped)), (&json!(1), "doc/13"), "{skipped}");
    check_whole(whole, &folder);
    // It is the result of the session, and LanceDB gets the same steps.
    let detail = fleet.get("/api/sessions/digest").await;
    assert_eq!(detail["result"], whole["text"], "{detail}");
    fleet.wait_archived().await;
    let (ok, out, err) = fleet.cli(&["doctor", "--verify-history"]).await;
    assert!(ok, "{out}{err}");
}

/// Writes the documents, one that cannot be read, and one that is hidden.
fn write(folder: &Path) {
    std::fs::create_dir_all(folder.join("land")).expect("the folders");
    for document in &DOCUMENTS {
        std::fs::write(folder.join(document.name), document.text).expect("a document");
    }
    std::fs::write(folder.join(UNREADABLE), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\0").expect("an image");
    std::fs::write(folder.join(".hidden.md"), "Nobody asked for the hidden document of this folder.").expect("a file");
}

/// Checks the step of a document; 1 if its digest begins as the document does, else 0.
fn check(step: &Value, at: usize, document: &Document, folder: &Path) -> usize {
    let (data, state, path) = (&step["data"], &step["state"], json!(folder.join(document.name)));
    let expected = if at == 0 { "start".to_owned() } else { format!("doc/{}", at + 1) };
    assert_eq!((token(step), &data["document"]), (expected.as_str(), &path), "{step}");
    assert_eq!((&data["index"], &data["total"]), (&json!(at + 1), &json!(DOCUMENTS.len() + 1)), "{step}");
    assert_eq!((&data["title"], &data["bytes"]), (&json!(document.title), &json!(document.text.len())), "{step}");
    assert!(data["words"].as_u64().is_some_and(|words| words > 150), "{step}");
    assert!(data["terms"].as_array().is_some_and(|terms| terms.len() >= 3), "{step}");
    // Where the next step goes on, and what the last one is made of.
    assert_eq!((&state["after"], &state["collection"]["documents"]), (&path, &json!(at + 1)), "{step}");
    let picked = data["sentences"].as_array().expect("sentences");
    assert_eq!(picked.len(), SENTENCES, "{step}");
    let sentences: Vec<&str> = picked.iter().map(|sentence| sentence["text"].as_str().expect("a text")).collect();
    assert_eq!(step["text"], sentences.join(" "));
    for sentence in &sentences {
        assert!(flat(document.text).contains(*sentence), "{sentence:?} does not stand in {}", document.name);
    }
    usize::from(picked[0]["position"] == 0)
}

/// Checks the last step: sentences of the documents, each with its source, and the list of sources.
fn check_whole(step: &Value, folder: &Path) {
    let (text, data) = (step["text"].as_str().expect("a text"), &step["data"]);
    assert_eq!(step["next_step_token"], "end");
    let heading = format!("Digest of 12 documents, {} words, from {}/\n", data["words"], folder.display());
    assert!(text.starts_with(&heading), "{heading}: {text}");
    assert!(text.ends_with(&format!("Skipped 1: {UNREADABLE} (it is binary).")), "{text}");
    assert!(!text.contains("hidden"), "{text}");
    assert_eq!((&data["documents"], &data["skipped"]), (&json!(12), &json!(1)), "{data}");
    let sources: Vec<&Document> =
        text.lines().filter(|line| line.starts_with('[')).enumerate().map(|(at, line)| source(at + 1, line)).collect();
    let named: Vec<&Value> = data["overview"]["sources"].as_array().expect("sources").iter().collect();
    let expected: Vec<Value> =
        sources.iter().map(|source| json!({ "document": source.name, "title": source.title })).collect();
    assert_eq!(named, expected.iter().collect::<Vec<_>>());
    assert!(sources.len() >= 6, "only {} documents have a say: {text}", sources.len());

    let mut openings = 0;
    let points: Vec<(&str, usize)> = text.lines().filter_map(point).collect();
    assert!(points.len() >= 6, "{} sentences are no digest: {text}", points.len());
    for (sentence, number) in &points {
        let source = sources[number - 1];
        let body = flat(source.text);
        assert!(body.contains(*sentence), "{sentence:?} does not stand in {}", source.name);
        openings += usize::from(body.contains(&format!("{} {sentence}", source.title)));
    }
    assert!(2 * openings < points.len(), "{openings} sentences are the first ones of their documents: {text}");
    for number in 1..=sources.len() {
        assert!(points.iter().any(|(_, cited)| *cited == number), "source {number} is not cited: {text}");
    }
}

/// The document that a line of the list of sources names.
fn source(number: usize, line: &str) -> &'static Document {
    let names = |document: &&Document| line == format!("[{number}] {} ({})", document.name, document.title);
    DOCUMENTS.iter().find(names).unwrap_or_else(|| panic!("source {number} is no document: {line}"))
}

/// A sentence of the digest, and the number of its source.
fn point(line: &str) -> Option<(&str, usize)> {
    let (sentence, number) = line.strip_prefix("- ")?.rsplit_once(" [")?;
    Some((sentence, number.strip_suffix(']')?.parse().ok()?))
}

fn token(step: &Value) -> &str {
    step["step_token"].as_str().expect("a token")
}

/// On one line, without the tags of paragraphs and headings.
fn flat(text: &str) -> String {
    let text = ["<p>", "</p>", "</h1>"].into_iter().fold(text.to_owned(), |text, tag| text.replace(tag, " "));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
