//! What is summarised, and what stands in its place.

use schemas::definition::CompactionSettings;

use super::*;

fn settings(chunk_size: u32, keep_recent: u32) -> CompactionSettings {
    CompactionSettings {
        enabled: true,
        chunk_size,
        keep_recent,
        max_summary_tokens: 1_024,
        clip_first: 2,
        clip_last: 2,
    }
}

fn batch(n: i64) -> SummaryBatch {
    SummaryBatch { depth: 0, start_ms: n * 1_000, end_ms: n * 1_000 + 500, count: 3, summary: format!("part {n}") }
}

fn ids(plan: &CompactionPlan) -> String {
    let chunk =
        |chunk: &Vec<ConversationMessage>| chunk.iter().map(|one| one.id.as_str()).collect::<Vec<_>>().join(" ");
    plan.chunks.iter().map(chunk).collect::<Vec<_>>().join(" | ")
}

#[test]
fn all_but_the_newest_is_cut_into_chunks() {
    let plan = plan_compaction(&conversation("suauauau"), &settings(2, 2)).expect("a plan");
    assert_eq!((ids(&plan).as_str(), plan.through.as_str(), plan.earlier.len()), ("m1 m2 | m3 m4", "m4", 0));
    let plan = plan_compaction(&conversation("suauaua"), &settings(3, 1)).expect("a plan");
    assert_eq!(ids(&plan), "m1 m2 m3 | m4", "u5 stays with its answer");
    let all = plan_compaction(&conversation("sua"), &settings(2, 0)).expect("a plan");
    assert_eq!(ids(&all), "m1 m2");
    assert_eq!(plan_compaction(&conversation("suau"), &settings(2, 3)), None, "nothing is old");
    assert_eq!(plan_compaction(&[], &settings(2, 0)), None);
    let off = CompactionSettings { enabled: false, ..settings(2, 2) };
    assert_eq!(plan_compaction(&conversation("suauauau"), &off), None);
}

#[test]
fn a_call_is_not_parted_from_its_result() {
    let plan = plan_compaction(&conversation("uauctta"), &settings(20, 2)).expect("a plan");
    assert_eq!(ids(&plan), "m0 m1", "m2 is the question of all the rest");
    let chain = conversation("uctctcta");
    let plan = plan_compaction(&chain, &settings(20, 2)).expect("a plan");
    assert_eq!(ids(&plan), "m0 m1 m2 m3 m4", "m5 is the call of m6");
    let summary = NewMessage {
        kind: MessageKind::Summary,
        compacts_through: Some(plan.through),
        ..NewMessage::system("summary")
    };
    let after: Vec<ConversationMessage> = chain.into_iter().chain([stored(8, summary)]).collect();
    let shown = build_history(&after, &HistoryLimits::default());
    assert_eq!(texts(&shown), ["summary", "u0", "c5", "t6", "a7"], "the question stays");
    assert_eq!(plan_compaction(&conversation("ua"), &settings(20, 1)), None, "the question alone is no gain");
    assert_eq!(plan_compaction(&conversation("tta"), &settings(20, 2)), None);
}

#[test]
fn what_is_summarised_already_is_not_summarised_again() {
    let mut messages = conversation("suauau");
    let summary = NewMessage {
        kind: MessageKind::Summary,
        compacts_through: Some(messages[2].id.clone()),
        metadata: [("batches".to_owned(), value_of(&[batch(1), batch(2)]))].into_iter().collect(),
        ..NewMessage::system("summary")
    };
    messages.push(stored(6, summary));
    messages.push(stored(7, NewMessage::assistant("a7")));
    let plan = plan_compaction(&messages, &settings(20, 1)).expect("a plan");
    assert_eq!((ids(&plan).as_str(), plan.earlier.as_slice()), ("m3 m4", &[batch(1), batch(2)][..]));
}

#[test]
fn many_batches_become_one_of_greater_depth() {
    let batches: Vec<SummaryBatch> = (0..7).map(batch).collect();
    assert_eq!((merge_due(&batches[..6], &settings(20, 5)), merge_due(&batches, &settings(20, 5))), (None, Some(5)));
    let one = SummaryBatch::of_batches(&batches[..5], "all".into());
    assert_eq!((one.depth, one.start_ms, one.end_ms, one.count), (1, 0, 4_500, 15));
    assert_eq!(SummaryBatch::of_batches(&[one, batch(9)], String::new()).depth, 2);
}

#[test]
fn the_first_and_the_last_batches_are_shown() {
    let batches: Vec<SummaryBatch> = (0..6).map(batch).collect();
    let text = summary_text(&batches, &settings(20, 5));
    assert!(text.starts_with("[Context Summary: 18 earlier messages]\n\n[depth:0|start:1970-01-01T00:00:00.000Z|end:"));
    let shown: Vec<bool> = (0..6).map(|n| text.contains(&format!("\npart {n}"))).collect();
    assert_eq!(shown, [true, true, false, false, true, true]);
    assert!(text.contains("2 summaries are left out here; search the memory"));
    assert!(!summary_text(&batches[..4], &settings(20, 5)).contains("left out"));
}

#[test]
fn the_request_has_the_persona_the_summary_so_far_and_the_messages() {
    let request = summary_request("Ana, a clerk", Some("They met."), &["user: hi".into(), "assistant: yes".into()], 77);
    assert_eq!((request.parameters.temperature, request.parameters.max_tokens), (Some(0.0), Some(77)));
    assert!(request.system().ends_with("The agent:\nAna, a clerk"));
    let prompt = request.messages[1].plain_text();
    assert!(prompt.contains("so far:\nThey met.\n") && prompt.contains("user: hi\nassistant: yes\n"), "{prompt}");
    let first = summary_request("", Some(""), &[], 1);
    assert!(first.messages[1].plain_text().contains("(no prior summary)"));
}

#[test]
fn a_batch_is_archived_under_a_label_of_its_own() {
    let conversation = ConversationId::parse("c-1").expect("an id");
    assert_eq!(archive_label(&conversation, &batch(1)), "compaction-batch-c-1-1970-01-01T00:00:01.500Z");
    let text = archive_text(&SummaryBatch::of_messages(&super::conversation("uau"), "Hello.".into()));
    assert_eq!(text, "[depth:0|start:1970-01-01T00:00:00.000Z|end:1970-01-01T00:00:02.000Z|count:3]\nHello.");
}

#[test]
fn calls_and_results_are_told_to_the_one_who_summarises() {
    let lines: Vec<String> = super::conversation("uct").iter().map(transcript_line).collect();
    assert_eq!(lines, ["user: u0", "assistant: c1 [calls look with {}]", "tool: [result: t2]"]);
    let named = stored(1, NewMessage { name: Some("ana".into()), ..NewMessage::user("hi") });
    assert_eq!(transcript_line(&named), "user (ana): hi");
}
