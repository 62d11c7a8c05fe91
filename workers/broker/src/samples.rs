//! Sample values for the unit tests of this crate.

use schemas::action::{Action, ActionType, Urgency};
use schemas::id::{ActionId, AgentId, Namespace, SessionId, Shard};
use schemas::json::Json;

/// The n-th input of a session on the given shard.
pub fn action(shard: u16, n: u64) -> Action {
    Action {
        namespace: Namespace::default_ns(),
        action_id: ActionId::parse(&format!("a{n}")).unwrap(),
        kind: ActionType::Input,
        session_id: SessionId::parse("s").unwrap(),
        agent_id: AgentId::parse("g").unwrap(),
        conversation_id: None,
        shard: Shard(shard),
        session_seq: n,
        urgency: Urgency::Normal,
        actor: "test".into(),
        payload: Json::null(),
        metadata: Json::null(),
        accepted_at_ms: 0,
        opens: None,
    }
}
