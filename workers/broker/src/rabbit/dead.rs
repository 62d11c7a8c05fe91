//! The dead letters, looked at where they lie: each look takes them from the queue and gives all of
//! them back.

use domain::failure::Failure;
use domain::ports::DeadLetter;
use lapin::Channel;
use lapin::message::Delivery;
use lapin::options::{BasicAckOptions, BasicGetOptions, BasicNackOptions};
use schemas::topology::QUEUE_DEAD;
use tokio::sync::Mutex;

use super::link::Link;
use super::publisher::Publisher;
use super::{fault, letter};

/// How far a look goes. Always as far: a shorter one would put what it took behind the rest.
const LETTERS_MAX: usize = 1_000;
const BYTES_MAX: usize = 64 << 20;

pub(super) struct Graveyard {
    link: Link,
    publisher: Publisher,
    /// Two looks at a time would each see a part.
    look: Mutex<()>,
}

impl Graveyard {
    pub fn new(link: Link, publisher: Publisher) -> Self {
        Self { link, publisher, look: Mutex::new(()) }
    }

    pub async fn list(&self, limit: usize) -> Result<Vec<DeadLetter>, Failure> {
        let _alone = self.look.lock().await;
        let channel = self.open().await?;
        let taken = take(&channel).await;
        close(&channel).await;
        let mut letters: Vec<_> = taken?.iter().map(letter::read).collect();
        letters.sort_by(|a, b| (a.at_ms, &a.id).cmp(&(b.at_ms, &b.id)));
        letters.truncate(limit);
        Ok(letters)
    }

    pub async fn get(&self, id: &str) -> Result<Option<DeadLetter>, Failure> {
        let letters = self.list(LETTERS_MAX).await?;
        Ok(letters.into_iter().find(|letter| letter.id == id))
    }

    pub async fn redrive(&self, id: &str) -> Result<bool, Failure> {
        self.remove(id, true).await
    }

    pub async fn discard(&self, id: &str) -> Result<bool, Failure> {
        self.remove(id, false).await
    }

    async fn remove(&self, id: &str, revive: bool) -> Result<bool, Failure> {
        let _alone = self.look.lock().await;
        let channel = self.open().await?;
        let removed = self.remove_on(&channel, id, revive).await;
        close(&channel).await;
        removed
    }

    async fn remove_on(&self, channel: &Channel, id: &str, revive: bool) -> Result<bool, Failure> {
        let taken = take(channel).await?;
        let found = taken.iter().map(|delivery| (letter::read(delivery), delivery)).find(|(letter, _)| letter.id == id);
        let Some((letter, delivery)) = found else { return Ok(false) };
        if revive {
            self.publisher.publish(vec![letter::revive(&letter, delivery)]).await?;
        }
        let acked = channel.basic_ack(delivery.delivery_tag, BasicAckOptions { multiple: false }).await;
        acked.map_err(|error| fault::failure("cannot remove the dead letter", &error))?;
        Ok(true)
    }

    async fn open(&self) -> Result<Channel, Failure> {
        let channel = self.link.now()?.connection.create_channel().await;
        channel.map_err(|error| fault::failure("cannot look at the dead letters", &error))
    }
}

async fn take(channel: &Channel) -> Result<Vec<Delivery>, Failure> {
    let (mut taken, mut bytes) = (Vec::new(), 0);
    while taken.len() < LETTERS_MAX && bytes < BYTES_MAX {
        let got = channel.basic_get(QUEUE_DEAD.into(), BasicGetOptions { no_ack: false }).await;
        match got.map_err(|error| fault::failure("cannot look at the dead letters", &error))? {
            Some(message) => {
                bytes += message.delivery.data.len();
                taken.push(message.delivery);
            }
            None => break,
        }
    }
    Ok(taken)
}

/// Gives back what was taken. Told so, the broker has done it before the next look; by the end of
/// the channel alone it would do it some time later. If the channel is lost, it has done it itself.
async fn close(channel: &Channel) {
    let all = BasicNackOptions { multiple: true, requeue: true };
    if channel.basic_nack(0, all).await.is_ok() {
        let _ = channel.close(200, "OK".into()).await;
    }
}
