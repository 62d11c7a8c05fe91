//! A checked definition with all its defaults: through its record and back.

use schemas::definition::{
    ActionDef, Agent, DefinitionKind, Library, ModelProfile, Persona, Project, PromptSpec, Task, Tool,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::said;

/// Fields whose content is the author's own: a `null` in there means something.
pub(super) const FREE: &[&str] =
    &["input_schema", "output_schema", "requires", "produces", "examples", "config", "execution_config"];

/// # Errors
/// The checks and the record disagree about what is right.
pub(super) fn normal(kind: DefinitionKind, value: &Value) -> Result<Value, serde_json::Error> {
    let value = said::noted(kind, without_nulls(value));
    match kind {
        DefinitionKind::Library => through::<Library>(value),
        DefinitionKind::Project => through::<Project>(value),
        DefinitionKind::ModelProfile => through::<ModelProfile>(value),
        DefinitionKind::PromptSpec => through::<PromptSpec>(value),
        DefinitionKind::ActionDef => through::<ActionDef>(with_effect(value)),
        DefinitionKind::Task => through::<Task>(value),
        DefinitionKind::Tool => through::<Tool>(value),
        DefinitionKind::Persona => through::<Persona>(value),
        DefinitionKind::Agent => through::<Agent>(value),
    }
}

/// A request that only reads is `pure` where its author says nothing. That is filled in here like any default: it is
/// the least that can be said, so nobody need know whether somebody said it.
fn with_effect(mut action: Value) -> Value {
    if said::only_reads(&action) && action["effect_class"].is_null() {
        action["effect_class"] = "pure".into();
    }
    action
}

fn through<T: Serialize + DeserializeOwned>(value: Value) -> Result<Value, serde_json::Error> {
    serde_json::to_value(serde_json::from_value::<T>(value)?)
}

/// `null` counts as absent.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| {
                let is_free = FREE.contains(&key.as_str());
                (key.clone(), if is_free { value.clone() } else { without_nulls(value) })
            });
            Value::Object(kept.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        scalar => scalar.clone(),
    }
}
