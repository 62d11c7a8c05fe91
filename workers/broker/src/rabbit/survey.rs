//! A look at a broker that leaves it as it is: which server it is, and whether all that a fleet needs is
//! there, as this program declares it.

use std::time::Duration;

use domain::failure::Failure;
use lapin::types::FieldTable;
use lapin::{Channel, Connection, ExchangeKind};
use schemas::topology::QUEUE_DEAD;
use tokio::time::timeout;

use super::link::{CLOSE_MAX, connect};
use super::settings::Settings;
use super::{fault, greeting, topology};

/// A broker that takes longer for all of it counts as away.
const LOOK_MAX: Duration = Duration::from_secs(15);
/// Bound on asking for the server's version, which nothing hangs on.
const GREETING_MAX: Duration = Duration::from_secs(3);

/// What was found on a broker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// Name and version, if the server gives them.
    pub server: Option<String>,
    /// Exchanges and queues that are not there.
    pub missing: Vec<String>,
    /// Why others cannot be used as they are; each text names one, and the remedy if there is one.
    pub wrong: Vec<String>,
    /// Messages in the queue of dead letters.
    pub dead: Option<u32>,
}

/// # Errors
/// The broker cannot be reached, does not let us in, or does not answer.
pub(super) async fn survey(settings: &Settings, pools: &[String]) -> Result<Survey, Failure> {
    let late = |_| Failure::unavailable(format!("{settings} did not answer all questions within {LOOK_MAX:?}"));
    let mut found = timeout(LOOK_MAX, look(settings, pools)).await.map_err(late)??;
    found.server = timeout(GREETING_MAX, greeting::read(settings)).await.ok().and_then(Result::ok);
    Ok(found)
}

async fn look(settings: &Settings, pools: &[String]) -> Result<Survey, Failure> {
    let connection = connect(settings, "looks").await?;
    let mut visit = Visit { connection: &connection, channel: None, found: Survey::default() };
    let visited = visit.all(settings.shards(), pools).await;
    let found = visit.found;
    // Best effort: what had to be seen was seen.
    let _ = timeout(CLOSE_MAX, connection.close(200, "OK".into())).await;
    visited.map(|()| found)
}

struct Visit<'c> {
    connection: &'c Connection,
    /// None after a refusal: with each, the broker ends the channel.
    channel: Option<Channel>,
    found: Survey,
}

impl Visit<'_> {
    async fn all(&mut self, shards: u16, pools: &[String]) -> Result<(), Failure> {
        for (name, kind) in topology::exchanges() {
            self.exchange(name, kind).await?;
        }
        for (name, arguments) in topology::queues(shards).into_iter().chain(topology::task_queues(pools)) {
            self.queue(&name, arguments).await?;
        }
        Ok(())
    }

    async fn exchange(&mut self, name: &str, kind: ExchangeKind) -> Result<(), Failure> {
        let channel = self.channel().await?;
        let outcome = match topology::has_exchange(&channel, name, kind.clone()).await {
            Ok(true) => topology::exchange(&channel, name, kind).await.map(|()| true),
            other => other,
        };
        self.note(name, outcome)
    }

    /// It is declared only if it is there: that makes nothing, and has the broker compare the arguments,
    /// which it does not do for a question alone.
    async fn queue(&mut self, name: &str, arguments: FieldTable) -> Result<(), Failure> {
        let channel = self.channel().await?;
        let outcome = match topology::waiting(&channel, name).await {
            Ok(Some(count)) => {
                if name == QUEUE_DEAD {
                    self.found.dead = Some(count);
                }
                topology::queue(&channel, name, arguments).await.map(|()| true)
            }
            Ok(None) => Ok(false),
            Err(failure) => Err(failure),
        };
        self.note(name, outcome)
    }

    async fn channel(&mut self) -> Result<Channel, Failure> {
        if let Some(channel) = &self.channel {
            return Ok(channel.clone());
        }
        let opened = self.connection.create_channel().await;
        let channel = opened.map_err(|error| fault::failure("cannot open a channel", &error))?;
        self.channel = Some(channel.clone());
        Ok(channel)
    }

    /// Takes note of one: well, missing, or of no use.
    fn note(&mut self, name: &str, outcome: Result<bool, Failure>) -> Result<(), Failure> {
        match outcome {
            Ok(true) => return Ok(()),
            Ok(false) => self.found.missing.push(name.to_owned()),
            // That says nothing of this one.
            Err(failure) if !self.connection.status().connected() => return Err(failure),
            Err(failure) => self.found.wrong.push(failure.message),
        }
        self.channel = None;
        Ok(())
    }
}
