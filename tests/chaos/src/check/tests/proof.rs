//! A good record of journals, logs and answers, and what is no breach of it.

use super::{all, good};
use crate::check::{accepting, messages};
use crate::diary::Bar;
use crate::seen::Seen;
use crate::seen::journal::{Commits, Journal, Ran};
use crate::seen::outage::{Outage, Post, Said};

fn commits(epoch: i64, session: &str, (first, last): (u64, u64), (from_seq, to_seq): (u64, u64)) -> Commits {
    Commits { shard: 0, epoch, session: session.into(), first, last, from_seq, to_seq }
}

fn ran(process: &str, session: &str, first: u64, last: u64) -> Ran {
    Ran { process: process.into(), session: session.into(), first, last }
}

fn post(at_ms: i64, took_ms: u64, status: u16) -> Post {
    Post { at_ms, took_ms, status }
}

fn said(process: &str, at_ms: i64, lines: u64, words: &str) -> Said {
    Said { process: process.into(), at_ms, words: words.into(), lines, of_one: false, error: false }
}

fn fault(kind: &str, from_ms: i64, to_ms: i64) -> Bar {
    Bar { kind: kind.into(), target: "rabbitmq".into(), from_ms, to_ms, note: String::new() }
}

/// One worker, started twice; what the first start ran ahead of its commits is run again.
pub fn proven(seen: &mut Seen) {
    let commits = vec![
        commits(1, "c", (0, 2), (1, 4)),
        commits(1, "e", (0, 1), (2, 3)),
        commits(3, "c", (3, 3), (7, 7)),
        commits(3, "h", (0, 0), (8, 8)),
    ];
    let ran = vec![ran("w/1", "c", 0, 3), ran("w/1", "e", 0, 1), ran("w/2", "c", 3, 3), ran("w/2", "h", 0, 0)];
    seen.journal = Some(Journal { rows: 8, missed: 2, commits, ran });
    seen.outages.push(Outage { fault: "kill rabbitmq".into(), from_ms: 10_000, to_ms: 13_000 });
    seen.posts.extend((0..50).map(|n| post(6_000 + n * 150, 20, 202)));
    seen.posts.extend([post(11_000, 30, 409), post(11_500, 30, 404)]);
    seen.faults.push(fault("kill rabbitmq", 10_000, 13_000));
    seen.said.extend([said("w", 10_500, 2, "the broker is away"), said("w", 20_500, 1, "the broker is away")]);
}

/// The rules that object to a good record after a change.
fn objections(change: impl FnOnce(&mut Seen)) -> Vec<&'static str> {
    let mut seen = good();
    change(&mut seen);
    all(&seen).counts.into_keys().collect()
}

fn journal(seen: &mut Seen) -> &mut Journal {
    seen.journal.get_or_insert_default()
}

#[test]
fn rows_that_nobody_saw_prove_nothing_and_break_nothing() {
    assert!(objections(|seen| drop(journal(seen).commits.remove(0))).is_empty());
    assert_eq!(objections(|seen| journal(seen).commits.clear()), ["journal unread"]);
    assert!(objections(|seen| seen.journal = None).is_empty(), "an older record has none");
}

#[test]
fn a_step_is_committed_once_under_whatever_epoch() {
    let twice =
        |epoch, seq| objections(move |seen| journal(seen).commits.push(commits(epoch, "c", (2, 2), (seq, seq))));
    assert_eq!(twice(1, 5), ["step committed twice"]);
    assert_eq!(twice(3, 9), ["committed by two processes", "step committed twice"]);
    let back = |seen: &mut Seen| journal(seen).commits[3].epoch = 1;
    assert_eq!(objections(back), ["committed by two processes", "committed out of term"]);
}

#[test]
fn a_session_may_fail_without_a_step_that_was_run() {
    let fails = |seen: &mut Seen| {
        journal(seen).ran.retain(|ran| ran.session != "h");
        let session = seen.sessions.iter_mut().find(|session| session.id == "h").unwrap();
        session.items.iter_mut().filter_map(|item| item.step.as_mut()).for_each(|step| step.status = "error".into());
    };
    assert!(objections(fails).is_empty());
    assert_eq!(objections(|seen| journal(seen).ran.retain(|ran| ran.session != "h")), ["step from nowhere"]);
}

#[test]
fn accepting_is_judged_where_it_went_well_before() {
    let during = |seen: &mut Seen, change: fn(&mut Post)| {
        seen.posts.iter_mut().filter(|post| post.at_ms >= 10_000).for_each(change);
    };
    let slow: fn(&mut Post) = |post| post.took_ms = 1_001;
    assert_eq!(objections(|seen| during(seen, slow)), ["accepting stopped"]);
    assert_eq!(objections(|seen| during(seen, |post| post.status = 503)), ["accepting stopped"]);
    assert_eq!(objections(|seen| during(seen, |post| post.status = 0)), ["accepting stopped"]);
    assert!(objections(|seen| during(seen, |post| post.status = 409)).is_empty(), "nothing is left to judge");
    let slow_before = |seen: &mut Seen| seen.posts.iter_mut().for_each(slow);
    assert!(objections(slow_before).is_empty());
    let (tally, outages) = accepting::during(&good());
    assert_eq!((tally.tries, tally.at_once, outages), (20, 20, 1));
}

#[test]
fn a_minute_of_one_process_is_counted_wherever_it_begins() {
    let half = messages::LINES_MAX / 2 + 1;
    // Each of them for another reason.
    let many = |process: &str, at_ms: i64| {
        (0..half).map(|n| said(process, at_ms, 1, &format!("trouble {n}"))).collect::<Vec<_>>()
    };
    let twice =
        |after_ms: i64| objections(|seen| seen.said.extend([many("v", 50_000), many("v", 50_000 + after_ms)].concat()));
    assert_eq!(twice(59_999), ["log flooded"]);
    assert!(twice(60_000).is_empty());
    assert!(objections(|seen| seen.said.extend([many("v", 1), many("u", 1)].concat())).is_empty());
}

#[test]
fn an_outage_is_said_once_and_then_now_and_then() {
    let max = messages::SAME_MAX;
    let again = |lines: Vec<Said>| objections(move |seen| seen.said.extend(lines));
    let shard = |at_ms: i64, lines: u64| Said { of_one: true, ..said("v", at_ms, lines, "lost a shard") };
    assert_eq!(again(vec![shard(11_000, max + 1)]), ["log repeats itself"], "a line for each shard");
    assert_eq!(again(vec![shard(11_000, max), shard(20_999, 1)]), ["log repeats itself"]);
    assert!(again(vec![shard(11_000, max), shard(21_000, 1)]).is_empty(), "a line in ten seconds");
    assert!(again(vec![shard(11_000, max), said("v", 11_000, 1, "the broker is away")]).is_empty());
    let minutes = (0..60).map(|n| said("v", n * 10_000, 1, "the broker is away")).collect();
    assert!(again(minutes).is_empty(), "however long it is away");
}

#[test]
fn an_error_has_a_fault_that_explains_it() {
    let at = |at_ms: i64| {
        objections(move |seen| seen.said.push(Said { error: true, ..said("v", at_ms, 1, "it does not work") }))
    };
    assert!(at(10_000).is_empty());
    assert!(at(43_000).is_empty(), "it is tried again some time after the fault");
    assert_eq!(at(9_999), ["error without a fault"]);
    assert_eq!(at(43_001), ["error without a fault"]);
    let without_faults = |seen: &mut Seen| {
        seen.faults.clear();
        seen.said.push(Said { error: true, ..said("v", 1, 1, "it does not work") });
    };
    assert!(objections(without_faults).is_empty(), "an older record has none");
}
