//! The worker's side: hints go out without confirms, many in one message, and are dropped whenever
//! the broker cannot take them at once.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::failure::Failure;
use domain::shard::event_part;
use lapin::Channel;
use lapin::options::BasicPublishOptions;
use schemas::hint::{Hint, Hints};
use schemas::topology::{EXCHANGE_EVENTS, TYPE_HINTS, event_key};
use tokio::sync::mpsc;

use super::super::link::{Link, Up};
use super::super::message::ours;
use super::super::{backoff, fault, topology};

/// Hints of one message.
const BATCH_MAX: usize = 256;
/// A write that takes longer means a connection in trouble.
const WRITE_MAX: Duration = Duration::from_secs(2);

pub(super) async fn run(mut link: Link, mut hints: mpsc::Receiver<Hint>) {
    let mut failures = 0;
    loop {
        let up = tokio::select! {
            biased;
            up = link.up() => up,
            hint = hints.recv() => match hint {
                // Too late for it once the broker is back.
                Some(_) => continue,
                None => None,
            },
        };
        let Some(up) = up else { return };
        match channel(&up).await {
            Ok(channel) => {
                failures = 0;
                if !send(&up, &channel, &mut hints).await {
                    return;
                }
            }
            // The publisher, on the same connection, tells of the same trouble.
            Err(failure) => tracing::debug!(%failure, "cannot send hints"),
        }
        failures += 1;
        tokio::time::sleep(backoff::after(failures)).await;
    }
}

async fn channel(up: &Up) -> Result<Channel, Failure> {
    let opened = up.connection.create_channel().await;
    let channel = opened.map_err(|error| fault::failure("cannot open a channel", &error))?;
    topology::events(&channel).await?;
    Ok(channel)
}

/// Sends until the channel is lost; `false` when nobody has hints any more.
async fn send(up: &Up, channel: &Channel, hints: &mut mpsc::Receiver<Hint>) -> bool {
    let mut batch = Vec::new();
    loop {
        if hints.recv_many(&mut batch, BATCH_MAX).await == 0 {
            return false;
        }
        let parts = by_part(batch.drain(..));
        // On a blocked connection they would wait for who knows how long.
        if up.weather.borrow().blocked.is_some() {
            continue;
        }
        for (part, sessions) in parts {
            if !matches!(tokio::time::timeout(WRITE_MAX, write(channel, part, sessions)).await, Ok(Ok(()))) {
                return true;
            }
        }
    }
}

/// Of several hints of a session the last one says it all.
fn by_part(hints: impl Iterator<Item = Hint>) -> BTreeMap<u16, Vec<Hint>> {
    let mut newest = BTreeMap::new();
    for hint in hints {
        newest.insert(hint.key, hint.last_offset);
    }
    let mut parts: BTreeMap<u16, Vec<Hint>> = BTreeMap::new();
    for (key, last_offset) in newest {
        parts.entry(event_part(&key)).or_default().push(Hint { key, last_offset });
    }
    parts
}

async fn write(channel: &Channel, part: u16, sessions: Vec<Hint>) -> lapin::Result<()> {
    let Ok(body) = serde_json::to_vec(&Hints { sessions }) else { return Ok(()) };
    let options = BasicPublishOptions::default();
    let sent = channel.basic_publish(EXCHANGE_EVENTS.into(), event_key(part).into(), options, &body, ours(TYPE_HINTS));
    sent.await?.await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemas::id::{Namespace, SessionId, SessionKey};

    fn hint(session: &str, last_offset: u64) -> Hint {
        let key = SessionKey::new(Namespace::default_ns(), SessionId::parse(session).unwrap());
        Hint { key, last_offset }
    }

    #[test]
    fn each_session_is_told_of_once_and_in_its_part() {
        let parts = by_part([hint("a", 1), hint("b", 5), hint("a", 2)].into_iter());
        let mut all: Vec<_> = parts.values().flatten().cloned().collect();
        all.sort_by(|x, y| x.key.cmp(&y.key));
        assert_eq!(all, [hint("a", 2), hint("b", 5)]);
        assert!(parts.iter().all(|(part, hints)| hints.iter().all(|hint| event_part(&hint.key) == *part)));
    }
}
