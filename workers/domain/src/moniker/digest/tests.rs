//! The digest moniker, step by step with plain values.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::effect::EffectFailure;
use crate::moniker::tests::{decide, finish, frame, spec, with_input};

const PROSE: &str = "A queue is a list of things that wait for their turn, in the order of their arrival. \
    Workers take things from the queue, one at a time, and put the results of the work aside. \
    When a worker dies, the queue gives the things it held to the other workers.";

const OTHER: &str = "A lease is a right to own a shard of the fleet for a few seconds. Workers renew the lease \
    before it runs out, or lose the shard to somebody else. The fleet spreads its shards over all live workers.";

fn document(name: &str, text: &str) -> Outcome {
    Outcome::Ok(json!({"done": false, "name": name, "text": text, "bytes": text.len(), "index": 1, "total": 2,
        "truncated": false}))
}

fn with(config: Value) -> SessionSpec {
    spec("digest", config)
}

fn step(state: Value, outcome: Outcome) -> FrameOut {
    finish(&Digest, &with(json!({"paths": ["/d"]})), &frame("start", state, None), None, &[outcome]).0
}

#[test]
fn asks_for_the_document_after_the_cursor() {
    let given = frame("doc/2", json!({"after": "/d/a.md"}), None);
    let decision = decide(&Digest, &with(json!({"paths": "/d", "glob": "*.md"})), &given, None, &[]);
    let effect = Effect::NextDocument {
        paths: vec!["/d".to_owned()],
        glob: Some("*.md".to_owned()),
        after: Some("/d/a.md".to_owned()),
    };
    assert_eq!(decision, Decision::Perform(effect));
}

#[test]
fn a_document_becomes_a_step() {
    let out = step(json!({}), document("/d/a.md", PROSE));
    assert!(out.text.as_deref().is_some_and(|text| text.contains("A queue is a list")), "{out:?}");
    assert_eq!((out.next_step.as_str(), out.done), ("doc/2", false));
    let data = out.data.expect("data");
    assert_eq!((&data["document"], &data["total"]), (&json!("/d/a.md"), &json!(2)));
    assert!(data["sentences"].as_array().is_some_and(|list| !list.is_empty()));
    assert_eq!(out.state["after"], "/d/a.md");
}

#[test]
fn only_large_documents_are_heavy() {
    let (spec, frame) = (with(json!({"paths": ["/d"]})), frame("start", json!({}), None));
    let is_heavy = |outcomes: &[Outcome]| with_input(&spec, &frame, None, outcomes, |input| Digest.is_heavy(input));
    assert!(!is_heavy(&[]));
    assert!(!is_heavy(&[document("/d/a.md", PROSE)]));
    assert!(is_heavy(&[document("/d/a.md", &PROSE.repeat(HEAVY_TEXT_BYTES / PROSE.len() + 1))]));
    assert!(!is_heavy(&[Outcome::Ok(json!({"done": true}))]), "the digest of digests is of bounded size");
}

#[test]
fn unreadable_and_empty_documents_are_noted() {
    let skipped =
        Outcome::Ok(json!({"done": false, "name": "/d/b.bin", "skipped": "it is binary", "index": 2, "total": 2}));
    let out = step(json!({}), skipped);
    assert_eq!(out.notes.as_deref(), Some("it is binary"));
    let out = step(out.state, document("/d/c.md", " \n"));
    assert_eq!((&out.state["skipped"], out.next_step.as_str()), (&json!(2), "doc/3"));
    let end = step(out.state, Outcome::Ok(json!({"done": true, "total": 2})));
    let text = end.text.expect("a text");
    assert!(end.done && text.starts_with("There was nothing to read"), "{text}");
    assert!(text.contains("b.bin (it is binary); c.md (it holds no running text)"), "{text}");
}

#[test]
fn the_last_step_is_the_digest_of_digests() {
    let first = step(json!({}), document("/d/a.md", PROSE));
    let second = step(first.state, document("/d/sub/b.md", OTHER));
    let end = step(second.state, Outcome::Ok(json!({"done": true, "total": 2})));
    let text = end.text.expect("a text");
    assert!(end.done && text.starts_with("Digest of 2 documents, "), "{text}");
    assert!(text.contains("from /d/") && text.contains("] a.md") && text.contains("] sub/b.md"), "{text}");
}

#[test]
fn failures_and_foreign_states_fail_the_step() {
    let failure = EffectFailure {
        code: Code::ReadFailed,
        message: "no such folder".to_owned(),
        retriable: false,
        may_have_happened: false,
    };
    let given = frame("start", json!({}), None);
    let decision = decide(&Digest, &with(json!({"paths": ["/d"]})), &given, None, &[Outcome::Failed(failure)]);
    assert_eq!(decision, Decision::Fail { code: Code::ReadFailed, message: "no such folder".to_owned() });
    let given = frame("start", json!({"after": 5}), None);
    let decision = decide(&Digest, &with(json!({"paths": ["/d"]})), &given, None, &[]);
    assert!(matches!(decision, Decision::Fail { code: Code::StepFailed, .. }));
}

#[test]
fn checks_its_settings() {
    let fields = |config: Value, state: Value| -> Vec<String> {
        Digest.check(&with(config), &state).into_iter().map(|p| p.field).collect()
    };
    assert_eq!(fields(json!({}), json!({})), ["payload.config.paths"]);
    assert_eq!(fields(json!({"paths": []}), json!({})), ["payload.config.paths"]);
    assert_eq!(fields(json!({"paths": ["a", 1]}), json!({})), ["payload.config.paths[1]"]);
    assert_eq!(fields(json!({"paths": ["a"], "sentences": 0}), json!({})), ["payload.config.sentences"]);
    assert_eq!(fields(json!({"paths": ["a"]}), json!({"notes": 1})), ["payload.state"]);
    assert!(fields(json!({"paths": ["a"], "glob": "*.md", "sentences": 5}), json!({})).is_empty());
}

#[test]
fn the_state_stays_small() {
    let mut state = json!({});
    for n in 0..200 {
        let words: Vec<String> = (0..30).map(|k| format!("word{n}x{k}")).collect();
        let text = PROSE.replace("queue", &words[..10].join(" ")).replace("worker", &words[10..20].join(" "));
        state = step(state, document(&format!("/d/{n}.md"), &text)).state;
    }
    assert!(state.to_string().len() < 64 << 10, "{} bytes", state.to_string().len());
}

proptest! {
    #[test]
    fn names_keep_what_tells_them_apart(parts in prop::collection::vec("[ab/]{1,6}", 1..5)) {
        let names: Vec<String> = parts.iter().map(|part| format!("/r/{part}x")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let folder = progress::common_folder(&names);
        prop_assert!(names.iter().all(|name| name.starts_with(folder) && name.len() > folder.len()));
    }
}
