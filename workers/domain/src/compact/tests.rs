//! Compactions with a model that answers as told.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::chat::{Part, Role, ToolCall};
use crate::time::rfc3339;

fn settings(chunk_size: u32, keep_recent: u32) -> CompactionSettings {
    CompactionSettings { chunk_size, keep_recent, ..defaults() }
}

/// Messages of the user, a second apart.
fn history(count: usize) -> Vec<Entry> {
    let message = |n| Message::text(Role::User, format!("m{n}"));
    (0..count).map(|n| Entry { key: n as u64, at_ms: 1_000 * n as i64, message: message(n) }).collect()
}

/// A conversation that is compacted again and again, and what its memory holds.
struct Bench {
    settings: CompactionSettings,
    window_tokens: u64,
    batches: Vec<Batch>,
    memory: Vec<NewMemory>,
    prompts: Vec<String>,
}

impl Bench {
    fn new(chunk_size: u32, keep_recent: u32) -> Self {
        let settings = settings(chunk_size, keep_recent);
        Self { settings, window_tokens: 200_000, batches: Vec::new(), memory: Vec::new(), prompts: Vec::new() }
    }

    /// Runs to the end; the n-th answer is `s<n>`. Gives what stays.
    fn run(&mut self, messages: &[Entry]) -> Vec<Entry> {
        let conversation = ConversationId::parse("c1").expect("an id");
        let (mut rest, stays) = messages.split_at(old(messages, self.settings.keep_recent as usize));
        loop {
            let batches = self.batches.clone();
            let job = Job {
                conversation_id: &conversation,
                subject: "c1",
                messages: rest,
                batches: &batches,
                persona: "You are Ada.",
                settings: &self.settings,
                window_tokens: self.window_tokens,
            };
            let Some(piece) = job.next() else { return stays.to_vec() };
            self.prompts.push(job.request(piece).messages[1].plain_text());
            let made = job.close(piece, &format!("s{}", self.prompts.len())).expect("a summary");
            self.memory.retain(|known| known.label != made.archive.label);
            self.memory.push(made.archive);
            self.memory.retain(|known| !made.forget.contains(known.label.as_ref().expect("a label")));
            self.batches = made.batches;
            rest = &rest[made.messages as usize..];
        }
    }

    fn labels(&self) -> Vec<String> {
        self.memory.iter().filter_map(|memory| memory.label.clone()).collect()
    }

    fn told(&self) -> Vec<(u32, u64, &str)> {
        self.batches.iter().map(|batch| (batch.depth, batch.count, batch.summary.as_str())).collect()
    }
}

fn texts(messages: &[Entry]) -> Vec<String> {
    messages.iter().map(|entry| entry.message.plain_text()).collect()
}

#[test]
fn a_short_history_stays_as_it_is() {
    let mut bench = Bench::new(20, 5);
    assert_eq!(bench.run(&history(5)).len(), 5);
    assert!(bench.prompts.is_empty() && bench.memory.is_empty() && bench.batches.is_empty());
}

#[test]
fn old_messages_become_batches_and_the_newest_stay() {
    let mut bench = Bench::new(20, 5);
    let stays = bench.run(&history(50));
    assert_eq!(bench.prompts.len(), 3, "20, 20 and 5");
    assert!(bench.prompts[0].contains("so far:\n(no prior summary)\n"));
    assert!(bench.prompts[0].contains("[1970-01-01T00:00:00.000Z] user: m0") && !bench.prompts[0].contains("m20"));
    assert!(bench.prompts[1].contains("so far:\ns1\n") && bench.prompts[2].contains("so far:\ns2\n"));
    let ends = ["1970-01-01T00:00:19.000Z", "1970-01-01T00:00:39.000Z", "1970-01-01T00:00:44.000Z"];
    assert_eq!(bench.labels(), ends.map(|end| format!("compaction-batch-c1-{end}")));
    let first = "[depth:0|start:1970-01-01T00:00:00.000Z|end:1970-01-01T00:00:19.000Z|count:20]\ns1";
    assert_eq!(bench.memory[0].content, first);
    assert_eq!(bench.memory[0].metadata["conversation_id"], "c1");
    let summary = summary_text(&bench.batches, 2, 2);
    assert!(summary.starts_with("[Context Summary: 45 earlier messages]\n\n[depth:0|"));
    assert!(summary.contains("s1") && summary.contains("s3") && !summary.contains("left out"));
    assert_eq!(texts(&stays), ["m45", "m46", "m47", "m48", "m49"]);
}

#[test]
fn a_second_compaction_goes_on_from_the_first() {
    let mut bench = Bench::new(20, 5);
    let mut rest = bench.run(&history(30));
    rest.extend(history(40).split_off(30));
    bench.run(&rest);
    assert_eq!(bench.prompts.len(), 3);
    assert!(bench.prompts[2].contains("so far:\ns2\n") && bench.prompts[2].contains("m25"));
    assert!(!bench.prompts[2].contains("m24"), "what is summarised is not summarised again");
    assert_eq!(bench.batches.iter().map(|batch| batch.count).sum::<u64>(), 35);
}

#[test]
fn many_batches_become_one_of_greater_depth() {
    let mut bench = Bench::new(20, 5);
    bench.run(&history(145));
    // 7 batches are more than 2 + 2 + 2: the first 5 become one.
    assert_eq!(bench.prompts.len(), 8);
    assert!(bench.prompts[7].contains("count:20] s1") && bench.prompts[7].contains("s5"));
    assert!(!bench.prompts[7].contains("s6") && bench.prompts[7].contains("(no prior summary)"));
    assert_eq!(bench.told(), [(1, 100, "s8"), (0, 20, "s6"), (0, 20, "s7")]);
    assert_eq!(bench.memory.len(), 3, "what others stand for is forgotten: {:?}", bench.labels());
}

#[test]
fn depth_grows_with_each_cycle_and_memory_holds_what_counts() {
    let mut bench = Bench::new(20, 5);
    for cycle in 0..12 {
        let messages: Vec<Entry> = history(45 * (cycle + 1)).split_off(45 * cycle);
        bench.run(&messages);
        assert!(bench.batches.len() <= 6, "cycle {cycle}: {:#?}", bench.batches);
        assert_eq!(bench.batches.iter().map(|batch| batch.count).sum::<u64>(), 40 * (cycle as u64 + 1));
        let kept: Vec<&str> = bench.memory.iter().map(|memory| memory.content.as_str()).collect();
        for batch in &bench.batches {
            assert!(kept.contains(&batch.text().as_str()), "cycle {cycle}: {} is not in memory", batch.label);
        }
        assert_eq!(bench.memory.len(), bench.batches.len());
    }
    let depth = bench.batches.iter().map(|batch| batch.depth).max();
    assert!(depth >= Some(3), "{depth:?}");
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
    let text = summary_text(&batches, 2, 2);
    let shown: Vec<bool> = (0..6).map(|n| text.contains(&format!("\ns{n}"))).collect();
    assert_eq!(shown, [true, true, false, false, true, true]);
    assert!(text.contains("2 summaries of 20 messages") && text.contains("memory search"), "{text}");
    for (first, last) in [(0, 0), (9, 9), (6, 0), (0, 6)] {
        let text = summary_text(&batches, first, last);
        assert!(text.starts_with("[Context Summary: 60 earlier messages]"), "{text}");
        assert_eq!(text.matches("count:10").count(), 6.min((first + last) as usize));
    }
}

fn said(roles: &str) -> Vec<Entry> {
    let message = |(n, role): (usize, char)| {
        let call =
            ToolCall { id: format!("k{n}"), name: "look".into(), input: json!({}), invalid: None, signature: None };
        let message = match role {
            'u' => Message::text(Role::User, format!("u{n}")),
            'a' => Message::text(Role::Assistant, format!("a{n}")),
            'c' => Message::new(Role::Assistant, vec![Part::ToolCall(call)]),
            _ => Message::new(Role::Tool, vec![Part::tool_result(format!("k{}", n - 1), "seen", false)]),
        };
        Entry { key: n as u64, at_ms: n as i64, message }
    };
    roles.chars().enumerate().map(message).collect()
}

#[test]
fn a_result_stays_with_its_call_and_an_answer_with_its_question() {
    for (roles, keep, expected) in [
        ("uauauau", 2, 4),
        ("uauaua", 1, 4),
        ("uauaua", 0, 6),
        ("uauau", 9, 0),
        ("uauctta", 2, 2),
        // One long chain: the call of the sixth message is the fifth's.
        ("uctctcta", 2, 5),
        ("ua", 1, 0),
        ("", 0, 0),
    ] {
        assert_eq!(old(&said(roles), keep), expected, "{roles} {keep}");
    }
    let mut rounds = said("ctuctuctu");
    rounds.iter_mut().enumerate().for_each(|(n, entry)| entry.key = n as u64 / 3);
    assert_eq!(old(&rounds, 4), 3, "a place is never parted, whatever it begins with");
    let mut bench = Bench::new(1, 4);
    bench.run(&rounds);
    assert_eq!(bench.told(), [(0, 3, "s1")], "nor by a chunk");
}

#[test]
fn requests_are_cool_and_bounded() {
    let conversation = ConversationId::parse("c1").expect("an id");
    let huge = |n| Entry { key: n, at_ms: 0, message: Message::text(Role::User, "x".repeat(1 << 20)) };
    let messages: Vec<Entry> = (0..20).map(huge).collect();
    for (window_tokens, most) in [(200_000, 200_000), (8_000, 17_000)] {
        let settings = settings(20, 5);
        let job = Job {
            conversation_id: &conversation,
            subject: "c1",
            messages: &messages,
            batches: &[],
            persona: "You are Ada.",
            settings: &settings,
            window_tokens,
        };
        let piece = job.next().expect("something is old");
        let request = job.request(piece);
        assert_eq!((request.parameters.temperature, request.parameters.max_tokens), (Some(0.0), Some(1_024)));
        assert!(request.tools.is_empty() && request.messages.len() == 2);
        assert!(request.system().ends_with("The agent:\nYou are Ada."));
        let prompt = request.messages[1].plain_text();
        assert!(prompt.len() < most && prompt.contains("characters left out"), "{window_tokens}: {}", prompt.len());
        let extract = job.extract(piece);
        assert!(extract.len() < 6_000 && extract.contains("user: xxx"), "{}", extract.len());
        assert_eq!(job.close(piece, " \n"), Err(Blank));
    }
}

#[test]
fn calls_and_results_are_told_to_the_one_who_summarises() {
    let mut messages = said("uct");
    messages[0].message.name = Some("ana".into());
    let text = prompt::transcript(&messages, usize::MAX);
    let lines: Vec<&str> = text.lines().map(|line| line.split_once(' ').expect("a time").1).collect();
    assert_eq!(lines, ["user (ana): u0", "assistant: (calls look with {})", "tool: (result: seen)"]);
}

#[test]
fn what_is_said_cannot_pretend_to_be_the_template() {
    let places = [("{a}", "{c}"), ("{b}", "{a}"), ("{c}", "x {b}")];
    assert_eq!(prompt::fill("{a}|{b}|{c}", &places), "{c}|{a}|x {b}");
    assert_eq!(prompt::fill("no places", &places), "no places");
}

#[test]
fn a_repeat_writes_the_same_memory_and_another_batch_another_one() {
    let ids = |messages: &[Entry]| {
        let mut bench = Bench::new(1, 0);
        bench.run(messages);
        bench.memory.iter().map(|memory| memory.id.clone()).collect::<Vec<_>>()
    };
    let mut messages = history(3);
    messages.iter_mut().for_each(|entry| entry.at_ms = 7);
    let first = ids(&messages);
    assert_eq!(first, ids(&messages));
    messages.iter_mut().for_each(|entry| entry.key += 3);
    assert!(ids(&messages).iter().all(|id| !first.contains(id)), "the same moment, but not the same messages");
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
            label: format!("compaction-batch-c1-{}", rfc3339(i64::from(n) - 5)),
            summary: format!("p{n}"),
            depth: n % 3,
            start_ms: i64::from(n) - 6,
            end_ms: i64::from(n) - 5,
            count: 3,
        };
        let mut bench = Bench::new(chunk, keep);
        bench.batches = (0..prior).map(batch).collect();
        let stays = bench.run(&messages);
        let gone = count.saturating_sub(keep as usize);
        prop_assert_eq!(&stays, &messages[gone..]);
        // Every message is in exactly one batch, whatever was joined; labels are unique.
        prop_assert_eq!(bench.batches.iter().map(|batch| batch.count).sum::<u64>(), gone as u64 + 3 * u64::from(prior));
        let labels: std::collections::BTreeSet<_> = bench.batches.iter().map(|batch| &batch.label).collect();
        prop_assert_eq!(labels.len(), bench.batches.len());
        prop_assert!(bench.batches.len() <= 6);
        // What was made is in memory, under its label.
        for batch in bench.batches.iter().filter(|batch| batch.summary.starts_with('s')) {
            let archived = bench.memory.iter().find(|memory| memory.label.as_deref() == Some(&batch.label));
            prop_assert_eq!(archived.map(|memory| memory.content.clone()), Some(batch.text()));
        }
    }
}
