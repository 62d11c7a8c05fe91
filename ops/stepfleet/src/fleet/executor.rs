//! The executor role of a process: what its tools may use, from the settings.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Error, Result, bail};
use host::config::{Config, McpServer};
use providers::{Actions, ActionsConfig, CodeConfig, HttpVariable, MemoryActions, Variables};
use schemas::definition::ActionKind;
use schemas::id::{Namespace, WorkerId};
use worker::executor::{Executor, ExecutorConfig, ExecutorDeps, Nudge, Relayed};

use super::Parts;

/// Starts to run operations.
///
/// # Errors
/// The TLS set-up of the machine is unusable.
pub fn start(parts: &Parts, config: &Config, worker: &WorkerId, nudge: Nudge) -> Result<Executor> {
    let settings = ActionsConfig {
        allow_private: parts.allow_private,
        variables: Variables::of_process(http_variables(config)),
        mcp: mcp_servers(config),
        code: CodeConfig { deno: config.deno.clone(), allow_net: config.code_hosts.clone() },
    };
    let actions = Actions::new(settings, parts.models.clone(), parts.store.definitions.clone()).map_err(Error::msg)?;
    let actions = actions.embedding_with(parts.embedder.clone());
    let memory = MemoryActions::new(parts.memories.clone(), parts.embedder.clone());
    let deps = ExecutorDeps {
        operations: parts.store.operations.clone(),
        runner: Arc::new(actions.with(ActionKind::Memory, Arc::new(memory))),
        queue: parts.queue.clone(),
        ledger: parts.store.ledger.clone(),
        tasks: parts.tasks.clone(),
    };
    if deps.tasks.is_none() && !config.task_pools.is_empty() {
        bail!(
            "task_pools needs a broker: set amqp_url, or let workers claim over HTTP (POST /api/pools/{{pool}}/claim)"
        );
    }
    let settings = ExecutorConfig { relayed: relayed_pools(config)?, ..ExecutorConfig::new(worker.clone()) };
    Ok(Executor::start(deps, settings, nudge))
}

/// The pools whose tasks travel over the broker.
///
/// # Errors
/// One has a name that no pool can have.
pub fn relayed_pools(config: &Config) -> Result<Vec<Relayed>> {
    config.task_pools.iter().map(|pool| relayed(pool)).collect()
}

/// `pool`, or `namespace:pool`.
fn relayed(text: &str) -> Result<Relayed> {
    let (namespace, pool) = match text.rsplit_once(':') {
        Some((namespace, pool)) => (Namespace::parse(namespace)?, pool),
        None => (Namespace::default_ns(), text),
    };
    Ok(Relayed { namespace, pool: pool.to_owned() })
}

fn http_variables(config: &Config) -> Vec<HttpVariable> {
    let variable = |(name, host): &(String, String)| HttpVariable { name: name.clone(), host: host.clone() };
    config.http_env.iter().map(variable).collect()
}

/// The configured MCP servers, by their names.
pub fn mcp_servers(config: &Config) -> BTreeMap<String, providers::McpServer> {
    config.mcp.iter().map(|(name, server)| (name.clone(), server_of(server))).collect()
}

fn server_of(server: &McpServer) -> providers::McpServer {
    let McpServer { command, args, env, directory, url, token_env } = server.clone();
    providers::McpServer { command, args, env, directory, url, token_env }
}
