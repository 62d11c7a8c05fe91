//! What steps ask of models, and budgets that do not allow it.

use schemas::event::EventKind;
use schemas::limits::PROVIDER_CALL_BYTES_MAX;

use super::*;
use crate::chat::{CallContext, ProviderCallRecord, Usage};
use crate::converse::{Measure, Over, Scope};
use crate::effect::{Asked, Effect, ModelRequest, Outcome};

fn asked(tokens: u64) -> Outcome {
    let mut record = ProviderCallRecord::open("c", &CallContext::default(), "p", "m", false, 0);
    record.usage = Some(Usage { input_tokens: tokens, total_tokens: tokens, ..Usage::default() });
    record.cost = Some(0.5);
    Asked { answer: Ok(json!({})), record: Some(record), over: None }.into()
}

fn request() -> Effect {
    Effect::Model(ModelRequest {
        agent: AgentId::parse("a").unwrap(),
        conversation: None,
        profile: None,
        system: String::new(),
        prompt: String::new(),
        max_tokens: 1,
        json: false,
        used: Default::default(),
        since_ms: 0,
        unrecorded: Default::default(),
    })
}

/// What a request of a step is told, after these outcomes: calls, tokens and cost of its session and of its step, and
/// since when its time counts.
fn billed(bench: &Bench, before: &[Outcome]) -> ((u64, u64, u64), (u64, u64, u64), i64) {
    let mut effect = request();
    bench.session.bill(&mut effect, before, bench.now);
    let Effect::Model(ModelRequest { used, unrecorded, since_ms, .. }) = effect else { panic!("{effect:?}") };
    let step = (unrecorded.calls, unrecorded.tokens, unrecorded.cost_nanos);
    ((used.calls, used.tokens, used.cost_nanos), step, since_ms)
}

fn over(scope: Scope, what: Measure) -> Over {
    Over { scope, what, used: 9.0, next: 0.0, limit: 5.0, more: 10.0, times: 2 }
}

#[test]
fn calls_are_events_of_the_commit_and_counted_with_those_of_the_step_that_runs() {
    let mut bench = Bench::new(|_| ());
    bench.turn();
    assert_eq!(billed(&bench, &[]), ((0, 0, 0), (0, 0, 0), 1_000), "since it started");
    let before = [asked(7), Outcome::Ok(json!({}))];
    assert_eq!(billed(&bench, &before), ((0, 0, 0), (1, 7, 500_000_000), 1_000));
    // Of one there is no room for all that is known.
    let mut long = asked(8);
    let Outcome::Asked(answered) = &mut long else { panic!("{long:?}") };
    let note = json!("x".repeat(PROVIDER_CALL_BYTES_MAX));
    answered.record.as_mut().expect("a record").response_metadata.insert("note".to_owned(), note);
    bench.session.note_calls(&[asked(7), long, Outcome::Ok(json!({}))], bench.now);
    assert_eq!(billed(&bench, &[asked(1)]), ((2, 15, 1_000_000_000), (1, 1, 500_000_000), 1_000));
    let commit = bench.commit().clone();
    let calls: Vec<_> = commit.entry.events.iter().filter(|event| event.kind == EventKind::ProviderCall).collect();
    assert_eq!(calls.len(), 2);
    assert!(calls[0].offset < calls[1].offset && calls[1].offset < commit.entry.head.next_offset);
    assert_ne!(calls[0].data.to_value()["id"], calls[1].data.to_value()["id"], "both are billed");
    let longest = calls.iter().map(|call| call.data.as_str().len()).max();
    assert!(longest <= Some(PROVIDER_CALL_BYTES_MAX), "{longest:?}");
    assert_eq!(commit.entry.head.models.as_ref().map(|used| used.calls), Some(2));
    let spent: Vec<u64> = crate::spending::Spent::of_steps(&commit.entry).map(|spent| spent.tokens).collect();
    assert_eq!(spent, [7, 8]);
}

#[test]
fn a_budget_pauses_the_session_before_its_step_and_a_resume_is_a_yes() {
    for (scope, raised) in [(Scope::Session, (2, 0)), (Scope::Namespace, (0, 2))] {
        let mut bench = Bench::new(|_| ());
        bench.turn();
        assert_eq!(bench.boundary(), Next::Step);
        let start = bench.session.begin_step(bench.now);
        bench.session.hold(start, (&over(scope, Measure::Moves), &[]), bench.now);
        assert_eq!((bench.status(), bench.session.head().steps), (SessionStatus::Paused, 1));
        assert!(matches!(&bench.session.head().cause, Cause::Paused { by, reason: Some(_) } if by == "budgets"));
        assert_eq!(bench.boundary(), Next::Wait { until_ms: None });
        bench.now = 9_000;
        bench.post(ActionType::Resume, json!({}));
        assert_eq!(bench.boundary(), Next::Step);
        let models = bench.session.head().models.clone().expect("its use");
        assert_eq!((models.raised_session, models.raised_namespace, models.held), (raised.0, raised.1, None));
        let counts_anew = scope == Scope::Session;
        assert_eq!(billed(&bench, &[]).2, if counts_anew { 9_000 } else { 1_000 });
        // Another pause is nobody's budget.
        bench.post(ActionType::Pause, json!({}));
        bench.boundary();
        bench.post(ActionType::Resume, json!({}));
        assert_eq!(bench.boundary(), Next::Step);
        assert_eq!(bench.session.head().models, Some(models), "nothing more is allowed");
    }
}

/// A step that takes longer than its session may would be held without end, as often as it is allowed.
#[test]
fn time_that_is_allowed_counts_from_where_the_step_was_held() {
    let mut bench = Bench::new(|_| ());
    bench.turn();
    let start = bench.session.begin_step(bench.now);
    bench.now += 7_500;
    let seconds = Over { more: 5.0, times: 1, ..over(Scope::Session, Measure::Seconds) };
    bench.session.hold(start, (&seconds, &[asked(1)]), bench.now);
    let Cause::Paused { reason: Some(reason), .. } = &bench.session.head().cause else { panic!("it is held") };
    assert!(reason.ends_with("it may use 12.5 seconds from the answer on besides"), "{reason}");
    bench.now = 20_000;
    bench.post(ActionType::Resume, json!({}));
    assert_eq!(bench.boundary(), Next::Step);
    assert_eq!(billed(&bench, &[]).2, 20_000 + 7_500);
    assert_eq!(bench.session.head().models.as_ref().map(|models| models.raised_session), Some(1));
}

/// Nothing is made again of a step that was held before it had asked anybody.
#[test]
fn time_that_passed_before_a_step_asked_is_not_allowed_besides() {
    let mut bench = Bench::new(|_| ());
    bench.turn();
    let start = bench.session.begin_step(bench.now);
    bench.now += 7_500;
    let seconds = Over { more: 5.0, times: 1, ..over(Scope::Session, Measure::Seconds) };
    bench.session.hold(start, (&seconds, &[]), bench.now);
    let Cause::Paused { reason: Some(reason), .. } = &bench.session.head().cause else { panic!("it is held") };
    assert!(reason.ends_with("it may use 5 seconds from the answer on besides"), "{reason}");
    bench.now = 20_000;
    bench.post(ActionType::Resume, json!({}));
    assert_eq!(bench.boundary(), Next::Step);
    assert_eq!(billed(&bench, &[]).2, 20_000);
}

/// Else two bounds that one step does not fit into hold it in turns, without end.
#[test]
fn a_yes_to_another_bound_does_not_take_back_the_time_that_a_step_needs() {
    let mut bench = Bench::new(|_| ());
    bench.turn();
    let start = bench.session.begin_step(bench.now);
    bench.now += 7_500;
    bench.session.hold(start, (&over(Scope::Session, Measure::Tokens), &[asked(1)]), bench.now);
    bench.now = 20_000;
    bench.post(ActionType::Resume, json!({}));
    assert_eq!(bench.boundary(), Next::Step);
    assert_eq!(billed(&bench, &[]).2, 20_000 + 7_500);
}

#[test]
fn a_session_that_is_being_stopped_is_not_paused() {
    let mut bench = Bench::new(|_| ());
    bench.turn();
    let start = bench.session.begin_step(bench.now);
    bench.post(ActionType::Destroy, json!({}));
    bench.session.begin_stopping(bench.now);
    bench.session.hold(start, (&over(Scope::Session, Measure::Cost), &[]), bench.now);
    bench.boundary();
    assert_eq!(bench.status(), SessionStatus::Stopped);
}

#[test]
fn what_was_asked_before_the_budget_was_met_is_no_answer_to_it() {
    let mut bench = Bench::new(|_| ());
    bench.turn();
    let start = bench.session.begin_step(bench.now);
    bench.post(ActionType::Resume, json!({}));
    bench.session.hold(start, (&over(Scope::Session, Measure::Moves), &[]), bench.now);
    bench.boundary();
    assert_eq!(bench.status(), SessionStatus::Paused, "it was sent before anybody was asked");
    bench.post(ActionType::Resume, json!({}));
    assert_eq!(bench.boundary(), Next::Step);
    // A pause that was asked for meanwhile is a person's, and its end no yes.
    let start = bench.session.begin_step(bench.now);
    bench.post(ActionType::Pause, json!({}));
    bench.session.hold(start, (&over(Scope::Session, Measure::Moves), &[]), bench.now);
    assert!(matches!(&bench.session.head().cause, Cause::Paused { by, .. } if by == "ana"));
    let raised = bench.session.head().models.as_ref().map(|models| models.raised_session);
    bench.post(ActionType::Resume, json!({}));
    assert_eq!(bench.boundary(), Next::Step);
    assert_eq!(bench.session.head().models.as_ref().map(|models| models.raised_session), raised);
}

/// Of each measure what it counts, in whole budgets; a budget of nothing is allowed no more often for it.
#[test]
fn what_is_made_again_is_allowed_in_whole_budgets() {
    let made = [asked(4), asked(4), asked(4)];
    for (what, more, times, expected) in [
        (Measure::Moves, 10.0, 2, 3),
        (Measure::Tokens, 10.0, 2, 2 + 3),
        (Measure::Cost, 2.0, 2, 2 + 2),
        (Measure::Tokens, 0.0, 1, 1),
    ] {
        let mut bench = Bench::new(|_| ());
        bench.turn();
        let start = bench.session.begin_step(bench.now);
        let over = Over { more, times, ..over(Scope::Session, what) };
        bench.session.hold(start, (&over, &made), bench.now);
        let held = bench.session.head().models.as_ref().and_then(|models| models.held).expect("it is held");
        assert_eq!(held.times, expected, "{what:?}: {more} in {times}");
    }
}

#[test]
fn a_yes_is_enough_for_the_whole_step_which_begins_anew() {
    let mut bench = Bench::new(|_| ());
    bench.turn();
    let start = bench.session.begin_step(bench.now);
    bench.session.hold(start, (&over(Scope::Namespace, Measure::Moves), &[asked(1), asked(1), asked(1)]), bench.now);
    let held = bench.session.head().models.as_ref().and_then(|models| models.held).expect("it is held");
    assert_eq!(held.times, 2 + 1, "a bound of 5 moves has room for 3 more");
    let Cause::Paused { reason: Some(reason), .. } = &bench.session.head().cause else { panic!("{held:?}") };
    assert!(reason.ends_with("it may use 15 moves besides"), "{reason}");
}
