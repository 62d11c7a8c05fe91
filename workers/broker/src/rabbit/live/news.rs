//! News of conversations on their way out: without confirms, in small batches, in the order they
//! were told. What the broker cannot take at once is dropped, and its listeners are told of the gap.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::ports::{ConversationKey, News};
use domain::shard::news_part;
use lapin::Channel;
use lapin::options::BasicPublishOptions;
use schemas::topology::{EXCHANGE_EVENTS, TYPE_NEWS, news_key};
use tokio::sync::mpsc;

use super::super::link::{Link, Up};
use super::super::message::ours;
use super::super::{backoff, fault, topology};

/// News that wait to be sent; what does not fit is dropped.
const WAITING_MAX: usize = 4_096;
/// News of one message.
const BATCH_MAX: usize = 256;
/// Conversations with a gap that are remembered until somebody can be told. Of more, streams learn
/// by the bound on how late they read the log.
const GAPS_MAX: usize = 4_096;
/// A write that takes longer means a connection in trouble.
const WRITE_MAX: Duration = Duration::from_secs(2);

/// One message: who sends it, and news by conversation; `None` says that some were lost.
pub(super) type Bulletin = (u64, Vec<Item>);
pub(super) type Item = (ConversationKey, Option<News>);

/// Where news go out. They leave the process from one task.
pub(super) struct Newsroom {
    waiting: mpsc::Sender<(ConversationKey, News)>,
    gaps: Gaps,
    sender: u64,
}

impl Newsroom {
    pub fn open(link: Link) -> Self {
        let (waiting, told) = mpsc::channel(WAITING_MAX);
        let gaps = Gaps::default();
        // Any number that no other process is likely to have.
        let sender = RandomState::new().hash_one(std::process::id());
        tokio::spawn(run(link, told, gaps.clone(), sender));
        Self { waiting, gaps, sender }
    }

    pub fn sender(&self) -> u64 {
        self.sender
    }

    pub fn send(&self, key: &ConversationKey, news: &News) {
        if self.waiting.try_send((key.clone(), news.clone())).is_err() {
            self.gaps.note([key]);
        }
    }
}

/// Conversations of which news were lost, and whose listeners do not know yet.
#[derive(Clone, Default)]
struct Gaps(Arc<Mutex<BTreeSet<ConversationKey>>>);

impl Gaps {
    fn note<'k>(&self, keys: impl IntoIterator<Item = &'k ConversationKey>) {
        let mut gaps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for key in keys {
            if gaps.len() < GAPS_MAX {
                gaps.insert(key.clone());
            }
        }
    }

    fn take(&self) -> BTreeSet<ConversationKey> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn run(mut link: Link, mut told: mpsc::Receiver<(ConversationKey, News)>, gaps: Gaps, sender: u64) {
    let mut failures = 0;
    loop {
        let up = tokio::select! {
            biased;
            up = link.up() => up,
            news = told.recv() => match news {
                // Too late for it once the broker is back.
                Some((key, _)) => {
                    gaps.note([&key]);
                    continue;
                }
                None => None,
            },
        };
        let Some(up) = up else { return };
        match channel(&up).await {
            Ok(channel) => {
                failures = 0;
                if !send(&up, &channel, &mut told, &gaps, sender).await {
                    return;
                }
            }
            // The publisher, on the same connection, tells of the same trouble.
            Err(failure) => tracing::debug!(%failure, "cannot send news"),
        }
        failures += 1;
        tokio::time::sleep(backoff::after(failures)).await;
    }
}

async fn channel(up: &Up) -> Result<Channel, domain::failure::Failure> {
    let opened = up.connection.create_channel().await;
    let channel = opened.map_err(|error| fault::failure("cannot open a channel", &error))?;
    topology::events(&channel).await?;
    Ok(channel)
}

/// Sends until the channel is lost; `false` when nobody has news any more.
async fn send(
    up: &Up,
    channel: &Channel,
    told: &mut mpsc::Receiver<(ConversationKey, News)>,
    gaps: &Gaps,
    sender: u64,
) -> bool {
    let mut batch = Vec::new();
    loop {
        if told.recv_many(&mut batch, BATCH_MAX).await == 0 {
            return false;
        }
        // On a blocked connection they would wait for who knows how long.
        if up.weather.borrow().blocked.is_some() {
            gaps.note(batch.iter().map(|(key, _)| key));
            batch.clear();
            continue;
        }
        let mut parts = by_part(gaps.take(), batch.drain(..)).into_iter();
        while let Some((part, items)) = parts.next() {
            if !matches!(
                tokio::time::timeout(WRITE_MAX, write(channel, part, &(sender, items.clone()))).await,
                Ok(Ok(()))
            ) {
                gaps.note(items.iter().map(|(key, _)| key));
                gaps.note(parts.flat_map(|(_, items)| items).map(|(key, _)| key).collect::<BTreeSet<_>>().iter());
                return true;
            }
        }
    }
}

/// A gap lies before all that is told after it.
fn by_part(
    gaps: BTreeSet<ConversationKey>,
    news: impl Iterator<Item = (ConversationKey, News)>,
) -> BTreeMap<u16, Vec<Item>> {
    let mut parts: BTreeMap<u16, Vec<Item>> = BTreeMap::new();
    let items = gaps.into_iter().map(|key| (key, None)).chain(news.map(|(key, news)| (key, Some(news))));
    for (key, news) in items {
        let part = news_part(&key.namespace, &key.conversation_id);
        parts.entry(part).or_default().push((key, news));
    }
    parts
}

async fn write(channel: &Channel, part: u16, bulletin: &Bulletin) -> lapin::Result<()> {
    let Ok(body) = serde_json::to_vec(bulletin) else { return Ok(()) };
    let options = BasicPublishOptions::default();
    let sent = channel.basic_publish(EXCHANGE_EVENTS.into(), news_key(part).into(), options, &body, ours(TYPE_NEWS));
    sent.await?.await.map(drop)
}

#[cfg(test)]
mod tests {
    use domain::chat::ChatDelta;
    use schemas::id::{ConversationId, MessageId, Namespace, TurnId};

    use super::*;

    fn key(conversation: &str) -> ConversationKey {
        let conversation_id = ConversationId::parse(conversation).unwrap();
        ConversationKey { namespace: Namespace::default_ns(), conversation_id }
    }

    fn piece(index: u64) -> News {
        News::Delta {
            turn_id: TurnId::parse("t1").unwrap(),
            message_id: MessageId::parse("m1").unwrap(),
            attempt: 2,
            index,
            delta: ChatDelta::Text { part: 0, text: "ä\n".into() },
        }
    }

    #[test]
    fn news_keep_their_order_and_gaps_come_first() {
        let told = [(key("a"), piece(0)), (key("b"), News::Logged), (key("a"), piece(1)), (key("a"), News::Logged)];
        let parts = by_part(BTreeSet::from([key("a")]), told.into_iter());
        let of = |name: &str| -> Vec<Option<News>> {
            let part = news_part(&key(name).namespace, &key(name).conversation_id);
            parts[&part].iter().filter(|(told, _)| *told == key(name)).map(|(_, news)| news.clone()).collect()
        };
        assert_eq!(of("a"), [None, Some(piece(0)), Some(piece(1)), Some(News::Logged)]);
        assert_eq!(of("b"), [Some(News::Logged)]);
    }

    #[test]
    fn a_bulletin_survives_the_wire() {
        let retract = News::Retract {
            turn_id: TurnId::parse("t1").unwrap(),
            message_id: MessageId::parse("m1").unwrap(),
            attempt: 2,
        };
        let bulletin: Bulletin = (
            7,
            vec![
                (key("a"), None),
                (key("a"), Some(piece(3))),
                (key("a"), Some(retract)),
                (key("b"), Some(News::Logged)),
            ],
        );
        let read: Bulletin = serde_json::from_slice(&serde_json::to_vec(&bulletin).unwrap()).unwrap();
        assert_eq!(read, bulletin);
    }

    #[test]
    fn gaps_are_remembered_once_and_within_bounds() {
        let gaps = Gaps::default();
        gaps.note([&key("a"), &key("a")]);
        assert_eq!(gaps.take(), BTreeSet::from([key("a")]));
        assert!(gaps.take().is_empty());
        let many: Vec<ConversationKey> = (0..GAPS_MAX + 10).map(|n| key(&format!("c{n}"))).collect();
        gaps.note(&many);
        assert_eq!(gaps.take().len(), GAPS_MAX);
    }
}
