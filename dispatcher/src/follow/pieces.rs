//! Which pieces of replies a client has seen: told apart are the next one, one that comes twice or too
//! late, one after a gap, and the first one of another attempt.

use std::collections::{HashMap, VecDeque};

use schemas::id::MessageId;

/// Replies that are followed at a time, and committed messages that are remembered. Of more, a client
/// may see pieces of something that it has whole already.
const REMEMBERED: usize = 256;

#[derive(Debug, Default)]
pub struct Pieces {
    /// By message: the attempt, and the index of its next piece.
    open: HashMap<MessageId, (u32, u64)>,
    said: VecDeque<MessageId>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// It follows what was seen, or is the first that is seen of its attempt.
    Next,
    /// The same, and an attempt before it was seen that nobody took back: its worker is gone.
    Anew { dead: u32 },
    /// Pieces before it are lost.
    AfterGap,
    /// Seen, or void.
    Stale,
}

impl Pieces {
    pub fn place(&mut self, message: &MessageId, attempt: u32, index: u64) -> Piece {
        if self.said.contains(message) {
            return Piece::Stale;
        }
        let piece = match self.open.get(message) {
            Some((known, _)) if attempt < *known => Piece::Stale,
            Some((known, next)) if attempt == *known && index < *next => Piece::Stale,
            Some((known, next)) if attempt == *known && index > *next => Piece::AfterGap,
            Some((known, next)) if attempt > *known && *next > 0 => Piece::Anew { dead: *known },
            _ => Piece::Next,
        };
        if piece != Piece::Stale {
            self.note(message, (attempt, index + 1));
        }
        piece
    }

    /// Whether an attempt may have been seen, so that its end must be told.
    pub fn retract(&mut self, message: &MessageId, attempt: u32) -> bool {
        let (known, next) = self.open.get(message).copied().unwrap_or_default();
        // A worker that lost its shard may learn of it late: its successor's pieces stand.
        if known > attempt || self.said.contains(message) {
            return false;
        }
        // Its pieces that come late are void: the next attempt has a higher number.
        self.note(message, (attempt.saturating_add(1), 0));
        next > 0
    }

    fn note(&mut self, message: &MessageId, place: (u32, u64)) {
        if self.open.len() >= REMEMBERED {
            self.open.clear();
        }
        self.open.insert(message.clone(), place);
    }

    /// The message is committed: pieces of it are of no use any more.
    pub fn committed(&mut self, message: &MessageId) {
        self.open.remove(message);
        if self.said.len() >= REMEMBERED {
            self.said.pop_front();
        }
        self.said.push_back(message.clone());
    }

    /// Forgets what was seen of replies; `false`: nothing was.
    pub fn forget(&mut self) -> bool {
        let seen = self.open.values().any(|(_, next)| *next > 0);
        self.open.clear();
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> MessageId {
        MessageId::parse(text).unwrap()
    }

    #[test]
    fn pieces_come_once_and_gaps_are_noticed() {
        let mut pieces = Pieces::default();
        let told: Vec<Piece> = [(1, 0), (1, 1), (1, 1), (1, 4), (1, 5), (2, 0), (1, 6), (2, 1)]
            .into_iter()
            .map(|(attempt, index)| pieces.place(&id("m"), attempt, index))
            .collect();
        use Piece::{AfterGap, Anew, Next, Stale};
        assert_eq!(told, [Next, Next, Stale, AfterGap, Next, Anew { dead: 1 }, Stale, Next]);
        assert_eq!(pieces.place(&id("other"), 1, 7), Next, "who comes late sees the rest");
    }

    #[test]
    fn what_is_committed_or_retracted_has_no_more_pieces() {
        let mut pieces = Pieces::default();
        assert!(!pieces.retract(&id("a"), 1), "nothing of it was seen");
        assert_eq!(pieces.place(&id("a"), 1, 0), Piece::Stale);
        assert_eq!(pieces.place(&id("a"), 2, 0), Piece::Next);
        assert!(pieces.retract(&id("a"), 2));
        pieces.committed(&id("a"));
        assert_eq!(pieces.place(&id("a"), 3, 0), Piece::Stale);
        assert!(!pieces.forget());
        pieces.place(&id("b"), 1, 0);
        assert!(pieces.forget());
        assert!(!pieces.forget());
    }

    #[test]
    fn a_worker_that_is_gone_is_taken_back_by_its_successor() {
        let mut pieces = Pieces::default();
        use Piece::{Anew, Next, Stale};
        assert_eq!(pieces.place(&id("m"), 65, 0), Next);
        assert_eq!(pieces.place(&id("m"), 129, 0), Anew { dead: 65 });
        assert_eq!(pieces.place(&id("m"), 129, 1), Next, "once");
        assert!(!pieces.retract(&id("m"), 65), "it was told already");
        assert_eq!(pieces.place(&id("m"), 66, 0), Stale, "nor does the one before begin again");
        assert_eq!(pieces.place(&id("m"), 129, 1), Stale);
        assert!(pieces.retract(&id("m"), 129));
        assert!(!pieces.retract(&id("m"), 129), "once");
        assert_eq!(pieces.place(&id("m"), 193, 0), Next, "what it follows was taken back");
        assert_eq!(pieces.place(&id("late"), 193, 4), Next);
        assert_eq!(pieces.place(&id("late"), 257, 0), Anew { dead: 193 });
    }

    #[test]
    fn memory_is_bounded() {
        let mut pieces = Pieces::default();
        for n in 0..3 * REMEMBERED {
            pieces.place(&id(&format!("m{n}")), 1, 0);
            pieces.committed(&id(&format!("c{n}")));
            pieces.retract(&id(&format!("r{n}")), 1);
        }
        assert!(pieces.open.len() <= REMEMBERED && pieces.said.len() <= REMEMBERED);
    }
}
