//! Names in the place of a session's id.

use std::collections::BTreeSet;

use schemas::id::SessionId;
use serde_json::json;

use super::world::World;
use crate::routes;

#[tokio::test(start_paused = true)]
async fn no_session_takes_the_name_of_a_path() {
    let world = World::new().await;
    let body = json!({"type": "create", "session_id": "bulk", "payload": {"moniker": "count"}});
    assert_eq!(world.post("/api/actions", body).await.refusal(), ("invalid_request".into(), vec!["session_id".into()]));
    let read = world.get("/api/sessions/bulk").await;
    assert_eq!((read.problem().as_str(), read.header("allow")), ("method_not_allowed", "POST"));
    // Every fixed name in the place of an id is reserved, also of routes to come.
    let table = routes::table();
    let names = table.iter().filter_map(|route| route.path.strip_prefix("/api/sessions/")?.split('/').next());
    let fixed: BTreeSet<&str> = names.filter(|name| !name.starts_with('{')).collect();
    assert_eq!(fixed, SessionId::RESERVED.iter().copied().collect());
}
