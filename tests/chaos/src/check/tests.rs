//! The checker is silent on a good history and notices every breakage of one.

mod proof;
mod talk;

use clap::ValueEnum;

use super::all;
use super::sabotage::Break;
use crate::seen::{Call, Doctor, Heard, Idle, Item, Owner, Row, Seen, Sent, Session, Step, Stream, Takeover, Told};

fn event(offset: u64, kind: &str, status: Option<&str>, action: Option<&str>) -> Item {
    let own = |text: Option<&str>| text.map(str::to_owned);
    Item { offset, kind: kind.into(), at_ms: offset as i64, step: None, status: own(status), action: own(action) }
}

fn step(session: &str, offset: u64, n: u64, text: &str) -> Item {
    let token = |n: u64| if n == 0 { "start".to_owned() } else { format!("n/{n}") };
    let step = Step {
        id: format!("{session}:{n}:0"),
        iteration: n,
        token: token(n),
        next: token(n + 1),
        status: "ok".into(),
        text: Some(text.into()),
        ..Step::default()
    };
    Item { step: Some(step), ..event(offset, "step", None, None) }
}

fn sent(seen: &mut Seen, session: &str, kind: &str, seq: u64, mark: Option<&str>) {
    let lane = if matches!(kind, "create" | "input") { "work" } else { "control" };
    let id = format!("{session}-{lane}-{seq}");
    let row = Row {
        kind: kind.into(),
        lane: lane.into(),
        seq: Some(seq),
        processed: true,
        outcome: Some("ok".into()),
        code: None,
    };
    seen.actions.insert(id.clone(), row);
    let (session, kind, mark) = (session.to_owned(), kind.to_owned(), mark.map(str::to_owned));
    seen.sent.push(Sent { id, session, kind, mark, told: Told::Accepted, amqp: false, at_ms: seq as i64 });
}

fn session(id: &str, moniker: &str, items: Vec<Item>, idle: Option<Idle>) -> Session {
    let mut session =
        Session { id: id.into(), moniker: moniker.into(), status: "stopped".into(), ..Session::default() };
    session.last_offset = items.last().map_or(0, |item| item.offset);
    session.items = items;
    session.listed = session.steps().map(|step| (step.iteration, step.id.clone())).collect();
    session.items.push(Item { kind: "end".into(), ..event(session.last_offset, "end", None, None) });
    session.idle = idle;
    session
}

/// A counting session with a pause and guidance.
fn counting(seen: &mut Seen) {
    sent(seen, "c", "create", 1, None);
    sent(seen, "c", "interrupt", 1, Some("g-1"));
    sent(seen, "c", "pause", 2, None);
    sent(seen, "c", "resume", 3, None);
    sent(seen, "c", "destroy", 4, None);
    let mut guided = step("c", 5, 2, "40");
    if let Some(step) = guided.step.as_mut() {
        (step.guidance, step.set) = (Some("g-1".into()), Some(40));
    }
    let items = vec![
        event(1, "created", None, Some("c-work-1")),
        event(2, "status", Some("running"), Some("c-work-1")),
        step("c", 3, 0, "1"),
        step("c", 4, 1, "2"),
        guided,
        event(6, "status", Some("paused"), Some("c-control-2")),
        event(7, "status", Some("running"), Some("c-control-3")),
        step("c", 8, 3, "41"),
        event(9, "status", Some("stopping"), Some("c-control-4")),
        event(10, "status", Some("stopped"), None),
    ];
    let idle = Idle { status: "running".into(), cause: "timer".into(), summary: String::new(), overdue_ms: 0 };
    let session = session("c", "count", items, Some(idle));
    let told = |item: &Item| {
        let what = item.step.as_ref().map(|step| step.id.clone()).or(item.action.clone()).unwrap_or_default();
        Heard { offset: item.offset, kind: item.kind.clone(), what, at_ms: item.at_ms }
    };
    let items = session.items.iter().filter(|item| item.kind != "end").map(told).collect();
    seen.streams.push(Stream { session: "c".into(), connections: 3, items, ended: true });
    seen.sessions.push(session);
}

/// An echoing session with inputs, and one that calls out.
fn echoing_and_calling(seen: &mut Seen) {
    sent(seen, "e", "create", 1, None);
    sent(seen, "e", "input", 2, Some("i-1"));
    sent(seen, "e", "input", 3, Some("i-2"));
    sent(seen, "e", "destroy", 1, None);
    let begin = |id: &str| {
        let create = format!("{id}-work-1");
        vec![event(1, "created", None, Some(&create)), event(2, "status", Some("running"), Some(&create))]
    };
    let end = |id: &str, at| {
        let destroy = format!("{id}-control-1");
        [event(at, "status", Some("stopping"), Some(&destroy)), event(at + 1, "status", Some("stopped"), None)]
    };
    let mut items = begin("e");
    items.extend([step("e", 3, 0, "i-1"), step("e", 4, 1, "i-2")]);
    items.extend(end("e", 5));
    seen.sessions.push(session("e", "echo", items, None));
    sent(seen, "h", "create", 1, None);
    sent(seen, "h", "destroy", 1, None);
    let mut items = begin("h");
    items.push(step("h", 3, 0, "done"));
    items.extend(end("h", 4));
    seen.sessions.push(session("h", "http", items, None));
    let (key, session, answer) = ("default:h:0:0".into(), "h".into(), "answered".into());
    seen.calls.push(Call { key, session, once: true, answer, at_ms: 1 });
}

fn good() -> Seen {
    let mut seen = Seen::default();
    counting(&mut seen);
    echoing_and_calling(&mut seen);
    talk::talking(&mut seen);
    proof::proven(&mut seen);
    let owner = |epoch, name: &str| Owner { shard: 0, owner: Some(name.into()), epoch, at_ms: epoch };
    seen.owners = vec![owner(1, "w1"), owner(2, "w2"), owner(3, "w1")];
    seen.takeovers.push(Takeover {
        fault: "kill worker".into(),
        worker: "w1".into(),
        at_ms: 5,
        alone: true,
        sessions: vec!["c".into()],
        gaps_ms: vec![Some(900)],
    });
    seen.fleet.idle = true;
    seen.fleet.health = "ok".into();
    seen.fleet.workers = vec!["w1".into()];
    seen.fleet.shards = vec![(0, Some("w1".into()), 2_000)];
    seen.fleet.doctor = Some(Doctor { sessions: 3, steps: 7, ..Doctor::default() });
    seen
}

#[test]
fn a_good_history_has_no_findings() {
    assert_eq!(all(&good()).told, []);
}

#[test]
fn every_breakage_is_noticed() {
    for what in Break::value_variants() {
        let mut seen = good();
        assert!(what.apply(&mut seen), "{what:?} finds nothing to break");
        let findings = all(&seen);
        let named = what.rules().iter().any(|rule| findings.counts.contains_key(rule));
        assert!(named, "{what:?} is not noticed as {:?}: {:#?}", what.rules(), findings.told);
    }
}

#[test]
fn what_the_fleet_says_of_itself_counts() {
    let told = |change: fn(&mut Seen)| {
        let mut seen = good();
        change(&mut seen);
        all(&seen).told.into_iter().map(|finding| finding.rule).collect::<Vec<_>>()
    };
    assert_eq!(told(|seen| seen.fleet.idle = false), ["not idle"]);
    assert_eq!(told(|seen| seen.fleet.log_lines.push("panicked".into())), ["log"]);
    assert_eq!(told(|seen| seen.fleet.alarms.extend([("broken".to_owned(), 1.0)])), ["alarm"]);
    assert_eq!(told(|seen| seen.fleet.garbage.push("x".into())), ["garbage lost"]);
    assert_eq!(told(|seen| seen.fleet.doctor = None), ["history unproven"]);
    assert_eq!(told(|seen| seen.takeovers[0].gaps_ms = vec![Some(60_000)]), ["slow take-over"]);
    assert_eq!(told(|seen| seen.takeovers[0].gaps_ms = vec![None]), ["never taken over"]);
}

#[test]
fn a_refusal_must_be_recorded_and_have_a_reason() {
    let mut seen = good();
    seen.sent[1].told = Told::Refused("session_ended".into());
    assert!(all(&seen).counts.contains_key("refusal unrecorded"));
    seen.sent[1].told = Told::Refused("internal".into());
    assert!(all(&seen).counts.contains_key("client refused"));
    seen.sent[1].told = Told::Nothing;
    assert!(all(&seen).counts.contains_key("client unheard"));
}
