//! Outbound: models, step functions of others, documents. The only crate that calls out.
//!
//! [`Performer`] implements the `Effects` and `Models` ports, [`Actions`] runs the tools of agents. Model adapters are pure: request
//! builders, readers of answers and of event streams, one folder each. One transport and one retry
//! loop serve them all.

mod action;
mod attempts;
mod call;
mod chat;
mod clock;
pub mod config;
mod documents;
mod embedding;
mod exchange;
#[cfg(test)]
mod fake_server;
mod http;
mod listing;
mod model;
mod net;
mod performer;
mod scripted;
mod sse;

pub use action::mcp::{McpServer, Servers as McpServers};
pub use action::{Actions, ActionsConfig, CodeConfig, HttpVariable, MemoryActions, Variables};
pub use config::{ConfigProblems, EmbeddingConfig, EmbeddingSettings, Profile, ProvidersConfig, Secret, Vendor};
pub use embedding::{STATIC_MODEL, StaticEmbedder, embedder};
pub use listing::name_model;
pub use performer::{Performer, prices_of};
pub use scripted::{Request, Scripted};
