//! Compactions with a model that answers as told.

use proptest::prelude::*;
use schemas::id::{AgentId, Namespace};
use schemas::memory::Memory;

use super::*;
use crate::chat::{Part, Role, ToolCall};

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

fn history(count: usize) -> Vec<Entry> {
    let message = |n| Entry { at_ms: 1_000 * n as i64, message: Message::text(Role::User, format!("m{n}")) };
    (0..count).map(message).collect()
}

fn job(history: Vec<Entry>, settings: CompactionSettings) -> Job {
    Job {
        conversation_id: ConversationId::parse("c1").expect("an id"),
        history,
        batches: Vec::new(),
        persona: "You are Ada.".into(),
        prompt: None,
        settings,
        estimate: |message| message.plain_text().chars().count().div_ceil(4) as u64,
    }
}

/// Runs to the end; the n-th answer is `s<n>`. Also gives the prompts.
fn run(job: Job) -> (Compacted, Vec<String>) {
    let mut prompts = Vec::new();
    let mut step = job.start();
    loop {
        match step {
            Step::Done(done) => return (*done, prompts),
            Step::Ask(compaction) => {
                prompts.push(compaction.request().messages[0].plain_text());
                let answer = format!("s{}", prompts.len());
                step = compaction.summary(&answer).expect("a summary");
            }
        }
    }
}

/// What memory holds after the compaction is applied.
fn batches_after(done: &Compacted, before: &[Batch]) -> Vec<Batch> {
    let written: Vec<Batch> = done.archive.iter().map(|new| Batch::read(&stored(new)).expect("a batch")).collect();
    let is_gone = |batch: &&Batch| {
        let key = MemoryKey::Label(batch.label.clone());
        done.forget.contains(&key) || written.iter().any(|new| new.label == batch.label)
    };
    before.iter().filter(|batch| !is_gone(batch)).chain(&written).cloned().collect()
}

fn stored(new: &NewMemory) -> Memory {
    Memory {
        id: new.id.clone(),
        namespace: Namespace::default_ns(),
        agent_id: AgentId::parse("agent").expect("an id"),
        label: new.label.clone(),
        tier: new.tier,
        kind: new.kind.clone(),
        content: new.content.clone(),
        content_ref: None,
        significance: new.significance,
        metadata: new.metadata.clone(),
        embedding_model: None,
        version: 1,
        created_at_ms: 0,
        updated_at_ms: 0,
    }
}

#[test]
fn a_short_history_stays_as_it_is() {
    let (done, prompts) = run(job(history(5), settings(20, 5)));
    assert!(prompts.is_empty() && done.archive.is_empty() && done.excluded.is_empty() && done.forget.is_empty());
    assert_eq!(done.context.len(), 5);
    let tokens = done.statistics.tokens_before;
    assert_eq!(done.statistics, Statistics { tokens_before: tokens, tokens_after: tokens, ..Statistics::default() });
}

#[test]
fn old_messages_become_batches_and_the_newest_stay() {
    let (done, prompts) = run(job(history(50), settings(20, 5)));
    assert_eq!(prompts.len(), 3, "20, 20 and 5");
    assert!(prompts[0].starts_with("You are Ada.") && prompts[0].contains("(no prior summary)"));
    assert!(prompts[0].contains("[1970-01-01T00:00:00.000Z] user: m0") && !prompts[0].contains("m20"));
    assert!(prompts[1].contains("Summary so far:\ns1") && prompts[2].contains("Summary so far:\ns2"));
    let labels: Vec<_> = done.archive.iter().filter_map(|new| new.label.as_deref()).collect();
    assert_eq!(
        labels,
        ["1970-01-01T00:00:19.000Z", "1970-01-01T00:00:39.000Z", "1970-01-01T00:00:44.000Z"]
            .map(|end| format!("compaction-batch-c1-{end}"))
    );
    assert_eq!(
        done.archive[0].content,
        "[depth:0|start:1970-01-01T00:00:00.000Z|end:1970-01-01T00:00:19.000Z|count:20]\ns1"
    );
    assert_eq!(done.excluded, (0..45).collect::<Vec<_>>());
    let summary = done.context[0].plain_text();
    assert!(done.context[0].role == Role::System && summary.starts_with("[Context Summary: 45 earlier messages"));
    assert!(summary.contains("s1") && summary.contains("s3") && !summary.contains("left out"));
    assert_eq!(
        done.context[1..].iter().map(Message::plain_text).collect::<Vec<_>>(),
        ["m45", "m46", "m47", "m48", "m49"]
    );
    assert_eq!((done.statistics.batches_created, done.statistics.messages_compressed), (3, 45));
}

#[test]
fn requests_are_cool_and_bounded() {
    let step = job(history(30), settings(20, 5)).start();
    let request = step.request().expect("a request");
    assert_eq!((request.parameters.temperature, request.parameters.max_tokens), (Some(0.0), Some(1_024)));
    assert!(request.tools.is_empty() && request.messages.len() == 1);
    let huge = Entry { at_ms: 0, message: Message::text(Role::User, "x".repeat(1 << 20)) };
    let step = job([vec![huge; 40], history(5)].concat(), settings(20, 5)).start();
    let prompt = step.request().expect("a request").messages[0].plain_text();
    assert!(prompt.len() < 200_000 && prompt.contains("characters left out"), "{}", prompt.len());
}

#[test]
fn a_second_compaction_replaces_the_first_summary_and_folds_it_in() {
    let (first, _) = run(job(history(30), settings(20, 5)));
    let known = batches_after(&first, &[]);
    let at = |n: usize| Entry { at_ms: 30_000 + 1_000 * n as i64, message: Message::text(Role::User, format!("n{n}")) };
    let again: Vec<Entry> =
        first.context.iter().map(|m| Entry { at_ms: 29_000, message: m.clone() }).chain((0..10).map(at)).collect();
    let (second, prompts) = run(Job { batches: known.clone(), ..job(again, settings(20, 5)) });
    assert_eq!(prompts.len(), 1);
    assert!(prompts[0].contains("Summary so far:\ns2") && !prompts[0].contains("[Context Summary"));
    assert_eq!(second.excluded[0], 0, "the old summary goes");
    assert_eq!(second.statistics.messages_compressed, 10);
    assert_eq!(second.context.iter().filter(|message| is_summary(message)).count(), 1);
    assert_eq!(batches_after(&second, &known).len(), 3);
}

#[test]
fn without_memory_the_summary_in_the_history_is_folded_in() {
    let old = Entry { at_ms: 0, message: Message::text(Role::System, "[Context Summary: of old]\n\nblue") };
    let (done, prompts) = run(job([vec![old], history(10)].concat(), settings(20, 5)));
    assert!(prompts[0].contains("Summary so far:\n[Context Summary: of old]\n\nblue"));
    assert_eq!(done.statistics.messages_compressed, 5);
}

#[test]
fn many_batches_become_one_of_greater_depth() {
    let (done, prompts) = run(job(history(145), settings(20, 5)));
    // 7 batches are more than 2 + 2 + 2: the first 5 become one.
    assert_eq!(prompts.len(), 8);
    assert!(prompts[7].contains("count:20]\ns1") && prompts[7].contains("s5") && !prompts[7].contains("s6"));
    assert!(prompts[7].contains("(no prior summary)"));
    let batches = batches_after(&done, &[]);
    let told: Vec<_> = batches.iter().map(|batch| (batch.depth, batch.count, batch.summary.as_str())).collect();
    assert_eq!(told, [(1, 100, "s8"), (0, 20, "s6"), (0, 20, "s7")]);
    assert!(done.forget.is_empty(), "what was never archived need not be forgotten");
    assert_eq!(done.statistics.batches_created, 7);
}

#[test]
fn depth_grows_with_each_cycle_and_what_is_joined_is_forgotten() {
    let (mut known, mut from, mut depth) = (Vec::new(), 0, 0);
    for cycle in 0..12 {
        let messages: Vec<Entry> = (from..from + 45)
            .map(|n| Entry { at_ms: 1_000 * n, message: Message::text(Role::User, format!("m{n}")) })
            .collect();
        from += 45;
        let (done, _) = run(Job { batches: known.clone(), ..job(messages, settings(20, 5)) });
        for label in done.forget.iter().map(|key| match key {
            MemoryKey::Label(label) => label,
            MemoryKey::Id(id) => panic!("{id} is no label"),
        }) {
            assert!(known.iter().any(|batch: &Batch| batch.label == *label), "cycle {cycle}: {label} is not in memory");
        }
        known = batches_after(&done, &known);
        assert!(known.len() <= 6, "cycle {cycle}: {known:#?}");
        assert_eq!(known.iter().map(|batch| batch.count).sum::<u64>(), 40 * (cycle + 1));
        depth = known.iter().map(|batch| batch.depth).max().unwrap_or_default();
    }
    assert!(depth >= 3, "{depth}");
}

#[test]
fn what_lies_between_is_said_to_be_in_memory() {
    let batch = |n: i64| Batch {
        label: format!("l{n}"),
        summary: format!("s{n}"),
        depth: 0,
        start_ms: n,
        end_ms: n,
        count: 10,
    };
    let batches: Vec<Batch> = (0..6).map(batch).collect();
    let text = context::message(&batches, 2, 2).plain_text();
    let shown: Vec<bool> = (0..6).map(|n| text.contains(&format!("\ns{n}"))).collect();
    assert_eq!(shown, [true, true, false, false, true, true]);
    assert!(text.contains("2 summaries of 20 messages") && text.contains("memory search"), "{text}");
    for (first, last) in [(0, 0), (9, 9), (6, 0), (0, 6)] {
        let text = context::message(&batches, first, last).plain_text();
        assert!(text.starts_with("[Context Summary"), "{text}");
        assert_eq!(text.matches("count:10").count(), 6.min(first + last));
    }
}

#[test]
fn a_result_stays_with_its_call() {
    let mut messages = history(12);
    let call =
        ToolCall { id: "t".into(), name: "look".into(), input: serde_json::json!({}), invalid: None, signature: None };
    messages[6].message = Message::new(Role::Assistant, vec![Part::ToolCall(call)]);
    messages[7].message = Message::new(Role::Tool, vec![Part::tool_result("t", "seen", false)]);
    messages[8].message = Message::new(Role::User, vec![Part::tool_result("t", "seen", false)]);
    let (done, prompts) = run(job(messages, settings(20, 5)));
    assert_eq!(done.statistics.messages_compressed, 6);
    assert!(!prompts[0].contains("look"));
    assert_eq!(done.context.len(), 1 + 6);
}

#[test]
fn a_blank_summary_ends_it() {
    let Step::Ask(compaction) = job(history(30), settings(20, 5)).start() else { panic!("there is something to do") };
    assert_eq!(compaction.summary(" \n").expect_err("blank"), Blank);
}

#[test]
fn what_is_said_cannot_pretend_to_be_the_template() {
    let text =
        prompt::fill("{persona}|{existing_summary}|{messages}", "{messages}", "{persona}", "x {existing_summary}");
    assert_eq!(text, "{messages}|{persona}|x {existing_summary}");
    assert_eq!(prompt::fill("no places", "a", "b", "c"), "no places");
}

#[test]
fn a_batch_that_is_not_read_whole_is_none() {
    let (done, _) = run(job(history(30), settings(20, 5)));
    let whole = stored(&done.archive[0]);
    assert!(Batch::read(&whole).is_some());
    for content in ["", "no header\ntext", "[depth:x|start:1|end:2|count:3]\ntext", "[depth:1]\ntext"] {
        assert!(Batch::read(&Memory { content: content.into(), ..whole.clone() }).is_none(), "{content:?}");
    }
    let filter = batches_filter(&ConversationId::parse("c1").unwrap());
    let metadata = serde_json::to_string(&whole.metadata).unwrap();
    let traits = crate::memory::Traits {
        tier: whole.tier,
        kind: &whole.kind,
        significance: whole.significance,
        metadata: &metadata,
        updated_at_ms: 0,
    };
    assert!(filter.matches(&traits));
    assert!(!batches_filter(&ConversationId::parse("c").unwrap()).matches(&traits));
}

proptest! {
    #[test]
    fn nothing_is_lost_and_nothing_is_doubled(
        count in 0usize..120,
        chunk in 0u32..30,
        keep in 0u32..12,
        // Times may be equal, or run backwards.
        times in proptest::collection::vec(0i64..5, 120),
        prior in 0u32..9,
    ) {
        let mut messages = history(count);
        for (entry, time) in messages.iter_mut().zip(&times) {
            entry.at_ms = *time;
        }
        let batch = |n: u32| Batch {
            label: format!("compaction-batch-c1-{}", crate::time::rfc3339(i64::from(n) - 5)),
            summary: format!("p{n}"),
            depth: n % 3,
            start_ms: i64::from(n) - 6,
            end_ms: i64::from(n) - 5,
            count: 3,
        };
        let known: Vec<Batch> = (0..prior).map(batch).collect();
        let (done, _) = run(Job { batches: known.clone(), ..job(messages.clone(), settings(chunk, keep)) });
        let old = count.saturating_sub(keep as usize);
        prop_assert_eq!(done.statistics.messages_compressed, old as u64);
        prop_assert_eq!(&done.excluded, &(0..old).collect::<Vec<_>>());
        let kept: Vec<Message> = messages[old..].iter().map(|entry| entry.message.clone()).collect();
        prop_assert_eq!(&done.context[usize::from(old > 0)..], &kept[..]);
        // Every message is in exactly one batch, whatever was joined; labels are unique.
        let after = batches_after(&done, &known);
        prop_assert_eq!(after.iter().map(|batch| batch.count).sum::<u64>(), (old as u64) + 3 * u64::from(prior));
        let labels: std::collections::BTreeSet<_> = after.iter().map(|batch| &batch.label).collect();
        prop_assert_eq!(labels.len(), after.len());
        // What is forgotten is in memory, and is not what was just written.
        for key in &done.forget {
            let is = |label: &str| MemoryKey::Label(label.to_owned()) == *key;
            prop_assert!(known.iter().any(|batch| is(&batch.label)));
            prop_assert!(!done.archive.iter().any(|new| is(new.label.as_deref().unwrap_or_default())));
        }
        if old > 0 {
            prop_assert!(!done.archive.is_empty(), "archived before anything is excluded");
            prop_assert!(after.len() <= 6);
        }
    }
}
