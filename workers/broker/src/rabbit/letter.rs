//! A dead letter as a message: what is written on it when it dies here, and how it is read, whether
//! it died here or by the broker's own hand.

use std::time::{SystemTime, UNIX_EPOCH};

use domain::ports::DeadLetter;
use lapin::BasicProperties;
use lapin::message::Delivery;
use lapin::types::{AMQPValue, FieldTable, ShortString};
use schemas::topology::{QUEUE_DEAD, QUEUE_INGRESS};

use super::acks::Held;
use super::message::{BODY_BYTES_MAX, Message};

const REASON: &str = "stepfleet-reason";
const ORIGIN: &str = "stepfleet-origin";
const MESSAGE_ID: &str = "stepfleet-message-id";
const DIED_AT: &str = "stepfleet-died-at-ms";
/// The broker's own record, newest death first.
const X_DEATH: &str = "x-death";

/// Headers that are keys of further queues.
const ROUTING: [&str; 2] = ["CC", "BCC"];
/// Of the headers of others; a frame holds all headers, and has 128 KiB as a rule.
const HEADER_BYTES_MAX: usize = 64 << 10;
/// Longest reason that is kept; a frame holds all headers.
const REASON_CHARS_MAX: usize = 1_000;
/// Longest header that is shown.
const HEADER_CHARS_MAX: usize = 500;

/// The message that carries a delivery to the dead letters.
pub(super) fn write(origin: &str, held: Held, reason: &str) -> Message {
    let mut headers = theirs(held.properties.headers(), |_| true);
    let reason: String = reason.chars().take(REASON_CHARS_MAX).collect();
    headers.insert(REASON.into(), AMQPValue::LongString(reason.into()));
    headers.insert(ORIGIN.into(), AMQPValue::LongString(origin.into()));
    headers.insert(DIED_AT.into(), AMQPValue::LongLongInt(now_ms()));
    if let Some(id) = held.properties.message_id() {
        headers.insert(MESSAGE_ID.into(), AMQPValue::LongString(id.as_str().into()));
    }
    Message::to_queue(QUEUE_DEAD.into(), kept(&held.properties).with_headers(headers), held.body)
}

pub(super) fn read(delivery: &Delivery) -> DeadLetter {
    let empty = FieldTable::default();
    let headers = delivery.properties.headers().as_ref().unwrap_or(&empty);
    let death = headers.inner().get(X_DEATH).and_then(first_death);
    let dead_by_broker = |name: &str| death.and_then(|table| table.inner().get(name)).map(plain);
    let text = |name: &str| headers.inner().get(name).map(plain);
    let origin = text(ORIGIN).or_else(|| dead_by_broker("queue")).unwrap_or_default();
    let at_ms = match headers.inner().get(DIED_AT) {
        Some(AMQPValue::LongLongInt(ms)) => *ms,
        _ => death.and_then(|table| table.inner().get("time")).map_or(0, seconds_as_ms),
    };
    let reason = text(REASON).unwrap_or_else(|| by_broker(dead_by_broker("reason"), delivery.data.len()));
    let mut shown = properties(&delivery.properties);
    // Looking at a letter counts as delivering it; that says nothing about the letter.
    let lasting = headers.into_iter().filter(|(name, _)| !is_count(name.as_str()));
    shown.extend(lasting.map(|(name, value)| (name.to_string(), plain(value))));
    let id = id(&origin, at_ms, &delivery.properties, &delivery.data);
    DeadLetter { id, reason, origin, body: delivery.data.clone(), at_ms, headers: shown }
}

/// The message that brings a dead letter back to where it died.
pub(super) fn revive(letter: &DeadLetter, delivery: &Delivery) -> Message {
    // Whatever else is written there, nothing is sent to other people's queues.
    let ours = letter.origin.starts_with("stepfleet.") && letter.origin != QUEUE_DEAD;
    let origin = if ours { letter.origin.as_str() } else { QUEUE_INGRESS };
    let table = theirs(delivery.properties.headers(), |name| !is_record(name));
    let to = ShortString::try_new(origin).unwrap_or_else(|_| QUEUE_INGRESS.into());
    Message::to_queue(to, kept(&delivery.properties).with_headers(table), delivery.data.clone())
}

/// The headers of others that go along: none by which the broker would route the message to other queues as well,
/// and no more than a frame has room for.
fn theirs(headers: &Option<FieldTable>, wanted: impl Fn(&str) -> bool) -> FieldTable {
    let (mut table, mut bytes) = (FieldTable::default(), 0);
    for (name, value) in headers.iter().flat_map(FieldTable::inner) {
        let routes = ROUTING.contains(&name.as_str());
        // At least as much as it takes on the wire, for texts and bytes.
        let size = name.as_str().len() + format!("{value:?}").len();
        if !routes && wanted(name.as_str()) && bytes + size <= HEADER_BYTES_MAX {
            bytes += size;
            table.insert(name.clone(), value.clone());
        }
    }
    table
}

fn is_count(name: &str) -> bool {
    name == "x-delivery-count" || name == "x-acquired-count"
}

fn is_record(name: &str) -> bool {
    is_count(name)
        || name.starts_with("stepfleet-")
        || name == X_DEATH
        || name.starts_with("x-first-death")
        || name.starts_with("x-last-death")
}

/// The properties that say what a message is. The rest was about its transport.
fn kept(from: &BasicProperties) -> BasicProperties {
    let mut kept = BasicProperties::default();
    if let Some(app) = from.app_id() {
        kept = kept.with_app_id(app.clone());
    }
    if let Some(kind) = from.kind() {
        kept = kept.with_type(kind.clone());
    }
    if let Some(content) = from.content_type() {
        kept = kept.with_content_type(content.clone());
    }
    if let Some(id) = from.message_id() {
        kept = kept.with_message_id(id.clone());
    }
    kept
}

fn properties(from: &BasicProperties) -> Vec<(String, String)> {
    let texts = [
        ("app_id", from.app_id()),
        ("type", from.kind()),
        ("content_type", from.content_type()),
        ("message_id", from.message_id()),
    ];
    texts.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text.as_ref()?.to_string()))).collect()
}

fn by_broker(reason: Option<String>, bytes: usize) -> String {
    if bytes > BODY_BYTES_MAX {
        return format!("too large: {bytes} bytes, at most {BODY_BYTES_MAX} are taken");
    }
    match reason.as_deref() {
        Some("delivery_limit") => "given back too often: every consumer that took it was lost".into(),
        Some(other) => format!("the broker gave it up: {other}"),
        None => "put here by somebody else".into(),
    }
}

fn first_death(value: &AMQPValue) -> Option<&FieldTable> {
    match value {
        AMQPValue::FieldArray(deaths) => match deaths.as_slice().first() {
            Some(AMQPValue::FieldTable(table)) => Some(table),
            _ => None,
        },
        _ => None,
    }
}

fn seconds_as_ms(value: &AMQPValue) -> i64 {
    match value {
        AMQPValue::Timestamp(seconds) => i64::try_from(*seconds).unwrap_or(0).saturating_mul(1_000),
        _ => 0,
    }
}

fn plain(value: &AMQPValue) -> String {
    let text = match value {
        AMQPValue::LongString(text) => text.to_string(),
        AMQPValue::ShortString(text) => text.to_string(),
        AMQPValue::Boolean(flag) => flag.to_string(),
        AMQPValue::LongLongInt(number) => number.to_string(),
        AMQPValue::LongInt(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    text.chars().take(HEADER_CHARS_MAX).collect()
}

/// Equal for equal letters only: origin, time, message id and body, hashed (FNV-1a).
fn id(origin: &str, at_ms: i64, properties: &BasicProperties, body: &[u8]) -> String {
    let message = properties.message_id().as_ref().map_or("", ShortString::as_str);
    let parts: [&[u8]; 4] = [origin.as_bytes(), &at_ms.to_be_bytes(), message.as_bytes(), body];
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        // A separator that no part holds at its end by chance: its length.
        for byte in part.iter().chain(&(part.len() as u64).to_be_bytes()) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{at_ms:013}-{hash:016x}")
}

#[allow(clippy::disallowed_methods, reason = "a dead letter names when it died, for people")]
fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rabbit::message::ours;

    fn delivery(message: Message) -> Delivery {
        let mut delivery = Delivery::mock(1, "".into(), message.key, false, message.body);
        delivery.properties = message.properties;
        delivery
    }

    fn buried(reason: &str) -> Delivery {
        let held = Held { properties: ours("action.v1").with_message_id("a1".into()), body: b"{}".to_vec() };
        delivery(write("stepfleet.shard.3.work", held, reason))
    }

    #[test]
    fn a_letter_tells_where_when_and_why_it_died() {
        let letter = read(&buried("makes no sense"));
        assert_eq!((letter.reason.as_str(), letter.origin.as_str()), ("makes no sense", "stepfleet.shard.3.work"));
        assert_eq!(letter.body, b"{}");
        assert!(letter.at_ms > 1_700_000_000_000);
        for header in [("message_id", "a1"), ("type", "action.v1"), (MESSAGE_ID, "a1")] {
            assert!(letter.headers.contains(&(header.0.into(), header.1.into())), "{header:?}");
        }
    }

    #[test]
    fn a_revived_letter_is_the_message_that_died() {
        let dead = buried(&"x".repeat(9_999));
        let message = revive(&read(&dead), &dead);
        assert_eq!((message.exchange, message.key.as_str()), ("", "stepfleet.shard.3.work"));
        assert_eq!(message.properties.kind().as_ref().unwrap().as_str(), "action.v1");
        assert_eq!(message.properties.headers().as_ref().unwrap().inner().len(), 0);
        assert_eq!(message.body, b"{}");
    }

    #[test]
    fn letters_of_strangers_go_to_the_ingress() {
        let mut stranger = Delivery::mock(1, "".into(), "".into(), false, b"hello".to_vec());
        let letter = read(&stranger);
        assert_eq!((letter.reason.as_str(), letter.origin.as_str()), ("put here by somebody else", ""));
        assert_eq!(revive(&letter, &stranger).key.as_str(), "stepfleet.ingress");
        let mut headers = FieldTable::default();
        headers.insert(ORIGIN.into(), AMQPValue::LongString("payroll".into()));
        stranger.properties = BasicProperties::default().with_headers(headers);
        assert_eq!(revive(&read(&stranger), &stranger).key.as_str(), "stepfleet.ingress");
        assert_ne!(read(&stranger).id, letter.id);
    }

    #[test]
    fn the_brokers_own_record_is_understood() {
        let mut death = FieldTable::default();
        death.insert("queue".into(), AMQPValue::LongString("stepfleet.ingress".into()));
        death.insert("reason".into(), AMQPValue::LongString("delivery_limit".into()));
        death.insert("time".into(), AMQPValue::Timestamp(1_700_000_000));
        let mut headers = FieldTable::default();
        headers.insert(X_DEATH.into(), AMQPValue::FieldArray(vec![AMQPValue::FieldTable(death)].into()));
        let mut delivery = Delivery::mock(1, "".into(), "".into(), false, vec![0]);
        delivery.properties = BasicProperties::default().with_headers(headers);
        let letter = read(&delivery);
        assert_eq!((letter.origin.as_str(), letter.at_ms), ("stepfleet.ingress", 1_700_000_000_000));
        assert!(letter.reason.contains("too often"), "{}", letter.reason);
    }
}
