//! Ends of conversations as turns have read them: the next turn reads only what came since. Records never change, and
//! a log is numbered in the order of its commits, so whatever there is to add lies behind the last one that was read.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use domain::ports::ConversationKey;
use schemas::conversation::LogRow;

/// Bytes of one end. A longer one takes its time anyway.
const END_BYTES_MAX: usize = 1 << 20;
/// Bytes of all of them. Beyond, those are forgotten that were used longest ago.
const ALL_BYTES_MAX: usize = 32 << 20;
/// A row besides its body.
const ROW_BYTES: usize = 256;

/// Those of this process.
#[derive(Default)]
pub struct Ends(Mutex<Shelf>);

#[derive(Default)]
struct Shelf {
    /// By how far they go back: agents of one conversation may differ in that.
    ends: HashMap<ConversationKey, BTreeMap<usize, Kept>>,
    bytes: usize,
    /// Counts uses.
    uses: u64,
}

struct Kept {
    used: u64,
    end: End,
}

/// The end of one log.
pub(super) struct End {
    /// What a turn is shown of it, newest first.
    pub rows: Vec<LogRow>,
    /// How many messages of users it goes back.
    pub recent: usize,
    /// Whether there is more before it.
    pub is_full: bool,
    /// The summaries before it are among the rows.
    pub has_summaries: bool,
}

impl End {
    fn bytes(&self) -> usize {
        self.rows.iter().map(|row| row.record.body.as_str().len() + ROW_BYTES).sum()
    }

    /// Offset of the last record that it knows of.
    pub fn upto(&self) -> u64 {
        self.rows.first().map_or(0, |row| row.offset)
    }
}

impl Ends {
    /// How many messages of users the end of this log goes back that was used last, if there is one.
    pub(super) fn recent(&self, key: &ConversationKey) -> Option<usize> {
        let shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = shelf.ends.get(key)?.values().max_by_key(|kept| kept.used)?;
        Some(newest.end.recent)
    }

    /// Lends out the end of a log that goes back so far. Whoever needs it meanwhile reads it.
    pub(super) fn take(&self, key: &ConversationKey, recent: usize) -> Option<End> {
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_log = shelf.ends.get_mut(key)?;
        let Kept { end, .. } = of_log.remove(&recent)?;
        if of_log.is_empty() {
            shelf.ends.remove(key);
        }
        shelf.bytes -= end.bytes();
        Some(end)
    }

    pub(super) fn put(&self, key: ConversationKey, end: End) {
        let bytes = end.bytes();
        if bytes > END_BYTES_MAX || end.rows.is_empty() {
            return;
        }
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.uses += 1;
        let used = shelf.uses;
        let before = shelf.ends.entry(key).or_default().insert(end.recent, Kept { used, end });
        shelf.bytes -= before.map_or(0, |kept| kept.end.bytes());
        shelf.bytes += bytes;
        shelf.bound();
    }
}

impl Shelf {
    /// Forgets the older half, so that this is rare.
    fn bound(&mut self) {
        if self.bytes <= ALL_BYTES_MAX {
            return;
        }
        let mut uses: Vec<u64> = self.kept().map(|kept| kept.used).collect();
        uses.sort_unstable();
        let middle = uses[uses.len() / 2];
        self.ends.retain(|_, of_log| {
            of_log.retain(|_, kept| kept.used >= middle);
            !of_log.is_empty()
        });
        self.bytes = self.kept().map(|kept| kept.end.bytes()).sum();
    }

    fn kept(&self) -> impl Iterator<Item = &Kept> {
        self.ends.values().flat_map(BTreeMap::values)
    }
}

#[cfg(test)]
mod tests {
    use schemas::conversation::LogKind;
    use schemas::id::Namespace;
    use schemas::json::Json;
    use testkit::contract::words::{conversation_id, record};

    use super::*;

    fn key(n: usize) -> ConversationKey {
        ConversationKey { namespace: Namespace::default_ns(), conversation_id: conversation_id(&format!("c{n}")) }
    }

    fn end(bytes: usize) -> End {
        let body = Json::of(&"x".repeat(bytes));
        let row = LogRow { offset: 7, record: schemas::conversation::LogRecord { body, ..record(LogKind::Note, "n") } };
        End { rows: vec![row], recent: 20, is_full: true, has_summaries: true }
    }

    #[test]
    fn an_end_is_lent_to_one_who_goes_back_as_far() {
        let ends = Ends::default();
        ends.put(key(1), end(10));
        assert_eq!((ends.recent(&key(1)), ends.recent(&key(2))), (Some(20), None));
        assert_eq!(ends.take(&key(2), 20).map(|end| end.upto()), None);
        assert_eq!(ends.take(&key(1), 20).map(|end| end.upto()), Some(7));
        assert!(ends.take(&key(1), 20).is_none(), "it is lent out");
        ends.put(key(1), end(10));
        assert!(ends.take(&key(1), 21).is_none(), "it is too short");
        assert!(ends.take(&key(1), 20).is_some(), "it stays for who goes back as far");
        ends.put(key(1), end(END_BYTES_MAX));
        assert!(ends.take(&key(1), 20).is_none(), "it is too long to be kept");
    }

    #[test]
    fn agents_who_go_back_differently_each_have_an_end() {
        let ends = Ends::default();
        let far = || End { recent: 50, ..end(10) };
        ends.put(key(1), end(10));
        ends.put(key(1), far());
        assert_eq!(ends.recent(&key(1)), Some(50), "that of the last turn");
        let near = ends.take(&key(1), 20).expect("the other one is no matter");
        assert_eq!((near.recent, ends.recent(&key(1))), (20, Some(50)));
        ends.put(key(1), near);
        assert_eq!(ends.recent(&key(1)), Some(20));
        ends.put(key(1), far());
        assert!(ends.take(&key(1), 50).is_some() && ends.take(&key(1), 50).is_none(), "one of each");
        assert!(ends.take(&key(1), 20).is_some());
        let shelf = ends.0.lock().expect("nobody panics");
        assert_eq!((shelf.bytes, shelf.ends.len()), (0, 0));
    }

    #[test]
    fn what_is_kept_is_bounded_and_what_was_used_last_stays() {
        let ends = Ends::default();
        let size = END_BYTES_MAX / 2;
        for n in 0..10 * ALL_BYTES_MAX / size {
            // Some logs have two.
            ends.put(key(n - n % 3), End { recent: 20 + n % 3, ..end(size) });
            let kept = ends.take(&key(0), 20).expect("it is used all the time");
            ends.put(key(0), kept);
            let shelf = ends.0.lock().expect("nobody panics");
            assert!(shelf.bytes <= ALL_BYTES_MAX);
            assert_eq!(shelf.bytes, shelf.kept().map(|kept| kept.end.bytes()).sum::<usize>());
        }
    }
}
