//! The tool calls of one reply: refused at once, dispatched, or put before a person.

use schemas::conversation::{ApprovalRequest, Operation, OperationKind};
use schemas::definition::{ActionKind, AgentConstraints, EffectClass, InvocationMode, TargetType};
use schemas::id::{AgentId, ConversationId, DefinitionId, Namespace, OperationId, SessionId, TurnId};
use serde_json::json;

use super::agents::{self, AgentCall, From};
use super::decision::TurnDecision;
use super::state::{Approved, Open};
use crate::chat::{Message, ToolCall, ToolError, ToolErrorCode, ToolResult};
use crate::tool::{self, ActionRequest, Dispatch, ExecutionContext, Place, ResolvedTool, ToolPlan};

/// Where the calls come from.
pub(super) struct Calls<'a> {
    pub namespace: &'a Namespace,
    pub conversation: &'a ConversationId,
    pub session: &'a SessionId,
    pub agent: &'a AgentId,
    pub turn: &'a TurnId,
    pub depth: u64,
    /// Number of the reply.
    pub number: u32,
    pub tools: &'a [ResolvedTool],
    pub constraints: &'a AgentConstraints,
    /// What the model was shown, for tools that read it (SPEC D-TOOL-12).
    pub messages: &'a [Message],
}

/// What the calls of a reply come to, in their order.
#[derive(Default)]
pub(super) struct Planned {
    pub decisions: Vec<TurnDecision>,
    /// Known at once: refusals, and acknowledgements of agents that joined.
    pub results: Vec<ToolResult>,
    /// Calls that the model goes on without.
    pub in_background: Vec<(String, OperationId)>,
    /// Calls that the model waits for.
    pub waits: usize,
}

impl Calls<'_> {
    pub fn plan(&self, calls: &[ToolCall]) -> Planned {
        let mut planned = Planned::default();
        for (index, call) in calls.iter().enumerate() {
            match tool::plan(self.tools, self.constraints, call) {
                ToolPlan::Refused(result) => planned.results.push(result),
                ToolPlan::Dispatch(dispatch) => self.task(&mut planned, index, call, *dispatch),
                ToolPlan::Agent(wanted) => self.agent(&mut planned, index, call, *wanted),
            }
        }
        planned
    }

    fn task(&self, planned: &mut Planned, index: usize, call: &ToolCall, dispatch: Dispatch) {
        let context = ExecutionContext {
            agent_id: Some(self.agent.clone()),
            project_ids: Vec::new(),
            messages: Some(tool::history(self.messages)),
        };
        let is_async = dispatch.is_async;
        let operation = tool::operation(dispatch, self.place(index, call), context);
        planned.note(self.turn, call, &operation.operation_id, is_async);
        let turn_id = self.turn.clone();
        planned.decisions.push(TurnDecision::DispatchTask { turn_id, operation: Box::new(operation), is_async });
    }

    fn agent(&self, planned: &mut Planned, index: usize, call: &ToolCall, wanted: tool::AgentCall) {
        let operation_id = tool::operation_id(self.turn, self.number, index);
        let Ok(agent_id) = AgentId::parse(wanted.agent_id.as_str()) else { return };
        let made = AgentCall {
            operation_id,
            call_id: call.id.clone(),
            tool: call.name.clone(),
            agent_id,
            mode: wanted.mode,
            input: wanted.input,
            is_async: wanted.is_async,
        };
        if let Some(refused) = agents::refusal(&made, &self.from()) {
            planned.results.push(refused);
            return;
        }
        if let Some(approval) = wanted.approval {
            self.ask(planned, index, call, made, approval);
            return;
        }
        if made.mode == InvocationMode::LoopIn {
            planned.results.push(agents::joined(&made));
        } else {
            planned.note(self.turn, call, &made.operation_id, made.is_async);
        }
        planned.decisions.push(TurnDecision::DispatchAgent { turn_id: self.turn.clone(), call: Box::new(made) });
    }

    /// The call is made once a person has said yes.
    fn ask(&self, planned: &mut Planned, index: usize, call: &ToolCall, made: AgentCall, approval: ApprovalRequest) {
        let mut operation = yes_or_no(self.place(index, call), approval);
        operation.operation_id = super::ids::operation_id(made.operation_id.as_str(), "ask");
        let is_async = made.is_async;
        planned.note(self.turn, call, &operation.operation_id, is_async);
        let open = Open {
            operation_id: operation.operation_id.clone(),
            call_id: call.id.clone(),
            tool: call.name.clone(),
            kind: OperationKind::Approval,
            is_async,
            child: None,
            approved: Some(Box::new(Approved::Agent { call: made })),
        };
        let (turn_id, operation) = (self.turn.clone(), Box::new(operation));
        planned.decisions.push(TurnDecision::AskApproval { turn_id, operation, open: Box::new(open) });
    }

    fn place(&self, index: usize, call: &ToolCall) -> Place {
        Place {
            namespace: self.namespace.clone(),
            session_id: self.session.clone(),
            conversation_id: self.conversation.clone(),
            turn_id: self.turn.clone(),
            move_number: self.number,
            index,
            tool_call_id: call.id.clone(),
            tool: call.name.clone(),
        }
    }

    fn from(&self) -> From<'_> {
        From {
            conversation: self.conversation,
            session: self.session,
            agent: self.agent,
            turn: self.turn,
            depth: self.depth,
        }
    }
}

impl Planned {
    fn note(&mut self, turn: &TurnId, call: &ToolCall, operation: &OperationId, is_async: bool) {
        if is_async {
            self.in_background.push((call.id.clone(), operation.clone()));
            let (turn_id, operation_id) = (turn.clone(), operation.clone());
            self.decisions.push(TurnDecision::TrackAsyncOperation { turn_id, operation_id });
        } else {
            self.waits += 1;
        }
    }
}

/// An operation that a person answers, and whose whole work is the yes: once approved, executors
/// give it back as it is.
pub(super) fn yes_or_no(place: Place, approval: ApprovalRequest) -> Operation {
    let named = |name: &str| DefinitionId::parse(name).expect("an id");
    let mut config = serde_json::Map::new();
    config.insert("output".to_owned(), json!({"approved": true}));
    let request = ActionRequest {
        target_type: TargetType::Task,
        target_id: named("approval"),
        version: 1,
        action_id: named("approval"),
        action_version: 1,
        kind: ActionKind::Mock,
        operation: "return".to_owned(),
        config,
        output_schema: None,
        output_mapping: None,
        retry_on: Vec::new(),
        idempotency_key: None,
        input: json!({}),
        context: ExecutionContext::default(),
    };
    let dispatch = Dispatch {
        kind: OperationKind::Approval,
        pool: tool::POOL.to_owned(),
        request,
        effect_class: EffectClass::Pure,
        max_attempts: 1,
        backoff_ms: 0,
        timeout_ms: 60_000,
        is_async: false,
        approval: Some(approval),
        wants_messages: false,
    };
    tool::operation(dispatch, place, ExecutionContext::default())
}

/// What a model is told when a person said no to a call of an agent.
pub(super) fn denied(call_id: &str, error: Option<ToolError>) -> ToolResult {
    let error = error.unwrap_or_else(|| ToolError {
        code: ToolErrorCode::PermissionDenied,
        message: "a person said no".to_owned(),
        retriable: false,
    });
    ToolResult::failed(call_id, error)
}
