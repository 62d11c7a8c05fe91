//! The `ActionRunner` port: what tools run, one file per kind of action (SPEC 4.3).
//!
//! A kind that this crate does not know is brought by whoever wires the process: [`Actions::with`].

mod billed;
mod code;
mod context;
mod embed;
mod group;
mod http;
mod llm;
pub mod mcp;
mod memory;
mod mock;
mod native;
mod project;
mod template;
mod variables;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use domain::chat::ToolErrorCode;
use domain::ports::{ActionCall, ActionFailure, ActionRunner, Bill, Definitions, Embedder, Models, Probe, Trouble};
use schemas::definition::ActionKind;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::call::{CallError, Class};
use crate::net::Net;
use billed::{NoBill, OnBill};
pub use code::CodeConfig;
use mcp::{McpServer, Servers};
pub use memory::MemoryActions;
pub use variables::{HttpVariable, Variables};

/// What actions may use.
pub struct ActionsConfig {
    /// Whether addresses that definitions bring may be loopback or private ones.
    pub allow_private: bool,
    /// What headers of `http` actions may be filled with.
    pub variables: Variables,
    /// MCP servers by the names that definitions use.
    pub mcp: BTreeMap<String, McpServer>,
    pub code: CodeConfig,
}

/// Runs actions. Dropping a call's future ends the call and whatever it started.
pub struct Actions {
    net: Net,
    variables: Variables,
    models: Arc<dyn Models>,
    definitions: Arc<dyn Definitions>,
    embedder: Option<Arc<dyn Embedder>>,
    servers: Servers,
    code: CodeConfig,
    others: HashMap<ActionKind, Arc<dyn ActionRunner>>,
}

impl Actions {
    /// # Errors
    /// When the TLS set-up of the machine is unusable.
    pub fn new(
        config: ActionsConfig,
        models: Arc<dyn Models>,
        definitions: Arc<dyn Definitions>,
    ) -> Result<Self, String> {
        let net = Net::new(config.allow_private)?;
        let servers = Servers::new(config.mcp, net.models.clone());
        Ok(Self {
            net,
            variables: config.variables,
            models,
            definitions,
            embedder: None,
            servers,
            code: config.code,
            others: HashMap::new(),
        })
    }

    /// With what embeds the texts of `llm` actions.
    #[must_use]
    pub fn embedding_with(mut self, embedder: Arc<dyn Embedder>) -> Self {
        self.embedder = Some(embedder);
        self
    }

    /// With a runner for a kind, as for `memory`, instead of whatever is here.
    #[must_use]
    pub fn with(mut self, kind: ActionKind, runner: Arc<dyn ActionRunner>) -> Self {
        self.others.insert(kind, runner);
        self
    }

    /// The MCP servers, to ask what they offer.
    pub fn servers(&self) -> &Servers {
        &self.servers
    }
}

#[async_trait]
impl ActionRunner for Actions {
    async fn run(&self, call: &ActionCall) -> Result<Value, ActionFailure> {
        self.run_billed(call, &NoBill).await
    }

    async fn run_billed(&self, call: &ActionCall, bill: &dyn Bill) -> Result<Value, ActionFailure> {
        let kind = call.request.kind;
        if let Some(other) = self.others.get(&kind) {
            return other.run_billed(call, bill).await;
        }
        match kind {
            ActionKind::Http => http::run(&self.net, &self.variables, call).await,
            ActionKind::Mock => mock::run(call).await,
            ActionKind::Llm if call.request.operation == embed::OPERATION => {
                embed::run(self.embedder.as_deref(), call).await
            }
            ActionKind::Llm => llm::run(self.models.as_ref(), self.definitions.as_ref(), call, bill).await,
            ActionKind::Context => context::run(call),
            ActionKind::Mcp => mcp::run(&self.servers, call).await,
            ActionKind::Code => {
                let of_program = OnBill { runner: self, bill, attempt: call.attempt };
                code::run(&self.code, &of_program, call).await
            }
            // A person does it: the question is the work, and the answer ends the operation from outside.
            ActionKind::Human
            | ActionKind::Memory
            | ActionKind::Shell
            | ActionKind::Repo
            | ActionKind::Artifact
            | ActionKind::Metric
            | ActionKind::Vector
            | ActionKind::External => Err(unavailable(call)),
        }
    }

    async fn probe(&self, call: &ActionCall) -> Probe {
        match (self.others.get(&call.request.kind), call.request.kind) {
            (Some(other), _) => other.probe(call).await,
            (None, ActionKind::Http) => http::probe(&self.net, &self.variables, call).await,
            _ => Probe::Unknown,
        }
    }
}

fn unavailable(call: &ActionCall) -> ActionFailure {
    let kind = call.request.kind.as_str();
    let message = format!("no executor of this fleet runs actions of kind {kind}; go on without {}", call.tool);
    ActionFailure { may_have_happened: false, ..ActionFailure::business(ToolErrorCode::NotFound, message) }
}

/// The settings of an action, which were checked when it was written.
fn settings<T: DeserializeOwned>(call: &ActionCall) -> Result<T, ActionFailure> {
    serde_json::from_value(Value::Object(call.request.config.clone())).map_err(|error| {
        let action = &call.request.action_id;
        ActionFailure::invalid(format!("the settings of the action {action} cannot be read: {error}; mend its config"))
    })
}

/// A failed call to the world, as an end of an attempt.
fn failure(error: CallError) -> ActionFailure {
    let trouble = match error.class {
        Class::RateLimit => Some(Trouble::RateLimit),
        Class::Overloaded => Some(Trouble::ServerError),
        Class::Timeout => Some(Trouble::Timeout),
        Class::Network | Class::Cut => Some(Trouble::Network),
        Class::Auth | Class::Quota | Class::Invalid | Class::Safety | Class::Forbidden | Class::Unknown => None,
    };
    // Who says "too many" did not do it.
    let sent = error.sent && error.class != Class::RateLimit;
    let failure = match (trouble, error.class) {
        (Some(trouble), _) => ActionFailure::trouble(trouble, error.message, sent),
        (None, Class::Auth | Class::Forbidden) => {
            ActionFailure::business(ToolErrorCode::PermissionDenied, error.message)
        }
        (None, _) => ActionFailure::business(ToolErrorCode::ExecutionFailed, error.message),
    };
    ActionFailure { may_have_happened: sent, retry_after_ms: error.retry_after_ms, ..failure }
}
