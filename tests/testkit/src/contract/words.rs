//! Values for the suites of conversations: rows, records, turns, operations, and commits that talk.

use std::sync::Arc;

use domain::commit::Commit;
use domain::ports::{ConversationQuery, LogQuery, OperationQuery, OperationRow, TurnQuery};
use schemas::action::{ActionType, NewAction};
use schemas::conversation::{
    ApprovalRequest, Caller, Conversation, ConversationStatus, LogKind, LogRecord, LogRow, Operation, OperationKind,
    OperationState, Participant, ParticipantKind, ParticipantRole, Talk, Turn, TurnIssues, TurnPhase, TurnStatus,
    TurnUsage, Visibility,
};
use schemas::definition::EffectClass;
use schemas::id::{ConversationId, MessageId, Namespace, OperationId, ParticipantId, TurnId, UserId, WorkerId};
use schemas::json::Json;
use schemas::session::SessionRow;
use serde_json::json;

use super::Ports;
use super::build::*;

/// A text that is nobody's friend.
pub const HOSTILE: &str = "'; DROP TABLE \"conversations\"; -- \u{0} \\ ?1 $1 {π}\n\u{1F600}";

pub fn conversation_id(text: &str) -> ConversationId {
    ConversationId::parse(text).expect("a conversation id")
}

pub fn turn_id(text: &str) -> TurnId {
    TurnId::parse(text).expect("a turn id")
}

pub fn operation_id(text: &str) -> OperationId {
    OperationId::parse(text).expect("an operation id")
}

pub fn participant_id(text: &str) -> ParticipantId {
    ParticipantId::parse(text).expect("a participant id")
}

pub fn user_id(text: &str) -> UserId {
    UserId::parse(text).expect("a user id")
}

pub fn conversation(id: &str) -> Conversation {
    Conversation {
        conversation_id: conversation_id(id),
        title: Some(HOSTILE.to_owned()),
        created_by: HOSTILE.to_owned(),
        subject_id: Some(format!("subject of {id}")),
        primary_agent_id: Some(agent_id("agent")),
        status: ConversationStatus::Active,
        tags: vec!["all".to_owned(), format!("tag \"{id}\"")],
        metadata: Json::of(&json!({"text": HOSTILE, "n": 1.50})),
        branch_context: Some(Json::of(&json!({"repo_id": "r", "branch": "b"}))),
        visibility: Visibility::Listed,
        last_offset: 77,
        created_at_ms: 77,
        updated_at_ms: 77,
    }
}

pub fn user(id: &str, user: &str) -> Participant {
    Participant {
        participant_id: participant_id(id),
        kind: ParticipantKind::User,
        user_id: Some(user_id(user)),
        agent_id: None,
        session_id: None,
        role: ParticipantRole::Owner,
        joined_at_ms: 0,
        left_at_ms: None,
        added_by_turn_id: None,
    }
}

pub fn agent(id: &str, agent: &str, session: &str) -> Participant {
    Participant {
        kind: ParticipantKind::Agent,
        user_id: None,
        agent_id: Some(agent_id(agent)),
        session_id: Some(session_id(session)),
        role: ParticipantRole::Responder,
        ..user(id, "nobody")
    }
}

pub fn record(kind: LogKind, id: &str) -> LogRecord {
    LogRecord {
        kind,
        id: id.to_owned(),
        turn_id: None,
        agent_id: Some(agent_id("agent")),
        session_id: None,
        at_ms: 1_700_000_000_000,
        body: Json::of(&json!({"id": id, "text": HOSTILE})),
    }
}

pub fn note(id: &str) -> LogRecord {
    record(LogKind::Note, id)
}

/// A message of a user, in words.
pub fn message(id: &str, text: &str) -> LogRecord {
    LogRecord { body: Json::of(&json!({"message_id": id, "text": text})), ..record(LogKind::Message, id) }
}

/// A record of a call of a model.
pub fn model_call(id: &str, tokens: u64, cost: f64) -> LogRecord {
    let body = json!({"id": id, "conversation_id": "c", "turn_id": "t", "provider": "p", "model": "m",
        "operation": "chat", "started_at_ms": 0, "cost": cost,
        "usage": {"input_tokens": tokens, "output_tokens": 1, "total_tokens": tokens + 1}});
    LogRecord { body: Json::of(&body), ..record(LogKind::ProviderCall, id) }
}

pub fn turn(id: &str, conversation: &str, session: &str, created_at_ms: i64) -> Turn {
    Turn {
        turn_id: turn_id(id),
        conversation_id: conversation_id(conversation),
        session_id: session_id(session),
        agent_id: agent_id("agent"),
        caller: Caller::User { user_id: user_id("u1") },
        input_message_id: MessageId::parse("m1").expect("a message id"),
        reply_to_message_id: None,
        trigger_type: "user_message".to_owned(),
        status: TurnStatus::Active,
        phase: TurnPhase::Thinking,
        cancelled: false,
        context_assembly_run_id: None,
        memory_extraction_run_id: None,
        issues: TurnIssues::default(),
        error: None,
        moves: 2,
        usage: TurnUsage { input_tokens: 3, output_tokens: 4, cost: 0.25 },
        pending_operations: 1,
        metadata: Some(json!({"text": HOSTILE})),
        created_at_ms,
        completed_at_ms: None,
    }
}

/// A task of the pool `default`, to be run within an hour.
pub fn operation(id: &str, session: &str) -> Operation {
    Operation {
        operation_id: operation_id(id),
        session_id: session_id(session),
        conversation_id: conversation_id("c1"),
        turn_id: turn_id("t1"),
        tool_call_id: "call \"1\"".to_owned(),
        tool: "search".to_owned(),
        kind: OperationKind::Task,
        pool: "default".to_owned(),
        state: OperationState::Pending,
        request: Json::of(&json!({"input": {"text": HOSTILE}})),
        approval: None,
        effect_class: EffectClass::Idempotent,
        attempt: 0,
        lost: 0,
        max_attempts: 3,
        backoff_ms: 1_000,
        timeout_ms: 3_600_000,
        wait_ms: None,
        is_async: false,
        created_at_ms: 0,
        due_at_ms: 0,
        claimed_by: None,
        until_ms: None,
        error: None,
    }
}

/// A question that waits for a person.
pub fn approval(id: &str, session: &str, expires_ms: u64) -> Operation {
    let asked = ApprovalRequest { arguments_hash: "00".to_owned(), expires_ms, default_approve: false };
    Operation { kind: OperationKind::Approval, pool: String::new(), approval: Some(asked), ..operation(id, session) }
}

/// A create of a session within a conversation.
pub fn create_in(id: &str, session: &str, agent: &str, conversation: &str) -> NewAction {
    let mut new = create(id, session, agent);
    let spec = &mut new.session.as_mut().expect("a create has a session").spec;
    spec.conversation_id = Some(conversation_id(conversation));
    new
}

/// The result of an operation, for the session that is named, or for whoever waits.
pub fn tool_result(id: &str, operation: &str, session: Option<&str>) -> NewAction {
    let payload = Json::of(&json!({"operation_id": operation, "result": {"text": HOSTILE}}));
    NewAction { payload, ..action(ActionType::ToolResult, id, session, None) }
}

impl Ports {
    /// A session within a conversation.
    pub async fn talker(&self, session: &str, conversation: &str) -> SessionRow {
        let verdict = self.accept(create_in(&format!("create-{session}"), session, "agent", conversation)).await;
        accepted(&verdict);
        self.row(&key(session)).await
    }

    /// The next commit of a session, of one step that says all this.
    pub async fn saying(&self, owner: &WorkerId, session: &str, talk: Talk) -> Commit {
        let row = self.row(&key(session)).await;
        let epoch = self.own(row.shard, owner).await;
        Commit { talk, ..next_commit(&row, epoch, 1) }
    }

    pub async fn say(&self, owner: &WorkerId, session: &str, talk: Talk) {
        let commit = self.saying(owner, session, talk).await;
        self.commit_one(owner, commit).await;
    }

    /// Dispatches operations of a session, one commit for all.
    pub async fn dispatch(&self, owner: &WorkerId, session: &str, operations: Vec<Operation>) {
        self.say(owner, session, Talk { operations, ..Talk::default() }).await;
    }

    pub async fn forum(&self, id: &str) -> Conversation {
        let found = self.conversations.conversation(&Namespace::default_ns(), &conversation_id(id)).await;
        found.expect("conversations can be read").expect("the conversation exists")
    }

    pub async fn log_of(&self, id: &str) -> Vec<LogRow> {
        self.conversations.log(&log_query(id)).await.expect("logs can be read")
    }

    pub async fn work(&self, id: &str) -> OperationRow {
        let found = self.operations.operation(&Namespace::default_ns(), &operation_id(id)).await;
        found.expect("operations can be read").expect("the operation exists")
    }

    pub async fn work_state(&self, id: &str) -> OperationState {
        self.work(id).await.operation.state
    }
}

/// The same commit of a session that talks elsewhere than it was created for.
pub fn in_conversation(mut commit: Commit, conversation: Option<&str>) -> Commit {
    Arc::make_mut(&mut commit.entry).conversation_id = conversation.map(conversation_id);
    commit
}

/// All there is, oldest first.
pub fn log_query(id: &str) -> LogQuery {
    LogQuery {
        namespace: Namespace::default_ns(),
        conversation_id: conversation_id(id),
        kinds: Vec::new(),
        turn_id: None,
        after: 0,
        before: None,
        since_ms: None,
        descending: false,
        limit: 10_000,
        bytes: usize::MAX,
    }
}

pub fn conversation_query() -> ConversationQuery {
    ConversationQuery {
        namespace: Namespace::default_ns(),
        status: None,
        created_by: None,
        subject_id: None,
        tag: None,
        agent_id: None,
        user_id: None,
        include_internal: false,
        after: None,
        limit: 100,
    }
}

pub fn turn_query() -> TurnQuery {
    TurnQuery {
        namespace: Namespace::default_ns(),
        conversation_id: None,
        session_id: None,
        status: None,
        after: None,
        descending: false,
        limit: 100,
    }
}

pub fn operation_query() -> OperationQuery {
    OperationQuery {
        namespace: Namespace::default_ns(),
        conversation_id: None,
        turn_id: None,
        kind: None,
        state: None,
        after: None,
        limit: 100,
    }
}

/// Ids of log records, in their order, after a check that their offsets have no gaps.
pub fn gapless(rows: &[LogRow]) -> Vec<&str> {
    let offsets: Vec<u64> = rows.iter().map(|row| row.offset).collect();
    assert_eq!(offsets, (1..=rows.len() as u64).collect::<Vec<_>>(), "offsets have no gaps");
    rows.iter().map(|row| row.record.id.as_str()).collect()
}
