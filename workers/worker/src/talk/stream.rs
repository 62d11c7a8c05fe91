//! Pieces of a reply on their way to those who listen to the conversation.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::chat::{ChatDelta, ProviderCallRecord};
use domain::conversation::stream;
use domain::ports::{ConversationKey, DeltaSink, Live, News};
use schemas::id::{Epoch, MessageId, TurnId};

/// Text that is kept of a reply in case it is cut short, bytes.
const SAID_BYTES_MAX: usize = schemas::limits::TEXT_BYTES_MAX;
/// Replies whose numbers are remembered. Of more, the oldest are forgotten: if one of those is asked for again, its
/// listeners may see nothing of it before it is committed.
const REMEMBERED: usize = 4_096;

/// The message of a conversation that a reply becomes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub conversation: ConversationKey,
    pub message_id: MessageId,
}

/// The numbers of the last attempts that this process has told of. One reply may be asked for several times, and
/// listeners pass over an attempt whose number they know: so each has a higher one than those before, whatever
/// became of their calls.
#[derive(Default)]
pub(super) struct Numbers(Mutex<Last>);

#[derive(Default)]
struct Last {
    numbers: HashMap<Place, u32>,
    /// Oldest first.
    order: VecDeque<Place>,
}

impl Numbers {
    /// Of an attempt that begins to speak.
    fn next(&self, place: &Place, epoch: Epoch) -> u32 {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Last { numbers, order } = &mut *last;
        let number = stream::attempt_after(epoch, numbers.get(place).copied());
        if numbers.insert(place.clone(), number).is_none() {
            order.push_back(place.clone());
        }
        if order.len() > REMEMBERED
            && let Some(oldest) = order.pop_front()
        {
            numbers.remove(&oldest);
        }
        number
    }
}

pub(super) struct Streaming<'l> {
    live: &'l dyn Live,
    place: Place,
    turn_id: TurnId,
    numbers: &'l Numbers,
    /// Of whoever asks: owners before may have told pieces of the same message.
    epoch: Epoch,
    said: Mutex<Said>,
    /// Of the call, if it was dropped.
    used: Mutex<Option<ProviderCallRecord>>,
}

/// The attempt that has spoken last.
#[derive(Default)]
struct Said {
    /// As the call counts it, from 1.
    attempt: u32,
    /// As listeners know it, once it has told them something.
    number: u32,
    /// Pieces that listeners were told: the index of the next one.
    told: u64,
    text: String,
}

impl<'l> Streaming<'l> {
    pub fn new(live: &'l dyn Live, place: Place, turn_id: TurnId, numbers: &'l Numbers, epoch: Epoch) -> Self {
        Self { live, place, turn_id, numbers, epoch, said: Mutex::default(), used: Mutex::default() }
    }

    /// What the latest attempt has said so far.
    pub fn said(&self) -> String {
        self.last().text.clone()
    }

    /// What the call has used, once it was dropped.
    pub fn used(&self) -> Option<ProviderCallRecord> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn last(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what an attempt says. Where listeners are told it, if they are: the number that they know the attempt
    /// by, and the index of the piece among those of it that they are told.
    fn note(&self, attempt: u32, delta: &ChatDelta) -> Option<(u32, u64)> {
        let mut said = self.last();
        if said.attempt != attempt {
            *said = Said { attempt, ..Said::default() };
        }
        // What was used is in the record of the call. Listeners are shown none of it, so it takes no index: they would
        // miss a piece.
        if matches!(delta, ChatDelta::Usage { .. }) {
            return None;
        }
        if said.told == 0 {
            said.number = self.numbers.next(&self.place, self.epoch);
        }
        if let ChatDelta::Text { text, .. } = delta
            && said.text.len() + text.len() <= SAID_BYTES_MAX
        {
            said.text.push_str(text);
        }
        let index = said.told;
        said.told += 1;
        Some((said.number, index))
    }
}

impl DeltaSink for Streaming<'_> {
    fn delta(&self, attempt: u32, _: u64, delta: ChatDelta) {
        let Some((attempt, index)) = self.note(attempt, &delta) else { return };
        let (turn_id, message_id) = (self.turn_id.clone(), self.place.message_id.clone());
        self.live.tell(&self.place.conversation, News::Delta { turn_id, message_id, attempt, index, delta });
    }

    fn retract(&self, attempt: u32) {
        let told = {
            let said = self.last();
            (said.attempt == attempt && said.told > 0).then_some(said.number)
        };
        // An attempt of which listeners were told nothing has nothing to take back.
        let Some(attempt) = told else { return };
        let (turn_id, message_id) = (self.turn_id.clone(), self.place.message_id.clone());
        self.live.tell(&self.place.conversation, News::Retract { turn_id, message_id, attempt });
    }

    fn dropped(&self, record: ProviderCallRecord) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Some(record);
    }
}

#[cfg(test)]
mod tests {
    use schemas::id::{ConversationId, Namespace};
    use testkit::fake::LocalLive;

    use super::*;

    fn place(message: &str) -> Place {
        let conversation_id = ConversationId::parse("c1").unwrap();
        let conversation = ConversationKey { namespace: Namespace::default_ns(), conversation_id };
        Place { conversation, message_id: MessageId::parse(message).unwrap() }
    }

    fn streaming<'l>(live: &'l LocalLive, numbers: &'l Numbers, epoch: i64) -> Streaming<'l> {
        Streaming::new(live, place("t1.m1"), TurnId::parse("t1").unwrap(), numbers, Epoch(epoch))
    }

    fn text(text: &str) -> ChatDelta {
        ChatDelta::Text { part: 0, text: text.into() }
    }

    fn usage() -> ChatDelta {
        ChatDelta::Usage { usage: Default::default() }
    }

    /// The indices of all pieces that were told.
    fn indices(live: &LocalLive) -> Vec<u64> {
        let index = |news: News| match news {
            News::Delta { index, .. } => Some(index),
            News::Retract { .. } | News::Logged => None,
        };
        live.told().into_iter().filter_map(|(_, news)| index(news)).collect()
    }

    /// The attempts of all that was told.
    fn told(live: &LocalLive) -> Vec<u32> {
        let attempt = |news: News| match news {
            News::Delta { attempt, .. } | News::Retract { attempt, .. } => attempt,
            News::Logged => panic!("nothing was logged"),
        };
        live.told().into_iter().map(|(_, news)| attempt(news)).collect()
    }

    /// Some providers tell what was used before the first word, some in the middle and some at the end.
    #[test]
    fn what_was_used_is_no_piece_that_listeners_miss() {
        let (live, numbers) = (LocalLive::default(), Numbers::default());
        let reply = streaming(&live, &numbers, 1);
        let pieces = [usage(), text("a "), usage(), text("dog"), usage()];
        (0..).zip(pieces).for_each(|(index, piece)| reply.delta(1, index, piece));
        assert_eq!((indices(&live), reply.said()), (vec![0, 1], "a dog".to_owned()));
        // The next attempt begins anew.
        reply.retract(1);
        (0..).zip([usage(), text("a cat")]).for_each(|(index, piece)| reply.delta(2, index, piece));
        assert_eq!((indices(&live), reply.said()), (vec![0, 1, 0], "a cat".to_owned()));
    }

    #[test]
    fn an_attempt_that_only_used_something_is_not_taken_back() {
        let (live, numbers) = (LocalLive::default(), Numbers::default());
        let reply = streaming(&live, &numbers, 1);
        for attempt in [1, 2] {
            reply.delta(attempt, 0, usage());
            reply.retract(attempt);
        }
        assert!(told(&live).is_empty());
        reply.delta(3, 0, text("a dog"));
        reply.retract(3);
        let at = |made| stream::attempt(Epoch(1), made);
        assert_eq!(told(&live), [at(1), at(1)], "the first that anybody heard of");
    }

    #[test]
    fn the_next_owner_counts_on_and_knows_only_what_it_heard() {
        let (live, before, after) = (LocalLive::default(), Numbers::default(), Numbers::default());
        let (one, two) = (streaming(&live, &before, 1), streaming(&live, &after, 2));
        one.delta(1, 0, text("a d"));
        one.retract(1);
        one.delta(2, 0, text("a dog"));
        two.delta(1, 0, text("a cat"));
        two.retract(1);
        let told = told(&live);
        let [dead, retracted, again, anew, void] = told[..] else { panic!("{told:?}") };
        assert_eq!((dead, anew), (retracted, void));
        assert!(dead < again && again < anew, "{told:?}");
        assert_eq!((one.said(), two.said()), ("a dog".to_owned(), "a cat".to_owned()));
    }

    /// After an error, a reload, or a call that was dropped.
    #[test]
    fn an_owner_that_asks_again_counts_on() {
        let (live, numbers) = (LocalLive::default(), Numbers::default());
        let first = streaming(&live, &numbers, 7);
        first.delta(1, 0, text("a d"));
        first.retract(1);
        first.delta(2, 0, text("a "));
        first.delta(2, 1, text("dog"));
        let second = streaming(&live, &numbers, 7);
        second.retract(1);
        second.delta(1, 0, text("a cat"));
        // The first one's call is dropped late.
        first.retract(2);
        second.delta(1, 1, text("!"));
        second.delta(2, 0, usage());
        let at = |made| stream::attempt(Epoch(7), made);
        assert_eq!(told(&live), [at(1), at(1), at(2), at(2), at(3), at(2), at(3)]);
        assert_eq!((first.said(), second.said()), ("a dog".to_owned(), String::new()));
    }

    #[test]
    fn so_many_replies_are_remembered() {
        let numbers = Numbers::default();
        for n in 0..=REMEMBERED {
            numbers.next(&place(&format!("m{n}")), Epoch(1));
        }
        let at = |made| stream::attempt(Epoch(1), made);
        assert_eq!(numbers.next(&place("m1"), Epoch(1)), at(2));
        assert_eq!(numbers.next(&place("m0"), Epoch(1)), at(1), "the oldest is forgotten");
        let last = numbers.0.lock().unwrap();
        assert_eq!((last.numbers.len(), last.order.len()), (REMEMBERED, REMEMBERED));
    }
}
