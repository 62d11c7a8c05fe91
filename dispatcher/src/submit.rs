//! How an action gets in: parse, accept (durable), answer, publish.

use std::time::SystemTime;

use axum::Json;
use axum::http::{HeaderMap, StatusCode};
use domain::action::{self, ParseContext};
use domain::converse;
use domain::failure::{Certainty, Failure};
use domain::moniker;
use domain::ports::{Refusal, TurnQuery, Verdict};
use domain::read;
use domain::tool::{is_result_id, result_id};
use host::trace::{self, Stage};
use schemas::action::{Action, ActionType, Lane, NewAction};
use schemas::api::AcceptedBody;
use schemas::conversation::{OperationKind, Turn, TurnStatus};
use schemas::id::{ActionId, MessageId, OperationId, SessionKey, TurnId};
use schemas::limits::{GUIDANCE_WAITING_MAX, PAGE_MAX, SESSION_TURNS_MAX};
use schemas::problem::{Code, FieldProblem, Problem};
use schemas::session::SessionRow;
use schemas::telemetry::metric;
use serde_json::Value;
use tokio::time::Instant;

use crate::again;
use crate::answer::{Answer, Refused};
use crate::caller::{Caller, scope_of};
use crate::delegated;
use crate::extract::idempotency_key;
use crate::gateway::Gateway;

pub type AcceptedAnswer = Answer<(StatusCode, Json<AcceptedBody>)>;

/// Fields of inputs that say something of messages to sessions that converse.
const OF_MESSAGES: [&str; 2] = ["message_id", "busy"];

/// Takes one action. Durable when it answers.
pub async fn submit(gateway: &Gateway, caller: &Caller, headers: &HeaderMap, body: &Value) -> AcceptedAnswer {
    let (started, begun) = (Instant::now(), trace::begin());
    let answer = try_submit(gateway, caller, headers, body, begun).await;
    match &answer {
        Ok(_) => metrics::histogram!(metric::ACCEPT_SECONDS).record(started.elapsed().as_secs_f64()),
        Err(refused) => metrics::counter!(metric::ACTIONS_REFUSED, "code" => refused.0.code.as_str()).increment(1),
    }
    answer
}

async fn try_submit(
    gateway: &Gateway,
    caller: &Caller,
    headers: &HeaderMap,
    body: &Value,
    begun: Option<SystemTime>,
) -> AcceptedAnswer {
    // Scope first: a caller without it learns nothing about the rest.
    if let Some(kind) = body.get("type").and_then(Value::as_str).and_then(ActionType::parse) {
        caller.need(scope_of(kind))?;
    }
    let mut new = action::parse(body, context(gateway, caller, idempotency_key(headers)?))?;
    if let Some(body) = admit(gateway, &mut new).await? {
        return Ok((StatusCode::ACCEPTED, Json(body)));
    }
    // Spans of the client's own trace are found by this.
    let client = headers.get("traceparent").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let body = accept(gateway, new, begun, client).await?;
    Ok((StatusCode::ACCEPTED, Json(body)))
}

/// Checks an action. `Some`: the answer to one that leaves nothing to accept, since the work that it tells of is tried
/// again; all others are for the ledger.
pub async fn admit(gateway: &Gateway, new: &mut NewAction) -> Answer<Option<AcceptedBody>> {
    check(gateway, new).await?;
    again::put_back(gateway, new).await
}

/// Accepts a checked action, and sends it on its way if it is new.
pub async fn accept(
    gateway: &Gateway,
    new: NewAction,
    begun: Option<SystemTime>,
    client: &str,
) -> Answer<AcceptedBody> {
    let action_id = new.action_id.clone();
    let verdicts = gateway.ledger.accept(vec![new]).await.map_err(|failure| unanswered(&action_id, failure))?;
    let verdict = verdicts.into_iter().next();
    let verdict = verdict.ok_or_else(|| Refused::new(Code::Internal, "The ledger gave no verdict."))?;
    send_on(gateway, &action_id, verdict, begun, client).await
}

/// What a verdict means for the client; a new action is put on its way.
pub async fn send_on(
    gateway: &Gateway,
    action_id: &ActionId,
    verdict: Verdict,
    begun: Option<SystemTime>,
    client: &str,
) -> Answer<AcceptedBody> {
    let (accepted, body) = settle(action_id, verdict)?;
    if let Some(action) = accepted {
        accepted_at(begun, &action, client);
        publish(gateway, action).await;
    }
    Ok(body)
}

/// What the parser needs besides the body.
pub fn context(gateway: &Gateway, caller: &Caller, idempotency_key: Option<String>) -> ParseContext {
    ParseContext {
        namespace: caller.namespace.clone(),
        actor: caller.name.clone(),
        action_id: gateway.fresh_id(),
        session_id: gateway.fresh_id(),
        agent_id: gateway.fresh_id(),
        idempotency_key,
    }
}

/// A caller who chose no id needs the one that was made, or a repeat would act twice.
fn unanswered(action_id: &ActionId, failure: Failure) -> Refused {
    let in_doubt = failure.certainty == Certainty::MayHaveHappened;
    let mut refused = Refused::from(failure);
    if in_doubt {
        refused.0.detail.push_str(&format!(" That is {action_id}."));
    }
    refused
}

/// Turns a verdict into an answer, and the action that is to be put on its way if it is new.
fn settle(action_id: &ActionId, verdict: Verdict) -> Answer<(Option<Action>, AcceptedBody)> {
    let (action, accepted) = match verdict {
        Verdict::Accepted(new) => (new.action, true),
        Verdict::Repeated(old) => (old.action, false),
        Verdict::Refused(refusal) => return Err(refused(action_id, refusal)),
    };
    let body = AcceptedBody { action_id: action.action_id.clone(), session_id: action.session_id.clone(), accepted };
    Ok((accepted.then_some(action), body))
}

/// Notes in the action's trace that it was accepted. `client`: the `traceparent` header, or empty.
pub fn accepted_at(begun: Option<SystemTime>, action: &Action, client: &str) {
    trace::end(begun, Stage::Accept, &action.namespace, &action.action_id, || {
        [
            ("stepfleet.session_id", action.session_id.to_string()),
            ("stepfleet.action_type", action.kind.as_str().to_owned()),
            ("http.request.header.traceparent", client.to_owned()),
        ]
    });
}

/// Sends a new action on its way, unless it ended with its acceptance (its place is 0 then).
pub async fn publish(gateway: &Gateway, action: Action) {
    metrics::counter!(metric::ACTIONS_ACCEPTED, "type" => action.kind.as_str()).increment(1);
    if action.session_seq == 0 {
        return;
    }
    if gateway.queue.is_durable() {
        gateway.publisher.offer(action);
    } else if let Err(failure) = gateway.queue.publish(std::slice::from_ref(&action)).await {
        // A queue in this process takes it at once or not at all; the owner polls the ledger.
        tracing::debug!(error = %failure.message, action.id = %action.action_id, "not queued");
    }
}

fn refused(action_id: &ActionId, refusal: Refusal) -> Refused {
    let mut refused = named(refusal.code, with_remedy(refusal.code, &refusal.detail));
    refused.0.action_id = refusal.recorded.then(|| action_id.to_string());
    refused
}

/// A refusal that names the field to mend, as those of malformed bodies do. Clients show fields in the
/// place of the detail, so what is said of the field is all that there is to say.
fn named(code: Code, detail: String) -> Refused {
    let mut problem = Problem::new(code, detail);
    if let Some(field) = field_of(code) {
        problem.errors = vec![FieldProblem::new(field, problem.detail.clone())];
    }
    problem.into()
}

/// The field of an action that a refusal is about.
fn field_of(code: Code) -> Option<&'static str> {
    match code {
        Code::SessionNotFound | Code::SessionEnded | Code::SessionExists => Some("session_id"),
        Code::AgentNotFound | Code::WrongAgent => Some("agent_id"),
        Code::ActionConflict => Some("action_id"),
        Code::InputNotTaken => Some("type"),
        _ => None,
    }
}

/// The store says what is wrong; what to do is the same each time.
pub fn with_remedy(code: Code, detail: &str) -> String {
    let remedy = match code {
        Code::SessionNotFound => "GET /api/sessions lists those there are.",
        Code::AgentNotFound => "GET /api/agents lists those that have one.",
        Code::WrongAgent => "Send the agent_id of the session, or leave agent_id out.",
        Code::SessionEnded => {
            "An ended session takes no actions: create another. One in error takes resume and destroy."
        }
        Code::SessionExists => "Choose another session_id, or leave it out to get a fresh one.",
        Code::ActionConflict => "Use a fresh action_id for a new action.",
        _ => return detail.to_owned(),
    };
    format!("{}. {remedy}", detail.trim_end_matches('.'))
}

/// What is refused before the ledger sees it. What some fields mean depends on the session, so what has them is for the
/// session it was checked against, and for no other that is created meanwhile.
async fn check(gateway: &Gateway, new: &mut NewAction) -> Answer<()> {
    check_id(new)?;
    check_result(gateway, new).await?;
    check_place(gateway, new).await?;
    if !matches!(new.kind, ActionType::Input | ActionType::Interrupt) {
        return Ok(());
    }
    let Some(row) = target(gateway, new).await? else {
        return if depends_on_session(new) { unknown(new) } else { Ok(()) };
    };
    if let Some((code, detail)) = objection(gateway, &row, new).await? {
        return Err(named(code, detail));
    }
    if new.session_id.is_none() && depends_on_session(new) {
        new.session_id = Some(row.key.session_id);
    }
    Ok(())
}

/// Whoever had the id that ends an operation for something else would keep it from ending.
fn check_id(new: &NewAction) -> Answer<()> {
    if !is_result_id(&new.action_id) || action::result_of(new).is_some_and(|(id, _)| result_id(&id) == new.action_id) {
        return Ok(());
    }
    Err(Refused::field("action_id", "is kept for the end of an operation; choose another one"))
}

/// Nobody comes by a session of their own into the conversation of a call, whatever that session is called.
async fn check_place(gateway: &Gateway, new: &NewAction) -> Answer<()> {
    let Some(session) = &new.session else { return Ok(()) };
    let Some(id) = &session.spec.conversation_id else { return Ok(()) };
    let objection = delegated::objection_at(gateway, &new.namespace, id).await?;
    objection.map_or(Ok(()), |problem| Err(problem.into()))
}

/// Whether an action is checked against its session, which must be there by then.
pub fn needs_session(new: &NewAction) -> bool {
    new.kind == ActionType::ToolResult || depends_on_session(new)
}

/// Whether an action has fields that mean something to sessions that converse, and to others whatever they like.
fn depends_on_session(new: &NewAction) -> bool {
    let says_of_messages = || {
        let payload = new.payload.to_value();
        new.kind == ActionType::Input && OF_MESSAGES.iter().any(|name| !payload[*name].is_null())
    };
    claim(new).is_some() || says_of_messages()
}

/// The session may be on its way, and be one that such an action must not reach.
fn unknown(new: &NewAction) -> Answer<()> {
    let (code, detail) = match (&new.session_id, &new.agent_id) {
        (None, Some(agent)) => (Code::AgentNotFound, format!("agent {agent} has no session; create one first")),
        (Some(session), _) => (Code::SessionNotFound, format!("there is no session {session}; create it first")),
        (None, None) => return Ok(()),
    };
    Err(named(code, with_remedy(code, &detail)))
}

/// The same for an action that the gateway itself makes of a request: it may say what no client may. `row`: that of
/// its session. `is_fresh`: its ids were made just now, so there is no turn of that id; `is_busy`: others may be there.
pub async fn check_own(
    gateway: &Gateway,
    row: &SessionRow,
    new: &NewAction,
    (is_fresh, is_busy): (bool, bool),
) -> Answer<()> {
    let objection = match new.kind {
        ActionType::Input if is_fresh => match object_to_input(row, new) {
            None if is_busy && talks(row) => object_to_turns(gateway, row, new).await?,
            objection => objection,
        },
        _ => objection_to_own(gateway, row, new).await?,
    };
    objection.map_or(Ok(()), |(code, detail)| Err(named(code, detail)))
}

/// Why an action for the session of `row` is not even offered to the ledger, if it is not.
pub async fn objection(gateway: &Gateway, row: &SessionRow, new: &NewAction) -> Answer<Option<(Code, String)>> {
    let objection = match object_to_claims(row, new) {
        None => object_to_words(gateway, row, new).await?,
        objection => objection,
    };
    match objection {
        None => objection_to_own(gateway, row, new).await,
        objection => Ok(objection),
    }
}

async fn objection_to_own(gateway: &Gateway, row: &SessionRow, new: &NewAction) -> Answer<Option<(Code, String)>> {
    match new.kind {
        ActionType::Input => match object_to_input(row, new) {
            None if talks(row) => object_to_talk(gateway, row, new).await,
            objection => Ok(objection),
        },
        ActionType::Interrupt => object_to_guidance(gateway, row, new).await,
        _ => Ok(None),
    }
}

/// What a person was asked is answered where the answer is bound to the arguments, and nowhere else.
async fn check_result(gateway: &Gateway, new: &mut NewAction) -> Answer<()> {
    if new.kind != ActionType::ToolResult {
        return Ok(());
    }
    let payload = new.payload.to_value();
    let Some(Ok(id)) = payload["operation_id"].as_str().map(OperationId::parse) else { return Ok(()) };
    match gateway.operations.operation(&new.namespace, &id).await? {
        Some(row) if row.operation.kind == OperationKind::Approval => {
            let detail = format!(
                "{id} waits for a person: POST /api/operations/{id}/approve or /deny, with a token of scope operate."
            );
            Err(Refused::new(Code::NoOpenOperation, detail))
        }
        Some(_) => Ok(()),
        None => check_early(gateway, new, &id).await,
    }
}

/// A result for what is not there yet is refused. Ids of operations can be told in advance, and a result that
/// waits before a person is asked would be the answer when that comes to pass.
async fn check_early(gateway: &Gateway, new: &mut NewAction, id: &OperationId) -> Answer<()> {
    let is_repeat = gateway.ledger.action(&new.namespace, &new.action_id).await?.is_some();
    if !is_repeat && new.action_id == result_id(id) {
        // Recorded under this id, what becomes of it would stand in the way of the end that is to come.
        new.action_id = gateway.fresh_id();
    }
    let Some(row) = target(gateway, new).await? else { return unknown(new) };
    let takes_results = moniker::find(&row.spec.moniker).is_some_and(|moniker| moniker.takes_results());
    // Of a session that has ended the ledger says so, and to a repeat what it said before.
    if !takes_results || row.head.status.is_final() || is_repeat {
        new.session_id = Some(row.key.session_id);
        return Ok(());
    }
    let session = &row.key.session_id;
    let detail =
        format!("No turn of {session} has begun {id}. GET /api/operations?state=pending lists what waits for results.");
    Err(Refused::new(Code::NoOpenOperation, detail))
}

/// Input that the moniker would never take is refused here, where somebody reads the answer. All
/// that is wrong with the target is the ledger's to say, because it records it.
fn object_to_input(row: &SessionRow, new: &NewAction) -> Option<(Code, String)> {
    let right_agent = new.agent_id.as_ref().is_none_or(|agent| *agent == row.agent_id);
    let takes = moniker::find(&row.spec.moniker).is_none_or(|moniker| moniker.takes_input());
    if takes || !right_agent || row.head.status.is_at_rest() {
        return None;
    }
    let (session, moniker) = (&row.key.session_id, &row.spec.moniker);
    let detail = format!("{session} runs {moniker}, which takes no input. Send it guidance with interrupt instead.");
    Some((Code::InputNotTaken, detail))
}

fn talks(row: &SessionRow) -> bool {
    moniker::find(&row.spec.moniker).is_some_and(|moniker| moniker.talks())
}

/// What an input of a session that converses must not be: its turn would not begin.
async fn object_to_talk(gateway: &Gateway, row: &SessionRow, new: &NewAction) -> Answer<Option<(Code, String)>> {
    let payload = new.payload.to_value();
    if let Some(problem) = converse::too_much_metadata(&payload) {
        return Ok(Some((Code::InvalidRequest, problem)));
    }
    let Ok(id) = TurnId::parse(payload["turn_id"].as_str().unwrap_or(new.action_id.as_str())) else { return Ok(None) };
    let turn = gateway.conversations.turn(&new.namespace, &id);
    let busy = gateway.conversations.is_at_work(&row.key, &new.action_id);
    match tokio::try_join!(turn, busy)? {
        (Some(turn), _) => object_to_turn(gateway, new, &turn).await,
        (None, true) => object_to_turns(gateway, row, new).await,
        (None, false) => Ok(None),
    }
}

/// The id of a turn may be chosen, but not one that has been used: its records are there already.
async fn object_to_turn(gateway: &Gateway, new: &NewAction, turn: &Turn) -> Answer<Option<(Code, String)>> {
    if is_repeat(gateway, new).await? {
        return Ok(None);
    }
    let detail = format!(
        "{} is the id of a turn of session {}. Choose another payload.turn_id, or another action_id.",
        turn.turn_id, turn.session_id
    );
    Ok(Some((Code::InvalidRequest, detail)))
}

/// A session has each of its turns in its state until it has ended, and those that wait in line are next.
async fn object_to_turns(gateway: &Gateway, row: &SessionRow, new: &NewAction) -> Answer<Option<(Code, String)>> {
    // By the index of what is active, which has no other order: turns of others are among them.
    let active = TurnQuery {
        namespace: row.key.namespace.clone(),
        conversation_id: row.spec.conversation_id.clone(),
        session_id: None,
        status: Some(TurnStatus::Active),
        after: None,
        descending: false,
        limit: PAGE_MAX,
    };
    let active = gateway.conversations.turns(&active);
    let (pending, active) = tokio::try_join!(gateway.ledger.pending_count(&row.key), active)?;
    let active = active.iter().filter(|turn| turn.session_id == row.key.session_id).count();
    if pending + (active as u64) < SESSION_TURNS_MAX as u64 || is_repeat(gateway, new).await? {
        return Ok(None);
    }
    let session = &row.key.session_id;
    let detail = format!("{SESSION_TURNS_MAX} turns of {session} have not ended. Send this again when some have.");
    Ok(Some((Code::TooManyRequests, detail)))
}

async fn is_repeat(gateway: &Gateway, new: &NewAction) -> Answer<bool> {
    Ok(gateway.ledger.action(&new.namespace, &new.action_id).await?.is_some())
}

fn object_to_claims(row: &SessionRow, new: &NewAction) -> Option<(Code, String)> {
    let field = if talks(row) { claim(new)? } else { return None };
    Some((Code::InvalidRequest, format!("{field} is set by the fleet itself; leave it out.")))
}

/// What a client may not say as an input to a session that converses.
async fn object_to_words(gateway: &Gateway, row: &SessionRow, new: &NewAction) -> Answer<Option<(Code, String)>> {
    if new.kind != ActionType::Input || !talks(row) {
        return Ok(None);
    }
    let objection = match object_to_place(gateway, row).await? {
        None => object_to_message(gateway, row, new).await?,
        objection => objection,
    };
    // What was taken once is answered as it was then.
    if objection.is_some() && is_repeat(gateway, new).await? {
        return Ok(None);
    }
    Ok(objection)
}

/// A delegate works for its caller alone.
async fn object_to_place(gateway: &Gateway, row: &SessionRow) -> Answer<Option<(Code, String)>> {
    let called = row.spec.parent.as_ref().and(row.spec.conversation_id.as_ref());
    let Some(conversation) = called else { return Ok(None) };
    let problem = delegated::objection_at(gateway, &row.key.namespace, conversation).await?;
    Ok(problem.map(|problem| (problem.code, problem.detail)))
}

/// What an input says of messages: which one it is about, which must be there, because a posted message alone is
/// written along with its input; and nothing of what is for posted messages.
async fn object_to_message(gateway: &Gateway, row: &SessionRow, new: &NewAction) -> Answer<Option<(Code, String)>> {
    let (payload, conversation) = (new.payload.to_value(), row.spec.conversation_id.as_ref());
    let place = conversation.map_or("…", |id| id.as_str());
    let detail = if !payload["busy"].is_null() {
        format!(
            "payload.busy is for posted messages: POST /api/conversations/{place}/messages takes it. An input is \
             always a turn of its own; leave it out."
        )
    } else if !payload["message_id"].is_null() && !is_said(gateway, row, &payload["message_id"]).await? {
        format!(
            "payload.message_id is no message of the conversation {place}. It names one that was said there, which the \
             turn is about. Leave it out to say something new: that message has the id of the action."
        )
    } else {
        return Ok(None);
    };
    Ok(Some((Code::InvalidRequest, detail)))
}

/// Whether this is the id of a message of the session's conversation.
async fn is_said(gateway: &Gateway, row: &SessionRow, id: &Value) -> Answer<bool> {
    let (Some(conversation), Some(Ok(id))) = (&row.spec.conversation_id, id.as_str().map(MessageId::parse)) else {
        return Ok(false);
    };
    Ok(read::message(&*gateway.conversations, &row.key.namespace, conversation, &id).await?.is_some())
}

/// What only the fleet says to sessions that converse: whose turn begins, who gets its result, where it counts what it
/// uses, and what was used.
/// To other sessions it may mean anything.
pub fn claim(new: &NewAction) -> Option<String> {
    let payload = new.payload.to_value();
    let (place, said, names) = match new.kind {
        ActionType::Input => ("payload", &payload, converse::CALL_FIELDS.as_slice()),
        ActionType::Interrupt => ("payload.guidance", &payload["guidance"], converse::OWN_FIELDS.as_slice()),
        _ => return None,
    };
    let name = names.iter().find(|name| !said[**name].is_null())?;
    Some(format!("{place}.{name}"))
}

/// Guidance waits in the control lane, one a step. More of it than an owner holds in memory would
/// hide the pause or resume behind it, so it is refused while that much waits; a repeat is not.
async fn object_to_guidance(gateway: &Gateway, row: &SessionRow, new: &NewAction) -> Answer<Option<(Code, String)>> {
    // A count reads no payloads, and most sessions have next to nothing waiting.
    if gateway.ledger.pending_count(&row.key).await? < GUIDANCE_WAITING_MAX as u64 {
        return Ok(None);
    }
    let waiting = gateway.ledger.pending(&row.key, Lane::Control, 0, GUIDANCE_WAITING_MAX).await?;
    if waiting.actions.len() < GUIDANCE_WAITING_MAX || is_repeat(gateway, new).await? {
        return Ok(None);
    }
    let session = &row.key.session_id;
    let detail = format!("{GUIDANCE_WAITING_MAX} control actions wait for {session}. Send this one again later.");
    Ok(Some((Code::TooManyRequests, detail)))
}

/// The row of the session that an action is for, if it is there.
pub async fn target(gateway: &Gateway, new: &NewAction) -> Answer<Option<SessionRow>> {
    let row = match (&new.session_id, &new.agent_id) {
        (Some(session), _) => {
            gateway.sessions.session(&SessionKey::new(new.namespace.clone(), session.clone())).await?
        }
        (None, Some(agent)) => gateway.sessions.latest(&new.namespace, agent).await?,
        (None, None) => None,
    };
    Ok(row)
}
