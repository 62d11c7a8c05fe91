//! `memory`: what the calling agent remembers. Whose memories are meant comes from where the call is
//! made, never from its input (SPEC W-MEM-05).

use std::sync::Arc;

use async_trait::async_trait;
use domain::chat::ToolErrorCode;
use domain::failure::{Certainty, Failure};
use domain::memory::input::{MemoryList, MemoryRef, MemorySearch, MemoryWrite};
use domain::ports::{ActionCall, ActionFailure, ActionRunner, Embedder, Memories, MemoryListQuery, Trouble};
use domain::recall::{self, Recalled};
use domain::time::rfc3339;
use schemas::id::MemoryId;
use schemas::memory::{Memory, MemoryOwner};
use schemas::problem::FieldProblem;
use serde_json::{Value, json};

/// Runs actions of kind `memory`; put in with [`super::Actions::with`].
pub struct MemoryActions {
    memories: Arc<dyn Memories>,
    embedder: Arc<dyn Embedder>,
}

impl MemoryActions {
    pub fn new(memories: Arc<dyn Memories>, embedder: Arc<dyn Embedder>) -> Self {
        Self { memories, embedder }
    }
}

#[async_trait]
impl ActionRunner for MemoryActions {
    async fn run(&self, call: &ActionCall) -> Result<Value, ActionFailure> {
        let Some(agent_id) = call.request.context.agent_id.clone() else {
            return Err(ActionFailure::invalid("memories are an agent's, and no agent makes this call"));
        };
        let owner = MemoryOwner { namespace: call.namespace.clone(), agent_id };
        let input = &call.request.input;
        match call.request.operation.as_str() {
            "write" => self.write(call, &owner, input).await,
            "search" => self.search(&owner, input).await,
            "read" => self.read(&owner, input).await,
            "list" => self.list(&owner, input).await,
            "delete" => self.delete(&owner, input).await,
            other => Err(ActionFailure::invalid(format!("memory has no operation {other}"))),
        }
    }
}

impl MemoryActions {
    async fn write(&self, call: &ActionCall, owner: &MemoryOwner, input: &Value) -> Result<Value, ActionFailure> {
        let write = MemoryWrite::check(input).map_err(wrong)?;
        // The operation's id: a repeat of the attempt is the same write.
        let made = MemoryId::parse(call.operation_id.as_str())
            .map_err(|error| ActionFailure::invalid(format!("the id of the operation {error}")))?;
        let written = recall::write(self.memories.as_ref(), self.embedder.as_ref(), owner, write, made).await;
        let written = told(written.map_err(away)?);
        Ok(json!({"id": written.id, "change": written.change, "version": written.version}))
    }

    async fn search(&self, owner: &MemoryOwner, input: &Value) -> Result<Value, ActionFailure> {
        let search = MemorySearch::check(input).map_err(wrong)?;
        let found = recall::search(self.memories.as_ref(), self.embedder.as_ref(), owner, search).await;
        let found = told(found.map_err(away)?);
        let hits: Vec<Value> = found
            .hits
            .iter()
            .map(|hit| {
                let mut shown = shown(&hit.memory);
                shown["relevance"] = rounded(hit.relevance);
                shown
            })
            .collect();
        let mut answer = json!({ "memories": hits });
        if found.incomplete {
            answer["incomplete"] = true.into();
        }
        Ok(answer)
    }

    async fn read(&self, owner: &MemoryOwner, input: &Value) -> Result<Value, ActionFailure> {
        let key = MemoryRef::check(input).map_err(wrong)?;
        match self.memories.read(owner, &key).await.map_err(away)? {
            Some(memory) => Ok(shown(&memory)),
            None => Err(missing()),
        }
    }

    async fn list(&self, owner: &MemoryOwner, input: &Value) -> Result<Value, ActionFailure> {
        let MemoryList { filter, after, limit } = MemoryList::check(input).map_err(wrong)?;
        let query = MemoryListQuery { filter, after, limit };
        let page = self.memories.list(owner, &query).await.map_err(away)?;
        let rows: Vec<Value> = page.rows.iter().map(shown).collect();
        let mut answer = json!({ "memories": rows });
        if let Some(next) = &page.next {
            answer["cursor"] = MemoryList::cursor(next).into();
        }
        Ok(answer)
    }

    async fn delete(&self, owner: &MemoryOwner, input: &Value) -> Result<Value, ActionFailure> {
        let key = MemoryRef::check(input).map_err(wrong)?;
        // Deleting what is gone is no failure: this attempt may be a repeat.
        let deleted = self.memories.delete(owner, &key).await.map_err(away)?;
        Ok(json!({ "deleted": deleted }))
    }
}

/// A memory as a model is shown it. Content that overflowed is not in lists: it is read by id.
fn shown(memory: &Memory) -> Value {
    let mut shown = json!({
        "id": memory.id,
        "type": memory.kind,
        "content": memory.content,
        "significance": rounded(memory.significance),
        "updated_at": rfc3339(memory.updated_at_ms),
    });
    if memory.content.is_empty() && memory.content_ref.is_some() {
        shown["content"] = Value::Null;
        shown["note"] = "too large for a list; read it by its id".into();
    }
    if let Some(label) = &memory.label {
        shown["label"] = label.as_str().into();
    }
    if !memory.metadata.is_empty() {
        shown["metadata"] = Value::Object(memory.metadata.clone());
    }
    shown
}

/// Two digits are enough to choose by.
fn rounded(number: f64) -> Value {
    ((number * 100.0).round() / 100.0).into()
}

/// The value; that it had to do without a vector is for the log.
fn told<T>(recalled: Recalled<T>) -> T {
    if let Some(failure) = recalled.not_embedded {
        tracing::warn!(%failure, "a text could not be embedded; words alone count for it");
    }
    recalled.value
}

fn wrong(problems: Vec<FieldProblem>) -> ActionFailure {
    let lines: Vec<String> = problems.iter().map(|one| format!("{}: {}", one.field, one.message)).collect();
    ActionFailure::invalid(format!("the input does not fit: {}", lines.join("; ")))
}

fn missing() -> ActionFailure {
    ActionFailure::business(ToolErrorCode::NotFound, "there is no such memory; memory_list shows those there are")
}

fn away(failure: Failure) -> ActionFailure {
    let sent = failure.certainty == Certainty::MayHaveHappened;
    let message = format!("the memories cannot be reached: {}", failure.message);
    if failure.retriable {
        return ActionFailure::trouble(Trouble::ServerError, message, sent);
    }
    tracing::error!(%failure, "memories");
    ActionFailure::business(ToolErrorCode::InternalError, "the memories cannot be used; the log has the details")
}
