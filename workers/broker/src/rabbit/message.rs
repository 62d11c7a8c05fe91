//! Messages of the fleet: how they are marked, and how a delivery is told to be one.

use domain::failure::Failure;
use domain::ports::{Content, Foreign};
use lapin::BasicProperties;
use lapin::types::ShortString;
use schemas::action::Action;
use schemas::limits::ACTION_BYTES_MAX;
use schemas::topology::{APP_ID, EXCHANGE_ACTIONS, TYPE_ACTION, shard_queue};

/// Largest body that is looked at: an action with all that the ledger adds to it.
pub(super) const BODY_BYTES_MAX: usize = ACTION_BYTES_MAX + (64 << 10);

const PERSISTENT: u8 = 2;

/// A message to publish.
#[derive(Clone)]
pub(super) struct Message {
    pub exchange: &'static str,
    pub key: ShortString,
    pub properties: BasicProperties,
    pub body: Vec<u8>,
}

impl Message {
    pub fn of(action: &Action) -> Result<Self, Failure> {
        let body = serde_json::to_vec(action)
            .map_err(|error| Failure::internal(format!("action {} cannot be written: {error}", action.action_id)))?;
        let properties = durable(TYPE_ACTION).with_message_id(action.action_id.as_str().into());
        Ok(Self { exchange: EXCHANGE_ACTIONS, key: shard_queue(action.shard, action.lane()).into(), properties, body })
    }

    /// Straight to a queue, past the exchanges.
    pub fn to_queue(queue: ShortString, properties: BasicProperties, body: Vec<u8>) -> Self {
        Self { exchange: "", key: queue, properties: properties.with_delivery_mode(PERSISTENT), body }
    }
}

fn durable(kind: &str) -> BasicProperties {
    ours(kind).with_delivery_mode(PERSISTENT)
}

/// Properties of a message that the fleet publishes itself.
pub(super) fn ours(kind: &str) -> BasicProperties {
    BasicProperties::default()
        .with_app_id(APP_ID.into())
        .with_type(kind.into())
        .with_content_type("application/json".into())
}

pub(super) fn is_ours(properties: &BasicProperties) -> bool {
    properties.app_id().as_ref().is_some_and(|app| app.as_str() == APP_ID)
}

/// What a delivery holds. `Err`: it claims to be ours and cannot be understood; says why.
pub(super) fn read(properties: &BasicProperties, body: &[u8]) -> Result<Content, String> {
    if !is_ours(properties) {
        let message_id = properties.message_id().as_ref().map(|id| id.as_str().to_owned());
        return Ok(Content::Foreign(Foreign { body: body.to_vec(), message_id }));
    }
    match properties.kind().as_ref().map(ShortString::as_str) {
        Some(TYPE_ACTION) => serde_json::from_slice(body)
            .map(Content::Action)
            .map_err(|error| format!("marked as {TYPE_ACTION}, but is none: {error}")),
        Some(other) => Err(format!("marked as {other:?}, which this version does not know")),
        None => Err("marked as the fleet's own, without a type".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::action;

    #[test]
    fn an_action_comes_back_as_it_was() {
        let action = action(3, 7);
        let message = Message::of(&action).unwrap();
        assert_eq!((message.exchange, message.key.as_str()), ("stepfleet.actions", "stepfleet.shard.3.work"));
        assert_eq!(read(&message.properties, &message.body), Ok(Content::Action(action)));
    }

    #[test]
    fn what_others_publish_is_foreign_whatever_it_looks_like() {
        let body = Message::of(&action(3, 7)).unwrap().body;
        let theirs = BasicProperties::default().with_type(TYPE_ACTION.into()).with_message_id("m-1".into());
        let foreign = Foreign { body: body.clone(), message_id: Some("m-1".into()) };
        assert_eq!(read(&theirs, &body), Ok(Content::Foreign(foreign)));
    }

    #[test]
    fn own_messages_that_make_no_sense_say_why() {
        let newer = ours("action.v9");
        assert!(read(&newer, b"{}").unwrap_err().contains("action.v9"));
        assert!(read(&ours(TYPE_ACTION), b"{").unwrap_err().contains("is none"));
        assert!(read(&BasicProperties::default().with_app_id(APP_ID.into()), b"{}").is_err());
    }
}
