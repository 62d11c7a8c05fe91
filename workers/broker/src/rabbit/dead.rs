//! The dead letters, looked at where they lie: each look takes them from the queue and gives back what it does not
//! remove.

mod homes;
mod turn;
mod walk;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use domain::failure::Failure;
use domain::ports::{DeadLetter, Deed, Sweep, Swept, Told};
use lapin::message::Delivery;
use tokio::sync::{Mutex, oneshot};

use super::letter;
use super::link::Link;
use super::publisher::Publisher;
use homes::Homes;
use walk::Walk;

/// How far a list goes. Always as far: a shorter one would put what it took behind the rest.
const LETTERS_MAX: usize = 1_000;
const BYTES_MAX: usize = 64 << 20;
/// Looks for a letter before it is said to be gone: an earlier release, which knows nothing of turns, may have it.
const LOOKS: usize = 2;
const AGAIN: Duration = Duration::from_millis(500);

/// Cheap to clone; clones are the same.
#[derive(Clone)]
pub(super) struct Graveyard {
    link: Link,
    publisher: Publisher,
    shards: u16,
    look: Arc<Mutex<()>>,
}

impl Graveyard {
    pub fn new(link: Link, publisher: Publisher, shards: u16) -> Self {
        Self { link, publisher, shards, look: Arc::default() }
    }

    pub async fn list(&self, limit: usize) -> Result<Vec<DeadLetter>, Failure> {
        let own = self.clone();
        let mut letters = aside(move |caller| async move { own.first(caller).await }).await?;
        letters.sort_by(|a, b| (a.at_ms, &a.id).cmp(&(b.at_ms, &b.id)));
        letters.truncate(limit);
        Ok(letters)
    }

    pub async fn get(&self, id: &str) -> Result<Option<DeadLetter>, Failure> {
        self.find(id, None).await
    }

    pub async fn redrive(&self, id: &str) -> Result<bool, Failure> {
        self.find(id, Some(Deed::Redrive)).await.map(|found| found.is_some())
    }

    pub async fn discard(&self, id: &str) -> Result<bool, Failure> {
        self.find(id, Some(Deed::Discard)).await.map(|found| found.is_some())
    }

    pub async fn sweep(&self, sweep: Sweep, told: Told) -> Result<Swept, Failure> {
        let own = self.clone();
        aside(move |caller| async move { own.sweep_all(caller, &sweep, &told).await }).await
    }

    async fn find(&self, id: &str, deed: Option<Deed>) -> Result<Option<DeadLetter>, Failure> {
        for look in 0..LOOKS {
            if look > 0 {
                tokio::time::sleep(AGAIN).await;
            }
            let (own, id) = (self.clone(), id.to_owned());
            let found = aside(move |caller| async move { own.seek(caller, &id, deed).await }).await?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    async fn first(&self, caller: oneshot::Sender<()>) -> Result<Vec<DeadLetter>, Failure> {
        let _process = turn::within(&self.look).await?;
        let mut walk = self.walk(caller).await?;
        let letters = collect(&mut walk).await;
        // If the channel is lost, the broker has taken back what it held.
        let _ = walk.end().await;
        letters
    }

    async fn seek(
        &self,
        caller: oneshot::Sender<()>,
        id: &str,
        deed: Option<Deed>,
    ) -> Result<Option<DeadLetter>, Failure> {
        let _process = turn::within(&self.look).await?;
        let mut walk = self.walk(caller).await?;
        let found = self.attend(&mut walk, id, deed).await;
        let ended = walk.end().await;
        if deed.is_some() && matches!(found, Ok(Some(_))) {
            // It is not known to be removed before this.
            ended?;
        }
        found
    }

    /// Finds one letter, and does this with it.
    async fn attend(&self, walk: &mut Walk, id: &str, deed: Option<Deed>) -> Result<Option<DeadLetter>, Failure> {
        loop {
            let taken = walk.next().await?;
            if taken.is_empty() {
                return Ok(None);
            }
            let mut letters: Vec<DeadLetter> = taken.iter().map(letter::read).collect();
            let Some(place) = letters.iter().position(|letter| letter.id == id) else { continue };
            let letter = letters.swap_remove(place);
            if let Some(deed) = deed {
                let mut homes = self.homes();
                let swept = self.handle(walk, &mut homes, deed, vec![(&letter, &taken[place])]).await?;
                if swept.stuck > 0 {
                    return Err(Failure::unavailable(format!("the queue {} is gone", letter.origin)));
                }
            }
            return Ok(Some(letter));
        }
    }

    async fn sweep_all(&self, caller: oneshot::Sender<()>, sweep: &Sweep, told: &Told) -> Result<Swept, Failure> {
        let _process = turn::within(&self.look).await?;
        let mut walk = self.walk(caller).await?;
        let swept = self.go(&mut walk, sweep, told).await;
        let ended = walk.end().await;
        let swept = swept?;
        ended.map(|()| swept)
    }

    async fn go(&self, walk: &mut Walk, sweep: &Sweep, told: &Told) -> Result<Swept, Failure> {
        let (mut swept, mut homes) = (Swept::default(), self.homes());
        loop {
            let taken = walk.next().await?;
            if taken.is_empty() {
                return Ok(swept);
            }
            let letters: Vec<DeadLetter> = taken.iter().map(letter::read).collect();
            let meant = letters.iter().zip(&taken).filter(|(letter, _)| sweep.means(letter)).collect::<Vec<_>>();
            swept.kept += (taken.len() - meant.len()) as u64;
            let done = self.handle(walk, &mut homes, sweep.deed, meant).await?;
            swept.done += done.done;
            swept.stuck += done.stuck;
            told(swept);
        }
    }

    /// Does this with some letters: those that are sent back are removed once all of them are where they go to.
    async fn handle(
        &self,
        walk: &mut Walk,
        homes: &mut Homes,
        deed: Deed,
        letters: Vec<(&DeadLetter, &Delivery)>,
    ) -> Result<Swept, Failure> {
        let (mut swept, mut tags, mut messages) = (Swept::default(), Vec::new(), Vec::new());
        for (letter, delivery) in letters {
            if deed == Deed::Redrive {
                let message = letter::revive(letter, delivery);
                if !homes.has(message.key.as_str()).await? {
                    swept.stuck += 1;
                    continue;
                }
                messages.push(message);
            }
            tags.push(delivery.delivery_tag);
        }
        if !messages.is_empty() {
            self.publisher.publish(messages).await?;
        }
        walk.remove(&tags).await?;
        swept.done = tags.len() as u64;
        Ok(swept)
    }

    async fn walk(&self, caller: oneshot::Sender<()>) -> Result<Walk, Failure> {
        let up = self.link.now()?;
        let channel = turn::take(&up.connection).await?;
        Ok(Walk::new(up, channel, caller))
    }

    fn homes(&self) -> Homes {
        Homes::new(self.link.clone(), self.shards)
    }
}

/// The letters that a list shows.
async fn collect(walk: &mut Walk) -> Result<Vec<DeadLetter>, Failure> {
    let (mut letters, mut bytes) = (Vec::new(), 0);
    while letters.len() < LETTERS_MAX && bytes < BYTES_MAX {
        let taken = walk.next().await?;
        if taken.is_empty() {
            break;
        }
        bytes += taken.iter().map(|delivery| delivery.data.len()).sum::<usize>();
        letters.extend(taken.iter().map(letter::read));
    }
    Ok(letters)
}

/// Apart from whoever waits for it: left half-way, the connection would keep what was taken, and the turn. A long walk
/// ends soon after the caller has gone.
async fn aside<T, W>(work: impl FnOnce(oneshot::Sender<()>) -> W) -> Result<T, Failure>
where
    T: Send + 'static,
    W: Future<Output = Result<T, Failure>> + Send + 'static,
{
    let (caller, _here) = oneshot::channel();
    let done = tokio::spawn(work(caller)).await;
    done.unwrap_or_else(|error| Err(Failure::internal(format!("a look at the dead letters broke off: {error}"))))
}
