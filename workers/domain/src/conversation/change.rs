//! `PATCH /api/conversations/{id}`: what is given replaces what is there.

use schemas::conversation::{Conversation, ConversationStatus};
use schemas::json::Json;
use schemas::limits::{TAG_BYTES_MAX, TAGS_MAX, TITLE_BYTES_MAX};
use schemas::problem::{Code, Problem};
use serde_json::{Map, Value};

use super::parts;
use crate::action::fields::{Object, Problems, wrong};

const FIELDS: &[&str] = &["title", "status", "tags", "metadata", "branch_context"];

/// What is to change; absent fields stay as they are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Change {
    pub title: Option<String>,
    /// The only status that anybody can ask for.
    pub complete: bool,
    pub tags: Option<Vec<String>>,
    pub metadata: Option<Json>,
    pub branch_context: Option<Json>,
}

/// Checks a whole body. The error names every wrong field.
pub fn parse(body: &Value) -> Result<Change, Box<Problem>> {
    let map = parts::whole(body, "{\"status\": \"completed\"}")?;
    if map.is_empty() {
        return Err(wrong("body", format!("changes nothing; send one of {}", FIELDS.join(", "))));
    }
    let (object, mut problems) = (Object::new("", map), Problems::default());
    object.refuse_unknown(FIELDS, &mut problems);
    refuse_null(map, &mut problems);
    let status = object.string("status", &mut problems);
    if status.is_some_and(|status| status != ConversationStatus::Completed.as_str()) {
        let what = "can only become completed: a conversation is active until somebody completes it, and stays so then";
        problems.add("status", what);
    }
    let tags = parts::texts(&object, "tags", TAGS_MAX, TAG_BYTES_MAX, &mut problems);
    let change = Change {
        title: object.text("title", TITLE_BYTES_MAX, &mut problems).map(str::to_owned),
        complete: status.is_some(),
        tags: object.has("tags").then_some(tags),
        metadata: parts::notes(&object, "metadata", &mut problems).map(|notes| Json::of(&notes)),
        branch_context: parts::notes(&object, "branch_context", &mut problems).map(|notes| Json::of(&notes)),
    };
    problems.into_result()?;
    Ok(change)
}

/// Taken for absent, a null would be a change that silently does not happen.
fn refuse_null(map: &Map<String, Value>, problems: &mut Problems) {
    for (name, _) in map.iter().filter(|(_, value)| value.is_null()) {
        problems.add(name.as_str(), "must not be null; leave it out to keep what is there");
    }
}

/// Whether a conversation takes messages.
///
/// # Errors
/// It is closed.
pub fn open(conversation: &Conversation) -> Result<(), Box<Problem>> {
    let how = match conversation.status {
        ConversationStatus::Active | ConversationStatus::Waiting => return Ok(()),
        ConversationStatus::Completed => "completed",
        ConversationStatus::Failed => "failed",
    };
    let id = &conversation.conversation_id;
    let detail = format!("{id} is {how}: nothing is said in it any more. Create another conversation.");
    Err(Box::new(Problem::new(Code::ConversationClosed, detail)))
}
