//! Whose turn it is to look at the dead letters. Two that look at a time would each see a part, and say that the rest
//! is not there. Among the processes of a fleet the broker keeps order: a queue that is exclusive to a connection is
//! nobody else's, and gone with the connection at the latest.

use std::time::Duration;

use domain::failure::Failure;
use lapin::options::{QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::FieldTable;
use lapin::{Channel, Connection};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, timeout};

use super::super::fault;

const TOKEN: &str = "stepfleet.dead.turn";
/// A look takes a moment; whoever attends to all of them takes longer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Each try that comes too early ends a channel, and is a line in the broker's log.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_millis(800);

/// Within this process, where connections are shared.
pub async fn within(process: &Mutex<()>) -> Result<MutexGuard<'_, ()>, Failure> {
    timeout(PATIENCE, process.lock()).await.map_err(|_| busy())
}

/// Among all processes. It ends with [`end`] or with the connection, and not with the channel.
pub async fn take(connection: &Connection) -> Result<Channel, Failure> {
    let (begun, mut pause) = (Instant::now(), PAUSE);
    loop {
        let opened = connection.create_channel().await;
        let channel = opened.map_err(|error| fault::failure("cannot look at the dead letters", &error))?;
        let options = QueueDeclareOptions { exclusive: true, ..QueueDeclareOptions::default() };
        match channel.queue_declare(TOKEN.into(), options, FieldTable::default()).await {
            Ok(_) => return Ok(channel),
            Err(error) if !fault::is_locked(&error) => return Err(fault::declaring(TOKEN, &error)),
            Err(_) if begun.elapsed() >= PATIENCE => return Err(busy()),
            Err(_) => tokio::time::sleep(pause).await,
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// It is the next one's turn.
pub async fn end(channel: &Channel) -> lapin::Result<()> {
    channel.queue_delete(TOKEN.into(), QueueDeleteOptions::default()).await.map(drop)
}

/// The same where the channel of [`take`] is gone and its connection is not: the turn would last as long as that.
pub async fn end_anew(connection: &Connection) {
    if let Ok(channel) = connection.create_channel().await
        && let Err(error) = end(&channel).await
    {
        tracing::debug!(%error, "the turn to look at the dead letters ends with its connection");
    }
}

fn busy() -> Failure {
    Failure::unavailable("somebody else attends to the dead letters at the moment")
}
