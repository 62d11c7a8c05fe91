//! From a model's call to what is done for it (SPEC W-TOOL-04): resolve, permit, check, map, dispatch.

use schemas::conversation::{ApprovalRequest, OperationKind};
use schemas::definition::{
    ActionKind, AgentConstraints, Approval, ApprovalDefault, EffectClass, InvocationMode, TargetType, Tool,
};
use schemas::id::DefinitionId;
use schemas::limits::{AGENT_MS_DEFAULT, APPROVAL_S_MAX, TASK_UNTAKEN_S_DEFAULT};
use serde_json::{Map, Value, json};

use super::builtin::Builtin;
use super::dispatch::{ActionRequest, Dispatch, ExecutionContext, wants_messages};
use super::resolve::{ResolvedAction, ResolvedTarget, ResolvedTool};
use super::{MODE_FIELD, POOL, map, schema, spec};
use crate::action::{fields, hash};
use crate::chat::{ToolCall, ToolError, ToolErrorCode, ToolResult};

/// What a call of the model comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolPlan {
    /// The answer is known already.
    Refused(ToolResult),
    Dispatch(Box<Dispatch>),
    Agent(Box<AgentCall>),
}

/// Another agent is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentCall {
    pub agent_id: DefinitionId,
    pub mode: InvocationMode,
    /// Checked and mapped; everything that crosses to it in delegate mode (SPEC W-INV-06).
    pub input: Value,
    pub is_async: bool,
    /// Of the whole call.
    pub timeout_ms: u64,
    pub approval: Option<ApprovalRequest>,
}

/// Decides one call. The same call of the same tools is always decided alike.
pub fn plan(tools: &[ResolvedTool], constraints: &AgentConstraints, call: &ToolCall) -> ToolPlan {
    decide(tools, constraints, call).unwrap_or_else(|error| ToolPlan::Refused(ToolResult::failed(&call.id, error)))
}

pub(super) fn decide(
    tools: &[ResolvedTool],
    constraints: &AgentConstraints,
    call: &ToolCall,
) -> Result<ToolPlan, ToolError> {
    let tool = find(tools, &call.name)?;
    permitted(tool, constraints).map_err(|why| error(ToolErrorCode::PermissionDenied, why))?;
    if let Some(refused) = ToolResult::of_invalid(call) {
        return Ok(ToolPlan::Refused(refused));
    }
    let (mode, given) = mode(tool, &call.input)?;
    fits(&tool.tool.name, &tool.tool.input_schema, &given, "")?;
    let input = match &tool.tool.input_mapping {
        Some(mapping) => map::of_input(mapping, &given),
        None => given,
    };
    // Bound to what the model said, so that what is approved is what is shown.
    let approval = tool.tool.requires_approval.as_ref().map(|gate| ask(gate, &tool.tool.name, &call.input));
    match &tool.target {
        ResolvedTarget::Missing { reason } => Err(error(ToolErrorCode::NotFound, reason.clone())),
        ResolvedTarget::Agent { agent_id, .. } => Ok(ToolPlan::Agent(Box::new(AgentCall {
            agent_id: agent_id.clone(),
            mode,
            input,
            // Who joins does so at once (SPEC W-TOOL-07).
            is_async: tool.tool.is_async && mode == InvocationMode::Delegate,
            // What tools have by default is for machines.
            timeout_ms: tool.tool.said_timeout_ms().unwrap_or(AGENT_MS_DEFAULT),
            approval,
        }))),
        ResolvedTarget::Action(action) => dispatch(&tool.tool, action, input, approval, &call.input),
    }
}

pub(super) fn error(code: ToolErrorCode, message: impl Into<String>) -> ToolError {
    ToolError { code, message: message.into(), retriable: false }
}

fn find<'t>(tools: &'t [ResolvedTool], name: &str) -> Result<&'t ResolvedTool, ToolError> {
    let built_in = Builtin::parse(name).map(Builtin::name);
    let found = tools.iter().find(|tool| tool.tool.name == name || Some(tool.tool.name.as_str()) == built_in);
    found.ok_or_else(|| {
        let known: Vec<&str> = tools.iter().map(|tool| tool.tool.name.as_str()).collect();
        let what = match known.as_slice() {
            [] => "no tools can be called here".to_owned(),
            known => fields::not_one_of(name, known),
        };
        error(ToolErrorCode::NotFound, format!("there is no such tool: {what}"))
    })
}

/// Whether an agent may use a tool.
///
/// # Errors
/// Why not, in words for the model.
pub fn permitted(tool: &ResolvedTool, constraints: &AgentConstraints) -> Result<(), String> {
    let name = &tool.tool.name;
    // Lists of tools are lists of definitions; what is built in is limited by its kind.
    if let Some(allowed) = &constraints.allowed_tools
        && Builtin::of(tool).is_none()
        && !allowed.contains(&tool.tool.id)
    {
        return Err(format!("{name} is not among the tools that you may use; go on without it"));
    }
    if let (Some(kinds), ResolvedTarget::Action(action)) = (&constraints.allowed_action_kinds, &tool.target)
        && !kinds.contains(&action.kind)
    {
        let kind = action.kind.as_str();
        return Err(format!("{name} runs an action of kind {kind}, which you may not use; go on without it"));
    }
    Ok(())
}

/// How the agent is asked, and the input without that choice.
fn mode(tool: &ResolvedTool, input: &Value) -> Result<(InvocationMode, Value), ToolError> {
    let usual = tool.tool.invocation_mode.unwrap_or(InvocationMode::Delegate);
    let mut given = input.clone();
    if !matches!(tool.target, ResolvedTarget::Agent { .. }) || spec::defines_mode(tool) {
        return Ok((usual, given));
    }
    let chosen = given.as_object_mut().and_then(|map| map.remove(MODE_FIELD));
    let mode = match chosen.as_ref() {
        None | Some(Value::Null) => usual,
        Some(Value::String(text)) if text == "delegate" => InvocationMode::Delegate,
        Some(Value::String(text)) if text == "loop_in" => InvocationMode::LoopIn,
        Some(other) => {
            let what = format!(
                "the input of {} does not fit its schema: /{MODE_FIELD}: must be \"delegate\" or \"loop_in\", not {other}",
                tool.tool.name
            );
            return Err(error(ToolErrorCode::InvalidInput, what));
        }
    };
    Ok((mode, given))
}

/// Agents that a model may loop in with these tools.
pub fn may_join(tools: &[ResolvedTool]) -> Vec<&DefinitionId> {
    let may =
        |tool: &&ResolvedTool| tool.tool.invocation_mode == Some(InvocationMode::LoopIn) || !spec::defines_mode(tool);
    let agents = tools.iter().filter(may).filter_map(|tool| match &tool.target {
        ResolvedTarget::Agent { agent_id, .. } => Some(agent_id),
        ResolvedTarget::Action(_) | ResolvedTarget::Missing { .. } => None,
    });
    agents.collect()
}

fn fits(name: &str, schema: &Map<String, Value>, value: &Value, whose: &str) -> Result<(), ToolError> {
    let errors = schema::check(schema, value);
    if errors.is_empty() {
        return Ok(());
    }
    let what = format!("the input of {name} does not fit {whose}its schema: {}", schema::words(&errors));
    Err(error(ToolErrorCode::InvalidInput, what))
}

/// SHA-256 over the tool's name and the canonical text of its input, hexadecimal.
pub fn arguments_hash(tool: &str, input: &Value) -> String {
    hash::hex(&hash::sha256(&hash::canonical(&json!([tool, input]))))
}

fn ask(gate: &Approval, tool: &str, input: &Value) -> ApprovalRequest {
    ApprovalRequest {
        arguments_hash: arguments_hash(tool, input),
        expires_ms: gate.expires_s.saturating_mul(1_000),
        default_approve: gate.default == ApprovalDefault::Approve,
    }
}

fn dispatch(
    tool: &Tool,
    action: &ResolvedAction,
    input: Value,
    approval: Option<ApprovalRequest>,
    said: &Value,
) -> Result<ToolPlan, ToolError> {
    if let Some(schema) = &action.task_schema {
        fits(&tool.name, schema, &input, "after mapping ")?;
    }
    let input = match &action.input_mapping {
        Some(mapping) => map::mapped(mapping, &input),
        None => input,
    };
    if let Some(schema) = &action.input_schema {
        fits(&tool.name, schema, &input, "after mapping ")?;
    }
    let approval = match action.kind {
        // A person is the one who runs it: the question is the work itself.
        ActionKind::Human => approval.or_else(|| Some(ask(&gate_of(&action.config), &tool.name, said))),
        _ => approval,
    };
    let policy = &action.execution.retry_policy;
    // Of two answers to "how often", the one that somebody raised counts.
    let (max_attempts, backoff_ms) = if policy.max_attempts > tool.retry.max_attempts {
        (policy.max_attempts, policy.backoff_ms)
    } else {
        (tool.retry.max_attempts, tool.retry.backoff_ms)
    };
    Ok(ToolPlan::Dispatch(Box::new(Dispatch {
        kind: if approval.is_some() { OperationKind::Approval } else { OperationKind::Task },
        pool: pool(action),
        effect_class: effect_class(tool.said_class(), action.said_class()),
        max_attempts,
        backoff_ms,
        timeout_ms: timeout_ms(tool, action),
        wait_ms: wait_ms(action),
        is_async: tool.is_async,
        approval,
        wants_messages: wants_messages(&action.config),
        request: request(action, input),
    })))
}

fn request(action: &ResolvedAction, input: Value) -> ActionRequest {
    ActionRequest {
        target_type: TargetType::Task,
        target_id: action.target_id.clone(),
        version: action.version,
        action_id: action.action_id.clone(),
        action_version: action.action_version,
        kind: action.kind,
        operation: action.operation.clone(),
        config: action.config.clone(),
        output_schema: action.output_schema.clone(),
        output_mapping: action.output_mapping.clone(),
        retry_on: action.execution.retry_policy.retryable_errors.clone(),
        idempotency_key: action.idempotency_key.clone(),
        input,
        context: ExecutionContext::default(),
    }
}

/// What somebody said of the tool or of the action counts, and of two sayings the careful one.
pub(super) fn effect_class(tool: Option<EffectClass>, action: Option<EffectClass>) -> EffectClass {
    tool.max(action).unwrap_or_default()
}

/// What somebody said counts, and of several sayings the shortest: a default that nobody wrote must not cut short what
/// has been given its time (SPEC W-TOOL-03).
fn timeout_ms(tool: &Tool, action: &ResolvedAction) -> u64 {
    let said = [tool.said_timeout_ms(), action.execution.said_timeout_ms(), action.timeout_ms];
    said.into_iter().flatten().min().unwrap_or(tool.retry.timeout_ms)
}

/// Whose workers run it.
fn pool(action: &ResolvedAction) -> String {
    let named = action.config.get("pool").and_then(Value::as_str);
    match action.kind {
        ActionKind::External => named.unwrap_or(POOL).to_owned(),
        _ => POOL.to_owned(),
    }
}

/// How long work of others may wait for one of them: `expires_s` of its settings.
fn wait_ms(action: &ResolvedAction) -> Option<u64> {
    let given = action.config.get("expires_s").and_then(Value::as_u64);
    let seconds = given.unwrap_or(TASK_UNTAKEN_S_DEFAULT).min(APPROVAL_S_MAX);
    (action.kind == ActionKind::External).then(|| seconds.saturating_mul(1_000))
}

/// The gate of an action of kind `human`, from its settings `{expires_s?, default?}`.
fn gate_of(config: &Map<String, Value>) -> Approval {
    let given = |name: &str| config.get(name).map(|value| (name.to_owned(), value.clone()));
    let settings: Map<String, Value> = ["expires_s", "default"].into_iter().filter_map(given).collect();
    let usual = || serde_json::from_value(json!({})).expect("all settings have defaults");
    serde_json::from_value(Value::Object(settings)).unwrap_or_else(|_| usual())
}
