//! What a judged batch writes, as one array for each column.

use schemas::action::{ActionOutcome, NewAction};
use schemas::json::Json;
use schemas::problem::Code;
use schemas::session::Head;
use std::borrow::Cow;

use super::super::pool::Statement;
use super::super::rows::clean;
use crate::accepting::NewRow;
use crate::judge::Book;

/// Whether the sessions that agents had before were looked up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Agents {
    Known,
    Unknown,
}

/// Binds all parameters of [`super::sql::WRITE`], in its order.
pub(super) fn bind(query: Statement, now_ms: i64, batch: &[&NewAction], book: &Book, agents: Agents) -> Statement {
    let mut sessions = Sessions::default();
    for (key, index) in &book.created {
        let (Some(new), Some(known)) = (&batch[*index].session, book.sessions.get(key)) else { continue };
        let head = Head::starting(known.created_at_ms);
        sessions.namespace.push(key.namespace.as_str());
        sessions.session_id.push(key.session_id.as_str());
        sessions.agent_id.push(known.agent_id.as_str());
        sessions.shard.push(i32::from(known.shard.0));
        sessions.moniker.push(clean(&new.spec.moniker));
        sessions.conversation_id.push(known.conversation_id.as_ref().map(|id| id.as_str()));
        sessions.created_at_ms.push(known.created_at_ms);
        sessions.status.push(head.status.as_str());
        sessions.control_seq.push(known.control_seq as i64);
        sessions.work_seq.push(known.work_seq as i64);
        sessions.head.push(Json::of(&head).as_str().to_owned());
        sessions.spec.push(Json::of(&new.spec).as_str().to_owned());
    }
    let mut counters = Counters::default();
    for (key, known) in book.sessions.iter().filter(|(_, known)| known.is_touched && !known.is_new) {
        counters.namespace.push(key.namespace.as_str());
        counters.session_id.push(key.session_id.as_str());
        counters.control_seq.push(known.control_seq as i64);
        counters.work_seq.push(known.work_seq as i64);
    }
    let mut actions = Actions::default();
    for entered in &book.entered {
        actions.push(&NewRow::of(entered, batch, book), now_ms);
    }
    // Times that were given out with a look are as they are.
    let since_ms = if agents == Agents::Unknown { now_ms } else { i64::MAX };
    actions.bind(counters.bind(sessions.bind(query))).bind(since_ms)
}

#[derive(Default)]
struct Sessions<'b> {
    namespace: Vec<&'b str>,
    session_id: Vec<&'b str>,
    agent_id: Vec<&'b str>,
    shard: Vec<i32>,
    moniker: Vec<Cow<'b, str>>,
    conversation_id: Vec<Option<&'b str>>,
    created_at_ms: Vec<i64>,
    status: Vec<&'static str>,
    control_seq: Vec<i64>,
    work_seq: Vec<i64>,
    head: Vec<String>,
    spec: Vec<String>,
}

impl Sessions<'_> {
    fn bind(self, query: Statement) -> Statement {
        let query = query.bind(self.namespace).bind(self.session_id).bind(self.agent_id).bind(self.shard);
        let query = query.bind(self.moniker).bind(self.conversation_id).bind(self.created_at_ms).bind(self.status);
        query.bind(self.control_seq).bind(self.work_seq).bind(self.head).bind(self.spec)
    }
}

/// Of sessions that were there: the last numbers given out.
#[derive(Default)]
struct Counters<'b> {
    namespace: Vec<&'b str>,
    session_id: Vec<&'b str>,
    control_seq: Vec<i64>,
    work_seq: Vec<i64>,
}

impl Counters<'_> {
    fn bind(self, query: Statement) -> Statement {
        query.bind(self.namespace).bind(self.session_id).bind(self.control_seq).bind(self.work_seq)
    }
}

#[derive(Default)]
struct Actions<'b> {
    namespace: Vec<&'b str>,
    action_id: Vec<&'b str>,
    kind: Vec<&'static str>,
    session_id: Vec<Option<&'b str>>,
    agent_id: Vec<Option<&'b str>>,
    shard: Vec<Option<i32>>,
    lane: Vec<&'static str>,
    session_seq: Vec<Option<i64>>,
    accepted_at_ms: Vec<i64>,
    processed_at_ms: Vec<Option<i64>>,
    outcome: Vec<Option<&'static str>>,
    code: Vec<Option<&'static str>>,
    error: Vec<Option<Cow<'b, str>>>,
    urgency: Vec<&'static str>,
    actor: Vec<Cow<'b, str>>,
    body_hash: Vec<&'b [u8]>,
    payload: Vec<&'b str>,
    metadata: Vec<&'b str>,
}

impl<'b> Actions<'b> {
    fn push(&mut self, row: &NewRow<'b>, now_ms: i64) {
        let new = row.new;
        self.namespace.push(new.namespace.as_str());
        self.action_id.push(new.action_id.as_str());
        self.kind.push(new.kind.as_str());
        self.session_id.push(row.target.map(|(key, _)| key.session_id.as_str()));
        self.agent_id.push(row.agent.map(|agent| agent.as_str()));
        self.shard.push(row.target.map(|(_, known)| i32::from(known.shard.0)));
        self.lane.push(new.kind.lane().as_str());
        self.session_seq.push(row.session_seq.map(|seq| seq as i64));
        self.accepted_at_ms.push(now_ms);
        self.processed_at_ms.push(row.outcome.map(|_| now_ms));
        self.outcome.push(row.outcome.map(ActionOutcome::as_str));
        self.code.push(row.code.map(Code::as_str));
        self.error.push(row.error.map(clean));
        self.urgency.push(new.urgency.as_str());
        self.actor.push(clean(&new.actor));
        self.body_hash.push(&new.body_hash);
        self.payload.push(new.payload.as_str());
        self.metadata.push(new.metadata.as_str());
    }

    fn bind(self, query: Statement) -> Statement {
        let query = query.bind(self.namespace).bind(self.action_id).bind(self.kind).bind(self.session_id);
        let query = query.bind(self.agent_id).bind(self.shard).bind(self.lane).bind(self.session_seq);
        let query = query.bind(self.accepted_at_ms).bind(self.processed_at_ms).bind(self.outcome).bind(self.code);
        let query = query.bind(self.error).bind(self.urgency).bind(self.actor).bind(self.body_hash);
        query.bind(self.payload).bind(self.metadata)
    }
}
