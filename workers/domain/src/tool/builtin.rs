//! Tools that every agent has, under reserved names (SPEC A-TOOL-10, W-TOOL-14). Providers take no dot
//! in a name, so models see `memory_search` where people write `memory.search`; both are understood.

use schemas::definition::{ActionKind, Chosen, EffectClass, Execution, TargetType, Tool, ToolRetry};
use schemas::id::DefinitionId;
use schemas::limits::{
    CODE_BYTES_MAX, CODE_MS_MAX, ID_BYTES_MAX, MEMORY_HITS_MAX, MEMORY_LABEL_BYTES_MAX, MEMORY_TYPE_BYTES_MAX,
};
use serde_json::{Map, Value, json};

use super::resolve::{ResolvedAction, ResolvedTarget, ResolvedTool};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Builtin {
    MemoryWrite,
    MemorySearch,
    MemoryRead,
    MemoryList,
    MemoryDelete,
    CompactContext,
    ExecuteCode,
}

/// Version of all that is built in; a change of what they mean raises it.
const VERSION: u64 = 2;

impl Builtin {
    pub const ALL: [Self; 7] = [
        Self::MemoryWrite,
        Self::MemorySearch,
        Self::MemoryRead,
        Self::MemoryList,
        Self::MemoryDelete,
        Self::CompactContext,
        Self::ExecuteCode,
    ];

    /// What models call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::MemoryWrite => "memory_write",
            Self::MemorySearch => "memory_search",
            Self::MemoryRead => "memory_read",
            Self::MemoryList => "memory_list",
            Self::MemoryDelete => "memory_delete",
            Self::CompactContext => "compact_context",
            Self::ExecuteCode => "execute_code",
        }
    }

    /// Reads a name in either spelling.
    pub fn parse(name: &str) -> Option<Self> {
        let plain = name.strip_prefix("memory.").map(|operation| format!("memory_{operation}"));
        let name = plain.as_deref().unwrap_or(name);
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// Its id, which no definition of a user has as a tool's target.
    pub fn id(self) -> DefinitionId {
        DefinitionId::parse(&format!("builtin:{}", self.name())).expect("names are plain")
    }

    /// Which one a tool is, if it is one.
    pub fn of(tool: &ResolvedTool) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.id() == tool.tool.id)
    }

    fn kind(self) -> (ActionKind, &'static str) {
        match self {
            Self::MemoryWrite => (ActionKind::Memory, "write"),
            Self::MemorySearch => (ActionKind::Memory, "search"),
            Self::MemoryRead => (ActionKind::Memory, "read"),
            Self::MemoryList => (ActionKind::Memory, "list"),
            Self::MemoryDelete => (ActionKind::Memory, "delete"),
            Self::CompactContext => (ActionKind::Context, "compact"),
            Self::ExecuteCode => (ActionKind::Code, "execute"),
        }
    }

    fn effect_class(self) -> EffectClass {
        match self {
            Self::MemorySearch | Self::MemoryRead | Self::MemoryList => EffectClass::Pure,
            // The key of the operation is the id of what is written, and deleting twice is deleting once.
            Self::MemoryWrite | Self::MemoryDelete | Self::CompactContext => EffectClass::Idempotent,
            // The tools that code calls may do anything.
            Self::ExecuteCode => EffectClass::AtMostOnce,
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::MemoryWrite => {
                "Keep something for later conversations: a fact, a decision, a preference. Short texts are found best."
            }
            Self::MemorySearch => {
                "Search what you remember, by meaning. Use it when the memories shown are not enough."
            }
            Self::MemoryRead => "Read one memory whole, by its id or its label.",
            Self::MemoryList => "List what you remember, newest first.",
            Self::MemoryDelete => {
                "Forget one memory, by its id or its label. Use it when a memory is wrong or superseded."
            }
            Self::CompactContext => {
                "Replace the older part of this conversation by a summary. Use it when the context is nearly full."
            }
            Self::ExecuteCode => {
                "Run a JavaScript or TypeScript program and get what it prints. It sees no network, and no files but \
                 its own folder. Within it, `await tools.call(name, input)` calls another of your tools and gives its \
                 answer, or throws; at most 25 times, and only tools that may be repeated and need nobody's yes."
            }
        }
    }

    fn input_schema(self) -> Value {
        let id = json!({"type": "string", "minLength": 1, "maxLength": ID_BYTES_MAX,
            "description": "Id of the memory."});
        let kind = json!({"type": "string", "minLength": 1, "maxLength": MEMORY_TYPE_BYTES_MAX,
            "description": "A word for what it is, as in fact, decision or episode."});
        let kinds = json!({"type": "array", "items": kind, "description": "Only memories of these types."});
        let limit = json!({"type": "integer", "minimum": 1, "maximum": MEMORY_HITS_MAX});
        let label = json!({"type": "string", "minLength": 1, "maxLength": MEMORY_LABEL_BYTES_MAX,
            "description": "The name of the memory."});
        match self {
            Self::MemoryWrite => object(
                json!({
                    "content": {"type": "string", "minLength": 1, "description": "The text; about 1 KB at most is best."},
                    "type": kind,
                    "significance": {"type": "number", "minimum": 0, "maximum": 1,
                        "description": "How important it is, whatever is asked for; 0.5 if left out."},
                    "label": {"type": "string", "minLength": 1, "maxLength": MEMORY_LABEL_BYTES_MAX,
                        "description": "A name; writing to the same name again replaces the memory."},
                    "tier": {"enum": ["core", "working", "archival"],
                        "description": "core and working are always before you, archival is searched; archival if left out."},
                    "metadata": {"type": "object"},
                    "id": id,
                }),
                &["content"],
            ),
            Self::MemorySearch => object(
                json!({"query": {"type": "string", "minLength": 1, "description": "What to look for, in words."},
                    "types": kinds, "limit": limit}),
                &["query"],
            ),
            Self::MemoryRead | Self::MemoryDelete => object(json!({"id": id, "label": label}), &[]),
            Self::MemoryList => object(
                json!({"types": kinds, "limit": limit,
                    "cursor": {"type": "string", "description": "Of the page before, for the next one."}}),
                &[],
            ),
            Self::CompactContext => object(json!({}), &[]),
            Self::ExecuteCode => object(
                json!({"code": {"type": "string", "minLength": 1, "maxLength": CODE_BYTES_MAX,
                    "description": "The program; print what you want to see with console.log."}}),
                &["code"],
            ),
        }
    }

    /// As a tool of a turn.
    pub fn resolved(self) -> ResolvedTool {
        let (kind, operation) = self.kind();
        let Value::Object(input_schema) = self.input_schema() else { unreachable!("schemas are objects") };
        // A memory may be written at first sight of a new model of embeddings; code has its own limit.
        let timeout_ms = if self == Self::ExecuteCode { CODE_MS_MAX + 10_000 } else { 60_000 };
        let retry = ToolRetry { max_attempts: 3, backoff_ms: 500, timeout_ms };
        let execution = Execution { timeout_ms, ..Execution::default() };
        let tool = Tool {
            id: self.id(),
            name: self.name().to_owned(),
            description: self.description().to_owned(),
            library_id: None,
            project_id: None,
            input_schema,
            target_type: TargetType::Task,
            target_id: self.id(),
            is_async: false,
            invocation_mode: None,
            input_mapping: None,
            retry,
            effect_class: self.effect_class(),
            requires_approval: None,
            chosen: Chosen::default(),
        };
        let action = ResolvedAction {
            target_id: self.id(),
            version: VERSION,
            action_id: self.id(),
            action_version: VERSION,
            kind,
            operation: operation.to_owned(),
            config: Map::new(),
            task_schema: None,
            input_schema: None,
            output_schema: None,
            input_mapping: None,
            output_mapping: None,
            effect_class: self.effect_class(),
            execution,
            timeout_ms: None,
            idempotency_key: None,
            chosen: Chosen::default(),
        };
        ResolvedTool { tool, version: VERSION, target: ResolvedTarget::Action(Box::new(action)) }
    }
}

/// All of them, to be put behind the tools of a persona.
pub fn builtins() -> Vec<ResolvedTool> {
    Builtin::ALL.into_iter().map(Builtin::resolved).collect()
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}
