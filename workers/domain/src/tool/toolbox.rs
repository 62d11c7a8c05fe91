//! What a program may call while it runs (SPEC A-RT-02). Decided when it is dispatched, by the tools of its
//! turn and the constraints of its agent, so whoever runs it needs to look nothing up.

use std::collections::BTreeMap;

use schemas::definition::{ActionKind, AgentConstraints, EffectClass};
use schemas::json::Json;
use schemas::limits::TOOLBOX_BYTES_MAX;
use serde::{Deserialize, Serialize};

use super::builtin::Builtin;
use super::dispatch::{Dispatch, wants_messages};
use super::plan::{ToolPlan, decide, effect_class, error, permitted};
use super::resolve::{ResolvedTarget, ResolvedTool};
use crate::chat::{ToolCall, ToolError, ToolErrorCode};

/// Kinds that an executor runs there and then.
const KINDS: [ActionKind; 5] =
    [ActionKind::Http, ActionKind::Mcp, ActionKind::Mock, ActionKind::Llm, ActionKind::Memory];

/// Programs of one reply that call tools: each of them is stored with a toolbox of its own.
const PROGRAMS_MAX: usize = 8;

/// The tools of an agent, as a program sees them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Toolbox {
    /// Those that it may call.
    pub tools: Vec<ResolvedTool>,
    /// The others by name, with what a program is told that calls them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, String>,
    /// Why a program may call none at all: told at each call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<String>,
}

impl Toolbox {
    /// What a program may call whose operation has this class, after `others` of the same reply that may call
    /// something.
    pub fn for_program(
        tools: &[ResolvedTool],
        constraints: &AgentConstraints,
        class: EffectClass,
        others: usize,
    ) -> Self {
        let closed = |why: String| Self { closed: Some(why), ..Self::default() };
        // The keys of its calls count them as they come, and in another run they may come otherwise.
        if class != EffectClass::AtMostOnce {
            let why = "this program calls no tools, because it may be run again (effect_class), and what it calls \
                       would happen twice. The model can call them directly";
            return closed(why.to_owned());
        }
        if others >= PROGRAMS_MAX {
            let why =
                format!("at most {PROGRAMS_MAX} programs of one reply call tools; run this one in the next reply");
            return closed(why);
        }
        Self::of(tools, constraints)
    }

    pub fn of(tools: &[ResolvedTool], constraints: &AgentConstraints) -> Self {
        let mut toolbox = Self::default();
        let mut left = TOOLBOX_BYTES_MAX;
        for tool in tools {
            let name = &tool.tool.name;
            // The first of two with the same name counts.
            if toolbox.refused.contains_key(name) || toolbox.tools.iter().any(|known| known.tool.name == *name) {
                continue;
            }
            let bytes = serde_json::to_string(tool).map_or(usize::MAX, |text| text.len());
            let decided = permitted(tool, constraints).and_then(|()| callable(tool)).and_then(|()| {
                let what = || refusal(name, "its definition is too large to be given along");
                left.checked_sub(bytes).ok_or_else(what)
            });
            match decided {
                Ok(rest) => {
                    left = rest;
                    toolbox.tools.push(tool.clone());
                }
                Err(why) => _ = toolbox.refused.insert(name.clone(), why),
            }
        }
        toolbox
    }

    /// Whether a tool in it reads the history.
    pub fn wants_messages(&self) -> bool {
        let wants = |tool: &ResolvedTool| match &tool.target {
            ResolvedTarget::Action(action) => wants_messages(&action.config),
            ResolvedTarget::Agent { .. } | ResolvedTarget::Missing { .. } => false,
        };
        self.tools.iter().any(wants)
    }

    /// Decides a call of the program as one of the model is decided.
    ///
    /// # Errors
    /// Why it is not made, for the program.
    pub fn dispatch(&self, call: &ToolCall) -> Result<Dispatch, ToolError> {
        if let Some(why) = &self.closed {
            return Err(error(ToolErrorCode::PermissionDenied, why.clone()));
        }
        let name = Builtin::parse(&call.name).map_or(call.name.as_str(), |builtin| builtin.name());
        if let Some(why) = self.refused.get(name) {
            return Err(error(ToolErrorCode::PermissionDenied, why.clone()));
        }
        // What the constraints do not permit is not among the tools.
        match decide(&self.tools, &AgentConstraints::default(), call)? {
            ToolPlan::Dispatch(dispatch) => Ok(*dispatch),
            ToolPlan::Refused(result) => Err(result.error.unwrap_or_else(|| error(ToolErrorCode::InternalError, name))),
            ToolPlan::Agent(_) => Err(error(ToolErrorCode::PermissionDenied, refusal(name, "it asks another agent"))),
        }
    }
}

/// A request as people are shown it: without what a program may call, which is much and was asked by nobody.
pub fn without_toolbox(request: &Json) -> Json {
    const FIELD: &str = "toolbox";
    let stripped = || {
        let mut fields: BTreeMap<String, Json> = request.to().ok()?;
        let mut context: BTreeMap<String, Json> = fields.get("context")?.to().ok()?;
        context.remove(FIELD)?;
        fields.insert("context".to_owned(), Json::of(&context));
        Some(Json::of(&fields))
    };
    // Few requests have one, and the others need not be read.
    let may_have = request.as_str().contains(FIELD);
    may_have.then(stripped).flatten().unwrap_or_else(|| request.clone())
}

/// Whether a tool can be run there and then, and does no harm when whoever runs it dies.
fn callable(tool: &ResolvedTool) -> Result<(), String> {
    let why = match &tool.target {
        // A call of it tells what is missing.
        ResolvedTarget::Missing { .. } => return Ok(()),
        ResolvedTarget::Agent { .. } => "it asks another agent".to_owned(),
        ResolvedTarget::Action(action) if !KINDS.contains(&action.kind) => {
            format!("programs run no actions of kind {}", action.kind.as_str())
        }
        ResolvedTarget::Action(_) if tool.tool.requires_approval.is_some() => "a person is asked first".to_owned(),
        ResolvedTarget::Action(_) if tool.tool.is_async => "its result comes later".to_owned(),
        ResolvedTarget::Action(action) => match effect_class(tool.tool.said_class(), action.said_class()) {
            EffectClass::AtMostOnce => "nobody has declared that it may be repeated (effect_class)".to_owned(),
            EffectClass::Pure | EffectClass::Idempotent | EffectClass::Probeable => return Ok(()),
        },
    };
    Err(refusal(&tool.tool.name, &why))
}

fn refusal(name: &str, why: &str) -> String {
    format!("{name} cannot be called by a program: {why}. The model can call it directly")
}
