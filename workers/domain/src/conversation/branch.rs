//! Where the agents of a conversation work (SPEC W-BR-01). It is said here alone: the branch is made by whoever keeps
//! the repositories, when somebody works there.

use schemas::definition::Project;
use schemas::id::ConversationId;
use schemas::json::Json;
use serde_json::json;

/// What the branch begins from in a project that does not say.
const BASE: &str = "main";

/// The branch context of a conversation in this project, unless a client gives another one.
pub fn context(id: &ConversationId, project: &Project) -> Json {
    let base = project.default_branch.as_deref().unwrap_or(BASE);
    Json::of(&json!({"project_id": project.id, "branch": format!("wonder/conv-{id}"), "base": base}))
}
