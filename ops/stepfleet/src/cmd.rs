//! The commands, one file each.

pub mod action;
pub mod apply;
pub mod approvals;
mod confirm;
pub mod control;
pub mod conversations;
pub mod create;
pub mod dead;
pub mod destroy;
pub mod dispatcher;
pub mod doctor;
pub mod drain;
pub mod get;
pub mod health;
pub mod import;
pub mod input;
pub mod interrupt;
pub mod memories;
pub mod migrate;
pub mod pause;
mod process;
pub mod resume;
pub mod say;
pub mod sessions;
pub mod shards;
pub mod show;
pub mod spending;
pub mod steps;
pub mod tail;
pub mod token;
pub mod up;
pub mod why;
pub mod worker;
pub mod workers;

use serde::de::DeserializeOwned;
use serde_json::Value;

/// The elements of a list answer, bare or as `items` of a page.
fn items<T: DeserializeOwned>(mut answer: Value) -> anyhow::Result<Vec<T>> {
    let list = answer.get_mut("items").map(Value::take).unwrap_or(answer);
    Ok(serde_json::from_value(list)?)
}
