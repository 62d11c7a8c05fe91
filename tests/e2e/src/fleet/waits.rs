//! What processes say while a service is not there.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::member::Member;

/// Between two lines about the same service.
const SAID_EVERY: Duration = Duration::from_secs(30);

/// What a service is called in the log of a process that waits for it.
pub const DATABASE: &str = "database";
/// The broker, whichever of the connections to it is lost.
pub const BROKER: &str = "broker";
/// What a gateway says of a broker that is there and takes nothing.
const QUEUE: &str = "queue";

/// The number of warnings that a service is not there, by service.
pub fn said(log: &str) -> BTreeMap<String, u64> {
    let mut said = BTreeMap::new();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    for line in lines.filter(|line| line["level"] == "WARN") {
        let service = match line["service"].as_str() {
            Some(service) => service,
            None if line["broker"].is_string() => BROKER,
            None => continue,
        };
        *said.entry(service.to_owned()).or_default() += 1;
    }
    said
}

/// Whether a process has said that it lacks these services.
pub fn has_said(member: &Member, services: &[&str]) -> bool {
    let said = said(&member.log());
    services.iter().all(|service| said.contains_key(*service))
}

/// Fails if a process told of a service more often than once in a while, in a time of that length, which began when
/// it had said `before`, or told of one that is away in other words as well.
pub fn assert_rare(member: &Member, time: Duration, before: &BTreeMap<String, u64>) {
    let most = 1 + time.as_secs() / SAID_EVERY.as_secs();
    for (service, lines) in said(&member.log()) {
        let lines = lines - before.get(&service).copied().unwrap_or(0);
        let most = if service == QUEUE { 0 } else { most };
        assert!(lines <= most, "{} said {lines} times within {time:?} that it lacks {service}", member.name);
    }
}

#[test]
fn warnings_of_services_are_counted_and_nothing_else() {
    let log = concat!(
        r#"{"level":"WARN","service":"database","error":"x","message":"not ready yet; will go on trying"}"#,
        "\nno JSON\n",
        r#"{"level":"INFO","service":"database","message":"ready"}"#,
        "\n",
        r#"{"level":"WARN","broker":"amqp://h/v","reason":"x","message":"the broker is away"}"#,
        "\n",
        r#"{"level":"WARN","broker":"amqp://h/v","reason":"x","message":"the broker takes no messages for now"}"#,
        "\n",
        r#"{"level":"WARN","message":"something else"}"#,
    );
    let told: Vec<(String, u64)> = said(log).into_iter().collect();
    assert_eq!(told, [(BROKER.to_owned(), 2), (DATABASE.to_owned(), 1)]);
}
