//! `mcp`: tools of MCP servers, over stdio or streamable HTTP (protocol 2025-06-18). Connections are
//! made at the first call and shared; what breaks is made anew.

mod answer;
mod http;
mod message;
mod server;
mod stdio;

use std::fmt;

use domain::chat::ToolErrorCode;
use domain::ports::{ActionCall, ActionFailure, Trouble};
use serde::Deserialize;
use serde_json::{Value, json};

pub use server::{McpServer, Servers};

/// What goes wrong between us and a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpError {
    /// It cannot be reached or started, or broke off. Whether the request reached it.
    Broken { message: String, sent: bool },
    /// It answered with an error of the protocol.
    Refused { code: i64, message: String },
    /// The configuration, or what the server says, makes no sense.
    Invalid(String),
}

impl fmt::Display for McpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken { message, .. } | Self::Invalid(message) => f.write_str(message),
            Self::Refused { code, message } => write!(f, "it refused: {message} ({code})"),
        }
    }
}

impl std::error::Error for McpError {}

impl McpError {
    fn broken(message: impl Into<String>, sent: bool) -> Self {
        Self::Broken { message: message.into(), sent }
    }
}

#[derive(Debug, Deserialize)]
struct Settings {
    server: String,
    tool: String,
}

pub async fn run(servers: &Servers, call: &ActionCall) -> Result<Value, ActionFailure> {
    let settings: Settings = super::settings(call)?;
    let (server, tool) = (settings.server.as_str(), settings.tool.as_str());
    // The protocol has no key for repeats; servers that want one find it among the notes.
    let key = format!("{}:{}", call.namespace, call.operation_id);
    let parameters = json!({"name": tool, "arguments": call.request.input, "_meta": {"idempotency_key": key}});
    match servers.request(server, "tools/call", parameters).await {
        Ok(result) => answer::of(tool, &result),
        Err(McpError::Broken { message, sent }) => {
            Err(ActionFailure::trouble(Trouble::Network, format!("the MCP server {server}: {message}"), sent))
        }
        Err(McpError::Refused { code, message }) => {
            let kind = if code == message::INVALID_PARAMS || code == message::METHOD_NOT_FOUND {
                ToolErrorCode::InvalidInput
            } else {
                ToolErrorCode::ExecutionFailed
            };
            Err(ActionFailure::business(kind, format!("the MCP server {server} refused: {message}")))
        }
        Err(McpError::Invalid(message)) => {
            let failure = ActionFailure::business(ToolErrorCode::NotFound, message);
            Err(ActionFailure { may_have_happened: false, ..failure })
        }
    }
}
