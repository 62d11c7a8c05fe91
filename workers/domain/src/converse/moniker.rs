//! The moniker: what arrives is planned, applied, and becomes one step.

use schemas::conversation::{LogKind, OperationKind, OperationState, TurnError};
use schemas::frame::{FrameOut, StepToken};
use schemas::id::{ConversationId, SessionId};
use schemas::json::Json;
use schemas::problem::{Code, FieldProblem};
use schemas::session::SessionSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use super::agents;
use super::answers::{self, ASSEMBLE, CHAT, COMPACT, EXTRACT, key};
use super::apply::{Applying, SESSION_ENDED, stub};
use super::budget;
use super::decision::TurnDecision;
use super::results::Named;
use super::settings::{self, Settings};
use super::state::{Approved, Lane, Open, Stage, TalkState};
use super::{guide, ids, results, start};
use crate::chat::ToolErrorCode;
use crate::effect::{Effect, PendingView, TalkCall, TalkWork};
use crate::moniker::{Arrival, ArrivalKind, Call, Decision, Emits, FollowUp, Moniker, StepInput};

/// Config: see [`Settings`]. Its state is a [`TalkState`].
pub struct Converse;

pub const CONVERSE: Converse = Converse;

impl Moniker for Converse {
    fn name(&self) -> &'static str {
        "converse"
    }

    fn check(&self, spec: &SessionSpec, state: &Value) -> Vec<FieldProblem> {
        let mut problems = settings::check(spec);
        // In it stands what a person has agreed to and whose sessions are at work: nobody brings that along.
        if state.as_object().is_none_or(|state| !state.is_empty()) {
            let message = "must be left out: a session that converses begins without turns";
            problems.push(FieldProblem::new("payload.state", message));
        }
        problems
    }

    fn stops_on_done(&self) -> bool {
        true
    }

    fn takes_input(&self) -> bool {
        true
    }

    fn takes_results(&self) -> bool {
        true
    }

    fn talks(&self) -> bool {
        true
    }

    fn calls(&self, spec: &SessionSpec, state: &Value) -> Vec<Call> {
        let (Ok(state), Some(conversation)) = (read(state), &spec.conversation_id) else { return Vec::new() };
        let pending = pending(&state);
        state.lanes.iter().filter_map(|lane| call(spec, conversation, lane, &state, &pending)).collect()
    }

    fn cuts(&self, _spec: &SessionSpec, state: &Value, causes: &[Option<Value>]) -> Vec<String> {
        if causes.is_empty() {
            return Vec::new();
        }
        let Ok(state) = read(state) else { return Vec::new() };
        causes.iter().flat_map(|guidance| guide::cuts(&state, guidance.as_ref())).collect()
    }

    fn ends_work(&self, guidance: &Value) -> bool {
        guide::ends_work(guidance)
    }

    fn decide(&self, input: &StepInput<'_>) -> Decision {
        let Some(conversation) = input.spec.conversation_id.clone() else {
            return Decision::Fail { code: Code::StepFailed, message: "the session has no conversation".to_owned() };
        };
        let state = match read(&input.frame.state) {
            Ok(state) => state,
            Err(problem) => return Decision::Fail { code: Code::StepFailed, message: problem },
        };
        let settings = Settings::of(input.spec);
        let asked = budget::asked(&state);
        let who = (conversation.clone(), input.session.session_id.clone(), input.agent.clone());
        let mut step = Applying::new(state, who, settings.depth, input.frame.step.as_str());
        let mut took_arrival = false;
        if let Some(guidance) = &input.frame.guidance {
            guide::take(&mut step, &start_of(input, &conversation), guidance);
        } else if let Some(answer) = input.answer {
            let place = answers::Place { input, conversation: &conversation, depth: settings.depth };
            if !answers::take(&mut step, &place, &answer.key, &answer.outcome) {
                return waiting(&step.state);
            }
        } else if let Some(arrival) = input.arrival {
            took_arrival = true;
            if let Some((code, message)) = arrived(&mut step, input, &conversation, arrival) {
                return Decision::Refuse { code, message };
            }
        } else {
            return waiting(&step.state);
        }
        // A turn that is about to end asks nobody whether it may go on.
        let is_last = input.answer.is_some_and(|answer| answer.outcome.reply().is_ok_and(|reply| reply.is_uncalled));
        if !is_last {
            budget::guard(&mut step, &asked);
        }
        finish(step, input, &settings, took_arrival)
    }

    fn children(&self, state: &Value) -> Vec<SessionId> {
        read(state).map(|state| state.children()).unwrap_or_default()
    }

    fn refused(&self, payload: &Value, problem: &str) -> Option<FollowUp> {
        agents::unanswered(payload, problem)
    }

    fn farewell(&self, input: &StepInput<'_>) -> Option<Emits> {
        let conversation = input.spec.conversation_id.clone()?;
        let state = read(&input.frame.state).ok().filter(|state| !state.lanes.is_empty())?;
        let turns: Vec<_> = state.lanes.iter().map(|lane| lane.turn.turn_id.clone()).collect();
        let who = (conversation, input.session.session_id.clone(), input.agent.clone());
        let mut step = Applying::new(state, who, 0, input.frame.step.as_str());
        for turn_id in turns {
            let error = TurnError {
                code: SESSION_ENDED.to_owned(),
                message: "the session ended before the turn did".to_owned(),
                provider: None,
                raw: None,
            };
            step.apply(vec![TurnDecision::FailTurn { turn_id, error, cancelled: true }]);
        }
        Some(step.into_emits())
    }
}

fn read(state: &Value) -> Result<TalkState, String> {
    TalkState::deserialize(state).map_err(|error| format!("the state of the conversation is damaged: {error}"))
}

fn waiting(state: &TalkState) -> Decision {
    let waits = state.lanes.iter().any(|lane| !lane.open.is_empty());
    if waits { Decision::AwaitOperation } else { Decision::AwaitInput }
}

/// Whose turns begin here.
fn start_of<'i>(input: &StepInput<'i>, conversation: &'i ConversationId) -> start::Place<'i> {
    start::Place { conversation, session: &input.session.session_id, agent: input.agent }
}

/// Takes what came; or says why it makes no sense.
fn arrived(
    step: &mut Applying,
    input: &StepInput<'_>,
    conversation: &ConversationId,
    arrival: &Arrival,
) -> Option<(Code, String)> {
    if arrival.kind == ArrivalKind::Input {
        if let Some(objection) = step.state.object_to_input(&arrival.payload) {
            return Some(objection);
        }
        let decisions = start::plan(&start_of(input, conversation), arrival);
        let message = "a turn with this id is active already; leave turn_id out";
        return (!start::begin(step, decisions)).then(|| (Code::InvalidRequest, message.to_owned()));
    }
    let known = |named: Named<'_>| {
        let mut opens = step.state.lanes.iter().flat_map(|lane| &lane.open);
        let found = match named {
            Named::Operation(id) => opens.find(|open| open.operation_id.as_str() == id),
            // What a person is asked is answered by its own id, which the gateway guards.
            Named::Call(id) => opens.find(|open| open.call_id == id && open.approved.is_none() && is_task(open)),
        };
        found.map(|open| (open.operation_id.clone(), open.call_id.clone()))
    };
    let Some(ended) = results::read(&arrival.payload, known) else {
        if answers::called_for(step, &arrival.payload) || agents::counted_late(step, &arrival.payload) {
            return None;
        }
        let message = "no turn of this session waits for that operation; the first result has won".to_owned();
        return Some((Code::NoOpenOperation, message));
    };
    settle(step, &ended, arrival.accepted_at_ms);
    None
}

fn is_task(open: &Open) -> bool {
    open.kind == OperationKind::Task
}

/// Takes a result out of the open work of its lane, and goes on.
fn settle(step: &mut Applying, ended: &super::state::Ended, at_ms: i64) {
    let Some((lane, open)) = step.state.lane_of(&ended.operation_id) else { return };
    if let Some(Approved::Budget { scope, times }) = open.approved {
        let (open, (is_yes, _)) = (open.clone(), results::answer(&ended.result));
        return budget::answered(step, &open, (scope, times), is_yes, at_ms);
    }
    let (turn, mut open, number) = (lane.turn.turn_id.clone(), open.clone(), lane.turn.moves);
    step.emits.turn = Some(turn.clone());
    if let Some(Approved::Agent { call }) = &mut open.approved {
        // It may have been looped in while a person was asked.
        call.sit(&step.state.seats_since(lane));
    }
    let settled = results::plan(lane, &open, ended);
    if let Some(result) = &settled.result {
        if !open.is_async {
            let id = answers::bounded(ids::record_id_of(&turn, ids::RESULT, &open.operation_id));
            step.record(LogKind::ToolResult, &turn, id, &answers::SyncResult { number, result });
        }
        if let Some(error) = &result.error {
            let of = (open.tool.as_str(), open.call_id.as_str());
            answers::failed_tool(step, &turn, open.operation_id.as_str(), of, &json!(error));
        }
    }
    // Acceptance has ended the operation if it was named by its own id.
    if ended.payload.get("operation_id").is_none_or(Value::is_null) {
        let is_ok = ended.result.error.is_none();
        let state = if is_ok { OperationState::Completed } else { OperationState::Failed };
        step.emits.talk.operations.push(stub(&turn, &open.operation_id, open.kind, state));
    }
    answers::called_for(step, &ended.payload);
    if open.kind == OperationKind::Agent {
        step.state.spend(&turn, agents::usage_of(&ended.payload));
        // Its time was over: nobody waits for the session that works on it.
        let is_late = ended.result.error.as_ref().is_some_and(|error| error.code == ToolErrorCode::Timeout);
        if let Some(child) = open.child.as_ref().filter(|_| is_late) {
            step.emits.follow_ups.push(agents::stop(&open.operation_id, child));
            step.state.note_stopped(&turn, &open.operation_id);
        }
    }
    if let Some(lane) = step.state.lane_mut(&turn)
        && (!open.is_async || settled.result.is_none())
    {
        lane.open.retain(|other| other.operation_id != open.operation_id);
    }
    step.apply(settled.decisions);
}

fn finish(mut step: Applying, input: &StepInput<'_>, settings: &Settings, took_arrival: bool) -> Decision {
    step.finish();
    let next_step = token(&step.state);
    let done = settings.single_turn && step.state.turns_started > 0 && step.state.lanes.is_empty();
    let out = FrameOut {
        step: input.frame.step.clone(),
        next_step,
        state: json!(step.state),
        text: step.said.take(),
        data: Some(json!({ "decisions": step.names })),
        done,
        notes: None,
    };
    Decision::Emit { out, took_arrival, emits: Box::new(step.emits) }
}

/// What comes next, as far as one token can say it (SPEC 2.1).
fn token(state: &TalkState) -> StepToken {
    let rank = |lane: &&Lane| match lane.stage {
        Stage::Think => 0,
        Stage::Compact => 1,
        Stage::Assemble => 2,
        Stage::Extract => 3,
        Stage::Wait => 4,
        Stage::WaitAsync | Stage::Queued => 5,
    };
    let text = match state.lanes.iter().min_by_key(rank) {
        None => "idle".to_owned(),
        Some(lane) => {
            let turn = &lane.turn.turn_id;
            match lane.stage {
                Stage::Think => format!("t/{turn}/move/{}", lane.next_reply()),
                Stage::Compact => format!("t/{turn}/compact/{}", lane.compactions + 1),
                Stage::Assemble | Stage::Queued => format!("t/{turn}/assemble"),
                Stage::Extract => format!("t/{turn}/extract"),
                Stage::Wait | Stage::WaitAsync => format!("t/{turn}/wait"),
            }
        }
    };
    StepToken::parse(&text).unwrap_or_else(|_| StepToken::start())
}

fn pending(state: &TalkState) -> Vec<PendingView> {
    let opens = state.lanes.iter().flat_map(|lane| lane.open.iter().map(move |open| (lane, open)));
    opens
        .map(|(lane, open)| PendingView {
            turn_id: lane.turn.turn_id.clone(),
            operation_id: open.operation_id.clone(),
            tool: open.tool.clone(),
        })
        .collect()
}

fn call(
    spec: &SessionSpec,
    conversation: &ConversationId,
    lane: &Lane,
    state: &TalkState,
    pending: &[PendingView],
) -> Option<Call> {
    let turn = &lane.turn.turn_id;
    let summary = state.summary.as_ref().map(|known| known.id.clone());
    let assembly = lane.turn.context_assembly_run_id.clone().filter(|_| lane.per_call());
    let (what, number, work) = match lane.stage {
        Stage::Assemble => {
            let mut settings = json!(Settings::of(spec));
            settings["notes"] = lane.notes.iter().chain(&state.notes).cloned().collect();
            settings["summary"] = json!(summary);
            settings["input_message_id"] = json!(lane.turn.input_message_id);
            let work = TalkWork::Assemble { settings: Json::of(&settings), pending: pending.to_vec() };
            (ASSEMBLE, lane.turn.moves, work)
        }
        Stage::Think => {
            let number = lane.next_reply();
            let without_tools = lane.limits.as_ref().is_some_and(|limits| lane.rounds >= limits.max_rounds);
            let may_compact = lane.compacted_for != Some(number);
            let checks = budget::checks(lane, state);
            (CHAT, number, TalkWork::Chat { number, assembly, without_tools, summary, may_compact, checks })
        }
        Stage::Compact => {
            let (number, compaction) = (lane.compactions + 1, lane.compaction.as_ref()?);
            let (asked, without_model) = (!compaction.calls.is_empty(), compaction.without_model);
            let checks = budget::checks(lane, state);
            (COMPACT, number, TalkWork::Compact { number, assembly, summary, asked, without_model, checks })
        }
        Stage::Extract => (EXTRACT, 0, TalkWork::Extract),
        Stage::Queued | Stage::Wait | Stage::WaitAsync => return None,
    };
    let agent = lane.turn.agent_id.clone();
    let (conversation, parent) = (conversation.clone(), lane.parent.clone());
    let talk = TalkCall { conversation, agent, turn: turn.clone(), parent, at_hand: None, what: work };
    Some(Call { key: key(turn, what, number), effect: Effect::Talk(Box::new(talk)) })
}
