//! A session's transitions with plain values: control, order, exactly-once guidance, failure.

mod answers;
mod paying;
mod saying;

use schemas::action::{Action, ActionOutcome, ActionType, Urgency};
use schemas::frame::{FrameOut, StepToken};
use schemas::id::{ActionId, AgentId, ConversationId, Epoch, Namespace, SessionId, SessionKey, Shard, TurnId};
use schemas::json::Json;
use schemas::problem::{Code, FieldProblem};
use schemas::record::StepStatus;
use schemas::session::{Cause, Head, SessionRow, SessionSpec, SessionStatus, StopReason};
use serde_json::{Value, json};

use super::*;
use crate::commit::Commit;
use crate::moniker::{Decision, Moniker, StepInput};

/// Counts in its state, fails on guidance `"fail"`, takes input if it is there.
struct Probe;

impl Moniker for Probe {
    fn name(&self) -> &'static str {
        "probe"
    }

    fn check(&self, _spec: &SessionSpec, _state: &Value) -> Vec<FieldProblem> {
        Vec::new()
    }

    fn takes_input(&self) -> bool {
        true
    }

    fn children(&self, _state: &Value) -> Vec<SessionId> {
        ["child-1", "child-2"].map(|id| SessionId::parse(id).unwrap()).to_vec()
    }

    fn cuts(&self, _spec: &SessionSpec, _state: &Value, causes: &[Option<Value>]) -> Vec<String> {
        causes.iter().flatten().map(|guidance| format!("call of {guidance}")).collect()
    }

    fn ends_work(&self, guidance: &Value) -> bool {
        guidance == "end"
    }

    fn decide(&self, input: &StepInput<'_>) -> Decision {
        if input.frame.guidance == Some(json!("fail")) {
            return Decision::Fail { code: Code::StepFailed, message: "told to".into() };
        }
        let n = input.frame.state["n"].as_u64().unwrap_or(0) + 1;
        let out = FrameOut {
            step: input.frame.step.clone(),
            next_step: StepToken::parse(&format!("n/{n}")).unwrap(),
            state: json!({"n": n}),
            text: Some(n.to_string()),
            data: None,
            done: n >= 100,
            notes: None,
        };
        Decision::Finish { out, took_arrival: input.arrival.is_some() }
    }
}

struct Bench {
    session: Session,
    now: i64,
    control: u64,
    work: u64,
    commits: Vec<Commit>,
}

impl Bench {
    fn new(change: impl FnOnce(&mut SessionSpec)) -> Self {
        Self::of(&Probe, change)
    }

    fn of(moniker: &'static dyn Moniker, change: impl FnOnce(&mut SessionSpec)) -> Self {
        let mut spec = SessionSpec {
            moniker: moniker.name().into(),
            task: None,
            config: Json::of(&json!({})),
            stop_on_done: true,
            max_steps: None,
            max_runtime_ms: None,
            loop_interval_ms: 0,
            conversation_id: None,
            parent: None,
        };
        change(&mut spec);
        let row = SessionRow {
            key: SessionKey::new(Namespace::default_ns(), SessionId::parse("s").unwrap()),
            agent_id: AgentId::parse("a").unwrap(),
            shard: Shard(0),
            spec,
            head: Head::starting(0),
            created_at_ms: 0,
            control_seq: 0,
            work_seq: 0,
        };
        let session = Session::resume(row, Json::null(), moniker);
        let mut bench = Self { session, now: 1_000, control: 0, work: 0, commits: Vec::new() };
        bench.post(ActionType::Create, json!({"moniker": moniker.name()}));
        bench
    }

    fn post(&mut self, kind: ActionType, payload: Value) {
        self.post_by("ana", kind, payload);
    }

    fn post_by(&mut self, actor: &str, kind: ActionType, payload: Value) {
        let counter = if kind.lane() == Lane::Control { &mut self.control } else { &mut self.work };
        *counter += 1;
        let (lane, session_seq) = (kind.lane().as_str(), *counter);
        let admission = self.session.admit(Action {
            namespace: Namespace::default_ns(),
            action_id: ActionId::parse(&format!("{lane}-{session_seq}")).unwrap(),
            kind,
            session_id: SessionId::parse("s").unwrap(),
            agent_id: AgentId::parse("a").unwrap(),
            conversation_id: None,
            shard: Shard(0),
            session_seq,
            urgency: Urgency::Normal,
            actor: actor.to_owned(),
            payload: Json::of(&payload),
            metadata: Json::null(),
            accepted_at_ms: 0,
            opens: None,
        });
        assert_eq!(admission, Admission::Admitted);
    }

    fn boundary(&mut self) -> Next {
        self.session.boundary(self.now)
    }

    /// One boundary and, if it allows one, one step.
    fn turn(&mut self) -> Next {
        let next = self.boundary();
        if next == Next::Step {
            let start = self.session.begin_step(self.now);
            match self.session.decider().decide(&start, &[]) {
                Decision::Finish { out, took_arrival } => {
                    self.session.finish_step(start, out, took_arrival, self.now);
                }
                Decision::Emit { out, took_arrival, emits } => {
                    self.session.finish_emitting(start, out, took_arrival, *emits, self.now);
                }
                Decision::AwaitInput => self.session.await_input(start, self.now),
                Decision::Fail { code, message } => {
                    self.session.fail_step(start, code, message, self.now);
                }
                other => panic!("{other:?}"),
            }
        }
        next
    }

    fn commit(&mut self) -> &Commit {
        let commit = self.session.take_commit(Epoch(1), self.now);
        self.commits.push(commit);
        self.commits.last().unwrap()
    }

    fn status(&self) -> SessionStatus {
        self.session.head().status
    }
}

#[test]
fn a_session_starts_with_its_create_action_and_chains_its_tokens() {
    let mut bench = Bench::new(|_| ());
    for _ in 0..3 {
        assert_eq!(bench.turn(), Next::Step);
    }
    let commit = bench.commit();
    assert_eq!((commit.expect_steps, commit.expect_offset), (0, 1));
    assert_eq!(commit.settled.len(), 1, "the create action is settled with the first commit");
    let steps = &commit.entry.steps;
    assert_eq!(steps.iter().map(|s| s.iteration).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(steps.windows(2).all(|pair| pair[0].next_step_token == pair[1].step_token));
    let mut offsets: Vec<u64> =
        steps.iter().map(|s| s.offset).chain(commit.entry.events.iter().map(|e| e.offset)).collect();
    offsets.sort_unstable();
    assert_eq!(offsets, (1..=offsets.len() as u64).collect::<Vec<_>>());
    assert_eq!(commit.entry.head.next_offset, offsets.len() as u64 + 1);
    assert!(!bench.session.is_dirty(), "what is taken is not taken again");
}

#[test]
fn the_next_commit_guards_what_the_one_before_left() {
    let mut bench = Bench::new(|_| ());
    bench.turn();
    let (steps, offset) = {
        let head = &bench.commit().entry.head;
        (head.steps, head.next_offset)
    };
    bench.turn();
    let commit = bench.commit();
    assert_eq!((commit.expect_steps, commit.expect_offset), (steps, offset));
}

#[test]
fn a_stop_waits_for_the_calls_that_are_cut_short_for_it_and_nothing_goes_before_it() {
    let mut bench = Bench::new(|spec| spec.loop_interval_ms = 60_000);
    bench.turn();
    bench.post(ActionType::Destroy, json!({}));
    bench.post(ActionType::Pause, json!({}));
    assert!(bench.session.cuts_calls());
    bench.session.hold_stop(true);
    assert_eq!((bench.boundary(), bench.status()), (Next::Step, SessionStatus::Running), "it takes what they came to");
    bench.session.hold_stop(false);
    assert_eq!((bench.boundary(), bench.status()), (Next::Rest, SessionStatus::Stopped));
}

#[test]
fn what_answers_a_call_is_of_work_that_waiting_guidance_ends_or_of_other_work() {
    let mut bench = Bench::new(|_| {});
    bench.turn();
    let ended = |bench: &Bench| ["call of \"end\"", "call of \"go\""].map(|key| bench.session.is_ended(key));
    bench.post(ActionType::Interrupt, json!({"guidance": "go"}));
    bench.post(ActionType::Destroy, json!({}));
    assert_eq!(ended(&bench), [false, false]);
    bench.post(ActionType::Interrupt, json!({"guidance": "end"}));
    assert_eq!(ended(&bench), [true, false]);
    assert!(bench.session.cut_short().contains(&"call of \"end\"".to_owned()));
}

#[test]
fn a_stop_that_finds_its_session_ended_is_no_failure() {
    let mut bench = Bench::new(|spec| spec.max_steps = Some(1));
    bench.turn();
    assert_eq!((bench.boundary(), bench.status()), (Next::Rest, SessionStatus::Stopped));
    bench.post(ActionType::Destroy, json!({}));
    bench.post(ActionType::Pause, json!({}));
    assert_eq!(bench.session.refuse_leftovers(1), 2);
    let outcomes: Vec<ActionOutcome> = bench.commit().settled.iter().map(|settled| settled.outcome).collect();
    assert!(outcomes.ends_with(&[ActionOutcome::Ok, ActionOutcome::Rejected]), "{outcomes:?}");
}

#[test]
fn a_limit_does_not_overtake_a_stop_that_waits() {
    let mut bench = Bench::new(|spec| spec.max_steps = Some(1));
    bench.turn();
    bench.post(ActionType::Destroy, json!({}));
    bench.session.hold_stop(true);
    assert_eq!((bench.boundary(), bench.status()), (Next::Step, SessionStatus::Running));
    bench.session.hold_stop(false);
    assert_eq!((bench.boundary(), bench.status()), (Next::Rest, SessionStatus::Stopped));
}

#[test]
fn pause_holds_guidance_and_input_until_resume() {
    let mut bench = Bench::new(|_| ());
    bench.turn();
    bench.post(ActionType::Interrupt, json!({"guidance": {"a": 1}}));
    bench.post(ActionType::Pause, json!({"reason": "lunch"}));
    bench.post(ActionType::Input, json!({"text": "x"}));
    for _ in 0..3 {
        assert_eq!(bench.turn(), Next::Wait { until_ms: None });
    }
    assert_eq!(bench.session.head().cause, Cause::Paused { by: "ana".into(), reason: Some("lunch".into()) });
    bench.post(ActionType::Resume, json!({}));
    bench.turn();
    bench.turn();
    let steps = bench.commit().entry.steps.clone();
    assert_eq!(steps.len(), 3);
    assert_eq!(steps[1].guidance, Some(Json::of(&json!({"a": 1}))));
    assert_eq!(steps[2].guidance, None, "guidance is seen once");
    let settled = &bench.commits[0].settled;
    assert_eq!(settled.len(), 5, "create, interrupt, pause, resume, input: {settled:?}");
}

#[test]
fn guidance_is_one_per_step_in_order() {
    let mut bench = Bench::new(|_| ());
    for n in 0..3 {
        bench.post(ActionType::Interrupt, json!({"guidance": n}));
    }
    for _ in 0..4 {
        bench.turn();
    }
    let seen: Vec<_> = bench.commit().entry.steps.iter().map(|s| s.guidance.clone().map(|g| g.to_value())).collect();
    assert_eq!(seen, [Some(json!(0)), Some(json!(1)), Some(json!(2)), None]);
}

#[test]
fn destroy_beats_everything_and_refuses_what_is_left() {
    let mut bench = Bench::new(|_| ());
    bench.turn();
    bench.post(ActionType::Pause, json!({}));
    bench.turn();
    bench.post(ActionType::Input, json!({}));
    bench.post(ActionType::Destroy, json!({}));
    assert_eq!(bench.turn(), Next::Rest);
    assert_eq!(
        (bench.status(), bench.session.head().stop_reason),
        (SessionStatus::Stopped, Some(StopReason::Destroyed))
    );
    assert_eq!(bench.session.refuse_leftovers(bench.now), 1);
    let commit = bench.commit();
    let statuses: Vec<_> =
        commit.entry.events.iter().filter_map(|e| e.data.to_value()["status"].as_str().map(str::to_owned)).collect();
    assert_eq!(statuses, ["running", "paused", "stopping", "stopped"]);
    assert!(commit.settled.iter().any(|s| s.outcome == ActionOutcome::Rejected && s.code == Some(Code::SessionEnded)));
}

#[test]
fn a_failed_step_keeps_its_token_and_resume_runs_it_again() {
    let mut bench = Bench::new(|_| ());
    bench.turn();
    bench.post(ActionType::Interrupt, json!({"guidance": "fail"}));
    bench.turn();
    assert_eq!(bench.status(), SessionStatus::Error);
    assert_eq!(bench.boundary(), Next::Rest);
    bench.post(ActionType::Resume, json!({}));
    bench.turn();
    let steps = &bench.commit().entry.steps;
    assert_eq!(steps.iter().map(|s| s.status).collect::<Vec<_>>(), [StepStatus::Ok, StepStatus::Error, StepStatus::Ok]);
    assert_eq!(steps.iter().map(|s| s.iteration).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(steps[1].step_token, steps[2].step_token);
    assert!(steps.windows(2).all(|pair| pair[0].next_step_token == pair[1].step_token), "S4 holds across a failure");
    assert_eq!(steps[1].state, steps[0].state, "a failed step changes no state");
}

#[test]
fn a_session_that_fails_beside_its_steps_keeps_guidance_and_input() {
    let mut bench = Bench::new(|_| ());
    bench.turn();
    bench.post(ActionType::Interrupt, json!({"guidance": 1}));
    bench.post(ActionType::Input, json!({}));
    bench.session.fail(Code::Internal, "cannot be stored".into(), bench.now);
    assert_eq!((bench.status(), bench.session.head().steps), (SessionStatus::Error, 2));
    assert_eq!(bench.session.head().last_error.as_deref(), Some("internal: cannot be stored"));
    bench.post(ActionType::Resume, json!({}));
    bench.turn();
    let commit = bench.commit();
    assert_eq!(commit.settled.len(), 4, "create, resume, interrupt, input: {:?}", commit.settled);
    let seen: Vec<_> = commit.entry.steps.iter().map(|s| (s.status, s.guidance.is_some())).collect();
    assert_eq!(seen, [(StepStatus::Ok, false), (StepStatus::Error, false), (StepStatus::Ok, true)]);
    bench.post(ActionType::Pause, json!({}));
    bench.turn();
    bench.session.fail(Code::Internal, "cannot be stored".into(), bench.now);
    assert_eq!(bench.status(), SessionStatus::Paused, "who does not run cannot fail");
}

#[test]
fn limits_and_done_end_a_session() {
    let mut bench = Bench::new(|spec| spec.max_steps = Some(2));
    while bench.turn() == Next::Step {}
    assert_eq!((bench.session.head().steps, bench.session.head().stop_reason), (2, Some(StopReason::MaxSteps)));

    let mut bench = Bench::new(|spec| spec.max_runtime_ms = Some(500));
    bench.turn();
    bench.now += 500;
    assert_eq!(bench.turn(), Next::Rest);
    assert_eq!(bench.session.head().stop_reason, Some(StopReason::MaxRuntime));

    let mut bench = Bench::new(|_| ());
    while bench.turn() == Next::Step {}
    assert_eq!((bench.status(), bench.session.head().steps), (SessionStatus::Completed, 100));

    let mut bench = Bench::new(|spec| spec.stop_on_done = false);
    for _ in 0..150 {
        assert_eq!(bench.turn(), Next::Step, "done does not end a continuous session");
    }
}

#[test]
fn an_interval_is_a_timer_that_urgent_guidance_cuts_short() {
    let mut bench = Bench::new(|spec| spec.loop_interval_ms = 3_000);
    bench.turn();
    assert_eq!(bench.turn(), Next::Wait { until_ms: Some(4_000) });
    bench.post(ActionType::Interrupt, json!({"guidance": 1}));
    assert_eq!(bench.turn(), Next::Wait { until_ms: Some(4_000) }, "plain guidance waits for the next step");
    bench.post(ActionType::Interrupt, json!({"guidance": 2, "mode": "now"}));
    assert_eq!(bench.turn(), Next::Step);
    bench.now = 4_000;
    assert_eq!(bench.session.head().cause, Cause::Timer);
}

#[test]
fn an_oversized_answer_fails_the_step() {
    let mut bench = Bench::new(|_| ());
    assert_eq!(bench.boundary(), Next::Step);
    let start = bench.session.begin_step(bench.now);
    let out = FrameOut {
        step: StepToken::start(),
        next_step: StepToken::start(),
        state: json!({}),
        text: Some("x".repeat(schemas::limits::TEXT_BYTES_MAX + 1)),
        data: None,
        done: false,
        notes: None,
    };
    assert_eq!(bench.session.finish_step(start, out, false, bench.now), StepTaken::Failed);
    assert_eq!(bench.status(), SessionStatus::Error);
    assert!(bench.session.head().last_error.as_ref().unwrap().starts_with("frame_invalid"));
}

#[test]
fn admission_drops_repeats_and_notices_gaps() {
    let mut bench = Bench::new(|_| ());
    bench.post(ActionType::Input, json!({}));
    let third = {
        let mut third = bench.session.work.iter().last().unwrap().clone();
        assert_eq!(bench.session.admit(third.clone()), Admission::Repeated);
        third.session_seq = 4;
        third
    };
    assert_eq!(bench.session.admit(third.clone()), Admission::Behind);
    assert_eq!(bench.session.work.wants().map(|(after, _)| after), Some(2));
    let mut filler = third.clone();
    filler.session_seq = 3;
    bench.session.work.refill(vec![filler, third], 4, 256);
    assert_eq!((bench.session.work.len(), bench.session.work.wants()), (4, None));
}

/// What the commit sends to other sessions.
fn told(bench: &mut Bench) -> Vec<(ActionType, String, String)> {
    let commit = bench.commit();
    let of = |one: &schemas::action::NewAction| {
        (one.kind, one.session_id.as_ref().unwrap().to_string(), one.action_id.to_string())
    };
    commit.follow_ups.iter().map(of).collect()
}

#[test]
fn a_pause_and_its_end_reach_the_children_once_with_the_commit_that_applies_them() {
    let mut bench = Bench::new(|_| ());
    bench.turn();
    assert!(told(&mut bench).is_empty());
    bench.post(ActionType::Pause, json!({"reason": "lunch"}));
    bench.boundary();
    let ids = |verb: ActionType, n: u64| {
        ["child-1", "child-2"].map(|child| (verb, child.to_owned(), format!("control-{n}.{child}"))).to_vec()
    };
    assert_eq!(told(&mut bench), ids(ActionType::Pause, 1));
    bench.post(ActionType::Pause, json!({}));
    bench.boundary();
    assert!(told(&mut bench).is_empty(), "it was paused already");
    bench.post(ActionType::Resume, json!({}));
    bench.boundary();
    assert_eq!(told(&mut bench), ids(ActionType::Resume, 3));
    bench.post(ActionType::Resume, json!({}));
    bench.boundary();
    assert!(told(&mut bench).is_empty(), "it was running already");
}

#[test]
fn a_caller_ends_the_pause_that_it_began_and_no_other() {
    let mut bench = Bench::new(|_| ());
    bench.turn();
    bench.post(ActionType::Pause, json!({}));
    bench.boundary();
    bench.post_by("session:boss", ActionType::Pause, json!({}));
    bench.post_by("session:boss", ActionType::Resume, json!({}));
    bench.boundary();
    assert_eq!(bench.status(), SessionStatus::Paused, "a person paused it");
    assert_eq!(bench.commit().settled.len(), 4, "and nothing is left over");
    bench.post(ActionType::Resume, json!({}));
    bench.boundary();
    bench.post_by("session:boss", ActionType::Pause, json!({}));
    bench.boundary();
    bench.post_by("session:boss", ActionType::Resume, json!({}));
    assert_eq!(bench.boundary(), Next::Step);
    bench.post_by("session:boss", ActionType::Pause, json!({}));
    bench.post(ActionType::Pause, json!({"reason": "mine"}));
    bench.post_by("session:boss", ActionType::Resume, json!({}));
    bench.boundary();
    let paused = Cause::Paused { by: "ana".into(), reason: Some("mine".into()) };
    assert_eq!((bench.status(), &bench.session.head().cause), (SessionStatus::Paused, &paused));
}

#[test]
fn a_context_is_gathered_ahead_of_the_commit_only_where_nothing_is_missed() {
    let talk = || {
        let conversation = schemas::id::ConversationId::parse("c").unwrap();
        let mut bench = Bench::of(&crate::converse::CONVERSE, |spec| spec.conversation_id = Some(conversation));
        bench.turn();
        bench.commit();
        bench
    };
    let posted = |turn: &str| json!({"text": "hello", "message_id": format!("m-{turn}"), "turn_id": turn});
    let may = |bench: &Bench| bench.session.may_read_ahead(&bench.session.calls());
    let mut bench = talk();
    bench.post(ActionType::Input, posted("t1"));
    bench.turn();
    assert!(bench.session.has_unsaved() && may(&bench), "the message is in the log");
    bench.commit();
    assert!(may(&bench), "nothing is unsaved");
    bench.post(ActionType::Input, posted("t2"));
    bench.turn();
    let calls = bench.session.calls();
    assert_eq!(calls.len(), 2, "{calls:?}");
    assert!(!bench.session.may_read_ahead(&calls), "one of two would not see the other");
    assert!(!bench.session.may_read_ahead(&calls[..1]) && bench.session.may_read_ahead(&calls[1..]));
    // What was not posted becomes a message with the step.
    let mut bench = talk();
    bench.post(ActionType::Input, json!({"text": "hello", "turn_id": "t1"}));
    bench.turn();
    assert!(!may(&bench), "the message is not in the log yet");
    bench.commit();
    assert!(may(&bench));
}

#[test]
fn what_is_nested_too_deep_fails_a_step_and_nothing_besides() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let row = |moniker: &'static dyn Moniker| {
        let bench = Bench::of(moniker, |spec| spec.conversation_id = schemas::id::ConversationId::parse("c").ok());
        let (key, agent_id) = (bench.session.key.clone(), bench.session.agent_id.clone());
        let head = Head { status: SessionStatus::Running, ..bench.session.head().clone() };
        let spec = (*bench.session.spec).clone();
        SessionRow { key, agent_id, shard: Shard(0), spec, head, created_at_ms: 0, control_seq: 0, work_seq: 1 }
    };
    let talk: &'static dyn Moniker = &crate::converse::CONVERSE;
    let session = Session::resume(row(talk), Json::parse(deep).unwrap(), talk);
    let mut bench = Bench { session, now: 1_000, control: 0, work: 1, commits: Vec::new() };
    bench.turn();
    assert_eq!(bench.status(), SessionStatus::Error, "an operator may look at it, and end it");
}

#[test]
fn a_caller_is_told_when_the_called_session_ends_before_its_input() {
    let mut bench = Bench::of(&crate::converse::CONVERSE, |spec| {
        spec.conversation_id = schemas::id::ConversationId::parse("c").ok();
    });
    bench.turn();
    bench.post(ActionType::Input, json!({"text": "hello", "reply_to": {"session_id": "s-0", "operation_id": "op"}}));
    bench.post(ActionType::Destroy, json!({}));
    bench.boundary();
    bench.session.refuse_leftovers(bench.now);
    let commit = bench.commit();
    let told = commit.follow_ups.iter().find(|new| new.kind == ActionType::ToolResult).expect("an answer");
    assert_eq!(told.session_id.as_ref().map(SessionId::as_str), Some("s-0"));
    assert!(told.payload.to_value()["error"]["message"].as_str().unwrap().contains("did not take its input"));
}

#[test]
fn a_step_of_a_conversation_names_its_turn() {
    let talks = |spec: &mut SessionSpec| spec.conversation_id = ConversationId::parse("c").ok();
    let mut bench = Bench::of(&crate::converse::CONVERSE, talks);
    bench.post(ActionType::Input, json!({"text": "hello"}));
    assert_eq!(bench.turn(), Next::Step);
    let turns: Vec<_> = bench.commit().entry.steps.iter().map(|step| step.turn_id.clone()).collect();
    assert_eq!(turns, [TurnId::parse("work-2").ok()]);
}

#[test]
fn only_the_first_create_opens_a_session_and_not_for_long() {
    let mut bench = Bench::new(|_| {});
    let mut create = bench.session.work.pop().expect("its create");
    (create.accepted_at_ms, create.session_seq) = (1_000, 1);
    assert_eq!(opened(&create, 1_001), None, "it says nothing of the session");
    create.opens = Some(Box::new((*bench.session.spec).clone()));
    let row = opened(&create, 1_001).expect("a session");
    assert_eq!((row.key, &row.spec, row.head), (create.key(), &*bench.session.spec, Head::starting(1_000)));
    assert_eq!(opened(&create, 1_000 + schemas::limits::FRESH_MS), None);
    assert_eq!(opened(&create, 999), None, "of a time to come nothing is known");
    assert_eq!(opened(&Action { session_seq: 2, ..create.clone() }, 1_001), None);
    assert_eq!(opened(&Action { kind: ActionType::Input, ..create }, 1_001), None);
}
