//! Definitions on the command line: said what changes, written once, read back, and everything that is wrong told.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{assert_says, read, told};
use crate::harness::Harness;

const SHELF: &str = "\
kind: library
id: shelf
name: Shelf
---
kind: model_profile
id: plain
name: Plain
provider: scripted
model_id: scripted
";

/// A folder of files, beside the fleet's directory.
fn folder(fleet: &Harness, name: &str, files: &[(&str, &str)]) -> String {
    let folder = fleet.scratch(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    for (file, text) in files {
        write(&folder.join(file), text);
    }
    told_path(folder)
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).expect("written");
}

fn told_path(path: PathBuf) -> String {
    path.into_os_string().into_string().expect("a plain path")
}

/// The persona that is written as JSON.
fn keeper(prompt: &str) -> String {
    json!([{"kind": "persona", "definition": {"id": "keeper", "name": "Keeper", "library_id": "shelf",
        "system_prompt": prompt, "model_profile_id": "plain"}}])
    .to_string()
}

/// What each definition of an answer became.
fn changes(answer: &Value) -> Vec<(&str, &str)> {
    let items = answer["items"].as_array().expect("items").iter();
    items.map(|one| (one["id"].as_str().unwrap_or_default(), one["change"].as_str().unwrap_or_default())).collect()
}

/// Applies what cannot be written.
async fn refused(fleet: &Harness, name: &str, files: &[(&str, &str)], parts: &[&str]) {
    let path = folder(fleet, name, files);
    let (ok, out, err) = fleet.cli(&["apply", "-f", &path, "--yes"]).await;
    assert!(!ok && out.is_empty(), "{name}: {out}");
    assert_says(&err, parts);
}

#[tokio::test]
async fn what_is_applied_is_told_first_and_written_once() {
    let fleet = Harness::start().await;
    let (first, second) = (keeper("You help."), keeper("You help much."));
    let defs = folder(&fleet, "defs", &[("shelf.yaml", SHELF), ("keeper.json", first.as_str())]);
    let apply = ["apply", "-f", &defs, "--yes"];

    let out = told(&fleet, &["apply", "-f", &defs, "--dry-run"]).await;
    assert_says(&out, &["+ library shelf: created, version 1", "+ persona keeper: created", "nothing was written"]);
    let (ok, _, err) = fleet.cli(&["get", "persona", "keeper"]).await;
    assert!(!ok);
    assert_says(&err, &["definition_not_found", "keeper"]);

    let out = told(&fleet, &apply).await;
    assert_says(&out, &["+ model profile plain: created", "written: 3 created, 0 updated, 0 unchanged"]);
    assert_says(&told(&fleet, &apply).await, &["= persona keeper: unchanged, version 1", "nothing to do"]);
    let again = read(&fleet, &apply).await;
    assert!(changes(&again).iter().all(|(_, change)| *change == "unchanged"), "{again}");

    // Another content is told field by field, and is the next version.
    folder(&fleet, "defs", &[("keeper.json", second.as_str())]);
    let out = told(&fleet, &["apply", "-f", &defs, "--dry-run"]).await;
    let field = "system_prompt: \"You help.\" -> \"You help much.\"";
    assert_says(&out, &["~ persona keeper: updated, version 2", field, "= library shelf", "nothing was written"]);
    let written = read(&fleet, &apply).await;
    let mut became = changes(&written);
    became.sort_unstable();
    assert_eq!(became, [("keeper", "updated"), ("plain", "unchanged"), ("shelf", "unchanged")], "{written}");
    check_reads(&fleet).await;
}

/// Two versions are there, and what is read is what `apply` takes.
async fn check_reads(fleet: &Harness) {
    assert_says(&told(fleet, &["get", "personas"]).await, &["keeper", "Keeper", "2", "shelf"]);
    let newest = told(fleet, &["get", "persona", "keeper", "-o", "json"]).await;
    let newest: Value = serde_json::from_str(&newest).expect("JSON");
    assert_eq!(
        (&newest["kind"], &newest["definition"]["system_prompt"]),
        (&json!("persona"), &json!("You help much."))
    );
    let first = told(fleet, &["get", "persona", "keeper", "--version", "1", "-o", "yaml"]).await;
    assert_says(&first, &["kind: persona", "You help."]);
    assert!(!first.contains("You help much."), "{first}");
    let (ok, _, err) = fleet.cli(&["get", "persona", "keeper", "--version", "3"]).await;
    assert!(!ok);
    assert_says(&err, &["definition_not_found", "the newest is 2"]);
    let (ok, _, err) = fleet.cli(&["get", "personae"]).await;
    assert!(!ok);
    assert_says(&err, &["personae", "persona"]);

    let read_back = told(fleet, &["get", "persona", "keeper", "-o", "yaml"]).await;
    let file = fleet.scratch("keeper.yaml");
    write(&file, &read_back);
    assert_says(
        &told(fleet, &["apply", "-f", &told_path(file), "--yes"]).await,
        &["= persona keeper", "nothing to do"],
    );
    // Going back to an older content is a change.
    let file = fleet.scratch("older.yaml");
    write(&file, &first);
    let out = told(fleet, &["apply", "-f", &told_path(file), "--yes"]).await;
    assert_says(&out, &["~ persona keeper: updated, version 3", "written: 0 created, 1 updated"]);
}

#[tokio::test]
async fn everything_that_is_wrong_is_told_at_once_and_nothing_is_written() {
    let fleet = Harness::start().await;
    let unreadable = [("a.yaml", "a: ["), ("b.json", "{"), ("c.yaml", "kind: libary\nid: x\n"), ("shelf.yaml", SHELF)];
    let parts = ["a.yaml: is not YAML", "b.json: is not JSON", "c.yaml, document 1", "did you mean \"library\"?"];
    refused(&fleet, "unreadable", &unreadable, &parts).await;

    let wrong = [
        (
            "a.yaml",
            "kind: persona\nid: keeper\nname: Keeper\nlibrary_id: shelf\nsystem_promt: x\nmodel_profile_id: p\n",
        ),
        (
            "b.json",
            r#"{"kind": "tool", "id": "look", "name": "look", "description": "d", "input_schema": {"type": 7}}"#,
        ),
        ("shelf.yaml", SHELF),
    ];
    let parts = [
        "mend these first",
        "a.yaml: persona keeper: system_promt is not a known field; did you mean \"system_prompt\"?",
        "a.yaml: persona keeper: system_prompt is missing",
        "b.json: tool look: library_id MISSING_OWNER",
        "b.json: tool look: input_schema.type",
        "b.json: tool look: target_id is missing",
    ];
    refused(&fleet, "wrong", &wrong, &parts).await;

    // What only the fleet knows.
    let away = keeper("You help.").replace("\"plain\"", "\"nowhere\"");
    let agent = "kind: agent\nid: ben\nname: Ben\nproject_ids: [none]\npersona_ref: {persona_id: keeper}\n";
    let unmet = [("keeper.json", away.as_str()), ("ben.yaml", agent), ("shelf.yaml", SHELF)];
    let parts = [
        "keeper.json: persona keeper: model_profile_id: there is no model profile nowhere",
        "ben.yaml: agent ben: project_ids[0]: there is no project none",
    ];
    refused(&fleet, "unmet", &unmet, &parts).await;
    for (kind, id) in [("library", "shelf"), ("persona", "keeper")] {
        let (ok, out, _) = fleet.cli(&["get", kind, id]).await;
        assert!(!ok, "{kind} {id} was written: {out}");
    }
}
