//! The tool calls of one reply: refused at once, dispatched, or put before a person.

use schemas::conversation::{ApprovalRequest, Operation, OperationKind, OperationState};
use schemas::definition::{ActionKind, AgentConstraints, InvocationMode};
use schemas::id::{AgentId, ConversationId, DefinitionId, Namespace, OperationId, SessionId, TurnId};
use schemas::limits::TOOL_CALLS_MAX;

use super::agents::{self, AgentCall, From};
use super::apply::stub;
use super::budget::{self, Purse};
use super::decision::TurnDecision;
use super::room::Room;
use super::seats::Seat;
use super::state::{Approved, Open};
use crate::chat::{Message, ToolCall, ToolError, ToolErrorCode, ToolResult};
use crate::context::estimate_tokens;
use crate::tool::{self, Builtin, Dispatch, ExecutionContext, Place, ResolvedTarget, ResolvedTool, ToolPlan, Toolbox};

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
    /// Of the agent.
    pub projects: &'a [DefinitionId],
    /// Agents that take part already.
    pub seats: &'a [Seat],
    /// For tools that ask models.
    pub purse: Purse,
    /// In the state of the session.
    pub room: Room,
    /// Whether the context can be made shorter.
    pub may_compact: bool,
    /// What the model was shown, for tools that read it (SPEC D-TOOL-12).
    pub messages: &'a [Message],
}

/// What the calls of a reply come to, in their order.
#[derive(Default)]
pub(super) struct Planned {
    pub decisions: Vec<TurnDecision>,
    /// Known at once: refusals, and acknowledgements of agents that joined.
    pub results: Vec<ToolResult>,
    /// Calls that ask for a shorter context: what came of it is their result.
    pub compacts: Vec<String>,
    /// Calls that the model goes on without.
    pub in_background: Vec<(String, OperationId)>,
    /// Calls that the model waits for.
    pub waits: usize,
    /// Programs that call tools.
    pub programs: usize,
    /// Agents that were looped in.
    pub seats: Vec<Seat>,
    /// Calls that are open from here on, and the bytes of what waits for a yes.
    pub opened: usize,
    pub approved: usize,
    /// What is left for calls that ask models.
    purse: Purse,
}

impl Calls<'_> {
    pub fn plan(&self, calls: &[ToolCall]) -> Planned {
        let mut planned = Planned { purse: self.purse.clone(), ..Planned::default() };
        for (index, call) in calls.iter().enumerate() {
            if index >= TOOL_CALLS_MAX {
                planned.results.push(too_many(call));
                continue;
            }
            if planned.opened >= self.room.calls {
                planned.results.push(no_room(call));
                continue;
            }
            match tool::plan(self.tools, self.constraints, call) {
                ToolPlan::Refused(result) => planned.results.push(result),
                ToolPlan::Dispatch(dispatch) if dispatch.request.target_id == Builtin::CompactContext.id() => {
                    if self.may_compact {
                        planned.compacts.push(call.id.clone());
                    } else {
                        planned.results.push(not_compacted(call));
                    }
                }
                ToolPlan::Dispatch(dispatch) => self.task(&mut planned, index, call, *dispatch),
                ToolPlan::Agent(wanted) => self.agent(&mut planned, index, call, *wanted),
            }
        }
        planned
    }

    fn task(&self, planned: &mut Planned, index: usize, call: &ToolCall, mut dispatch: Dispatch) {
        let toolbox = self.toolbox(planned, &dispatch);
        dispatch.wants_messages |= toolbox.as_ref().is_some_and(Toolbox::wants_messages);
        let context = ExecutionContext {
            agent_id: Some(self.agent.clone()),
            project_ids: self.projects.to_vec(),
            messages: Some(tool::history(self.messages)),
            toolbox,
        };
        let is_async = dispatch.is_async;
        let is_question = dispatch.request.kind == ActionKind::Human;
        let asks_model = asks_model(dispatch.request.kind, context.toolbox.as_ref());
        let given = given_to_model(&dispatch);
        let mut operation = tool::operation(dispatch, self.place(index, call), context);
        // A tool that asks a model is one more call of one, so over a budget a person is asked first.
        let unpaid = |planned: &mut Planned| {
            let is_unpaid = asks_model && !planned.purse.pays(given);
            is_unpaid.then(|| beyond_budget(call))
        };
        if let Some(approval) = operation.approval.take().or_else(|| unpaid(planned)) {
            operation.kind = OperationKind::Task;
            let asked = question(&operation, approval);
            let approved =
                if is_question { Approved::Answer } else { Approved::Task { operation: Box::new(operation) } };
            self.ask(planned, (call, asks_model), asked, approved);
            return;
        }
        planned.note(self.turn, call, &operation.operation_id, is_async);
        planned.decisions.push(TurnDecision::DispatchTask {
            turn_id: self.turn.clone(),
            operation: Box::new(operation),
            is_async,
            number: Some(self.number),
            asks_model,
        });
    }

    /// What a program may call, if one is dispatched.
    fn toolbox(&self, planned: &mut Planned, dispatch: &Dispatch) -> Option<Toolbox> {
        if dispatch.request.kind != ActionKind::Code {
            return None;
        }
        let class = dispatch.effect_class;
        let toolbox = Toolbox::for_program(self.tools, self.constraints, class, planned.programs);
        planned.programs += usize::from(toolbox.closed.is_none());
        Some(toolbox)
    }

    fn agent(&self, planned: &mut Planned, index: usize, call: &ToolCall, wanted: tool::AgentCall) {
        let operation_id = tool::operation_id(self.turn, self.number, index);
        let Ok(agent_id) = AgentId::parse(wanted.agent_id.as_str()) else { return };
        let mut made = AgentCall {
            operation_id,
            call_id: call.id.clone(),
            tool: call.name.clone(),
            agent_id,
            mode: wanted.mode,
            input: wanted.input,
            is_async: wanted.is_async,
            timeout_ms: wanted.timeout_ms,
            seated: None,
        };
        made.sit(self.seats.iter().chain(&planned.seats));
        if let Some(refused) = agents::refusal(&made, &self.from()) {
            planned.results.push(refused);
            return;
        }
        if let Some(approval) = wanted.approval.or_else(|| self.too_deep(call)) {
            let mut operation = stub(self.turn, &made.operation_id, OperationKind::Agent, OperationState::Pending);
            operation.tool_call_id.clone_from(&call.id);
            operation.tool.clone_from(&call.name);
            operation.is_async = made.is_async;
            operation.request = agents::request(&made);
            let asked = question(&operation, approval);
            self.ask(planned, (call, false), asked, Approved::Agent { call: Box::new(made) });
            return;
        }
        if made.mode == InvocationMode::LoopIn {
            planned.results.push(agents::joined(&made));
            planned.seats.push(Seat { agent_id: made.agent_id.clone(), session_id: made.child() });
        } else {
            planned.note(self.turn, call, &made.operation_id, made.is_async);
        }
        let (turn_id, number) = (self.turn.clone(), Some(self.number));
        planned.decisions.push(TurnDecision::DispatchAgent { turn_id, call: Box::new(made), number });
    }

    /// Deeper than the budget, a person is asked; beyond the bound of all, nobody is.
    fn too_deep(&self, call: &ToolCall) -> Option<ApprovalRequest> {
        let max = self.constraints.budgets.as_ref()?.max_depth?;
        (self.depth >= max).then(|| beyond_budget(call))
    }

    /// What was called is done once a person has said yes.
    fn ask(&self, planned: &mut Planned, (call, asks_model): (&ToolCall, bool), asked: Operation, approved: Approved) {
        let bytes = planned.approved + approved.bytes();
        if bytes > self.room.approved {
            planned.results.push(no_room(call));
            return;
        }
        planned.approved = bytes;
        planned.note(self.turn, call, &asked.operation_id, asked.is_async);
        let open = Open {
            operation_id: asked.operation_id.clone(),
            call_id: call.id.clone(),
            tool: call.name.clone(),
            kind: OperationKind::Approval,
            is_async: asked.is_async,
            child: None,
            approved: Some(approved),
            number: Some(self.number),
            asks_model,
        };
        let turn_id = self.turn.clone();
        planned.decisions.push(TurnDecision::AskApproval { turn_id, operation: Box::new(asked), open: Box::new(open) });
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
        self.opened += 1;
        if is_async {
            self.in_background.push((call.id.clone(), operation.clone()));
            let (turn_id, operation_id) = (turn.clone(), operation.clone());
            self.decisions.push(TurnDecision::TrackAsyncOperation { turn_id, operation_id });
        } else {
            self.waits += 1;
        }
    }
}

/// Whether a model may be asked by an action, or by a program that calls some.
fn asks_model(kind: ActionKind, toolbox: Option<&Toolbox>) -> bool {
    let is_llm =
        |tool: &ResolvedTool| matches!(&tool.target, ResolvedTarget::Action(action) if action.kind == ActionKind::Llm);
    kind == ActionKind::Llm || toolbox.is_some_and(|toolbox| toolbox.tools.iter().any(is_llm))
}

/// Tokens that a tool gives the model which it asks, as far as they are known: those of its input. How often a program
/// asks, and what, nobody knows before.
fn given_to_model(dispatch: &Dispatch) -> u64 {
    let is_llm = dispatch.request.kind == ActionKind::Llm;
    if is_llm { estimate_tokens(&dispatch.request.input.to_string()) } else { 0 }
}

/// The question is about the one call: it goes beyond a budget, of depth or of what models may be asked.
fn beyond_budget(call: &ToolCall) -> ApprovalRequest {
    ApprovalRequest {
        arguments_hash: tool::arguments_hash(&call.name, &call.input),
        expires_ms: budget::ASKS_MS,
        default_approve: false,
    }
}

/// What a person is shown and asked about an operation; it carries the very request, but for what a program
/// may call.
pub(super) fn question(operation: &Operation, approval: ApprovalRequest) -> Operation {
    Operation {
        operation_id: super::ids::operation_id(operation.operation_id.as_str(), "ask"),
        kind: OperationKind::Approval,
        pool: String::new(),
        request: tool::without_toolbox(&operation.request),
        approval: Some(approval),
        ..operation.clone()
    }
}

/// One reply causes no more than so many calls, however many it has (invariant Q1).
fn too_many(call: &ToolCall) -> ToolResult {
    let message = "too many calls at once; call it again by itself".to_owned();
    ToolResult::failed(&call.id, ToolError { code: ToolErrorCode::PermissionDenied, message, retriable: false })
}

/// The state has what is open, and what is done after a yes; it has a bound (see `room`).
fn no_room(call: &ToolCall) -> ToolResult {
    let message = "too much is under way or waits for people; wait for results of that, or ask for less".to_owned();
    ToolResult::failed(&call.id, ToolError { code: ToolErrorCode::PermissionDenied, message, retriable: true })
}

/// What a model is told when a person said no, or nobody said anything for as long as that was waited for.
pub(super) fn denied(call_id: &str, reason: Option<&str>) -> ToolResult {
    let message = match reason {
        Some(reason) => format!("this was not allowed: {reason}"),
        None => "a person said no; go on without it".to_owned(),
    };
    ToolResult::failed(call_id, ToolError { code: ToolErrorCode::PermissionDenied, message, retriable: false })
}

/// An agent whose compaction is off has no compactor: nothing is compacted, and nobody fails for it (SPEC A-CMP-04).
fn not_compacted(call: &ToolCall) -> ToolResult {
    let message = "compaction is not configured; the context is as it was";
    ToolResult::ok(call.id.clone(), serde_json::json!({"compacted": false, "message": message}))
}
