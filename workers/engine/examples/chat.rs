//! An agent with one tool, on the model that the environment names (`ANTHROPIC_API_KEY` and so on),
//! or on a script, as here in `workers/engine/examples`:
//! `STEPFLEET_SCRIPT=harbour.json cargo run -p engine --example chat -- "How many ships are there?"`

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use domain::chat::{CallContext, ToolCall, ToolResult, ToolSpec};
use engine::{AgentDeps, MemoryStore, ModelsAdapter, PROFILE_MODEL, Tools, create_agent};
use providers::{Performer, ProvidersConfig};
use serde_json::json;

struct Harbour;

#[async_trait]
impl Tools for Harbour {
    fn specs(&self) -> Vec<ToolSpec> {
        vec![ToolSpec {
            name: "count_ships".to_owned(),
            description: "How many ships are in the harbour now.".to_owned(),
            input_schema: json!({"type": "object", "properties": {}}),
        }]
    }

    async fn call(&self, call: &ToolCall, _: &CallContext) -> ToolResult {
        ToolResult::ok(call.id.clone(), json!({"ships": 3}))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let question = std::env::args().nth(1).ok_or("usage: chat <question>")?;
    let config = ProvidersConfig::from_env(|name| std::env::var(name).ok(), BTreeMap::new());
    let performer = Performer::new(&config)?;
    let models = ModelsAdapter::fleet_default(Arc::new(performer), "default");
    let deps = AgentDeps {
        system_prompt: "You are the harbour master. Be brief.".to_owned(),
        tools: Some(Arc::new(Harbour)),
        ..AgentDeps::new("master", Arc::new(MemoryStore::new()), Arc::new(models), PROFILE_MODEL)
    };
    let mut agent = create_agent(deps, None).await?;
    println!("{}", agent.process_message(question).await?);
    for message in agent.conversation_history().await? {
        println!("  {}: {}", message.role.as_str(), message.content.text());
    }
    Ok(())
}
