//! Whether the journal alone has all that a query asks of a session. Then the archive need not be asked, and may
//! be away.

use crate::ports::StepQuery;

/// Follows the steps of one session as the journal tells them, in the order of a query. A session's iterations
/// have no gap (invariant S2): where those that are told have none either, nothing between them is elsewhere.
#[derive(Debug)]
pub struct Stretch {
    /// The iterations that may match: from `low` on, below `end`.
    low: u64,
    end: u64,
    descending: bool,
    /// The last one told.
    last: Option<u64>,
    /// One is missing between two that were told, or before the first.
    is_torn: bool,
}

impl Stretch {
    /// Of a session that had so many steps before its journal was read.
    pub fn new(query: &StepQuery, steps: u64) -> Self {
        let mut low = query.min_iteration.unwrap_or(0);
        let mut end = query.max_iteration.map_or(steps, |max| steps.min(max.saturating_add(1)));
        // Of a page by time, a cursor says nothing about iterations. Its own iteration may be that of another session.
        if let Some(place) = query.after.as_ref().filter(|_| !query.by_time) {
            if query.descending {
                end = end.min(place.iteration.saturating_add(1));
            } else {
                low = low.max(place.iteration);
            }
        }
        Self { low, end, descending: query.descending, last: None, is_torn: false }
    }

    /// The next step of the journal. Those outside of what may match may be among them.
    pub fn see(&mut self, iteration: u64) {
        let is_outside = if self.descending { self.is_exhausted() } else { iteration < self.low };
        if is_outside {
            return;
        }
        self.is_torn |= match (self.descending, self.last) {
            (true, Some(last)) => iteration.saturating_add(1) != last,
            // Those at the top may be newer than the look at the session.
            (true, None) => iteration.saturating_add(1) < self.end,
            (false, Some(last)) => iteration != last.saturating_add(1),
            (false, None) => iteration != self.low,
        };
        self.last = Some(iteration);
    }

    /// Whether the archive has nothing to add to what was told: `is_enough` if as many matched as are wanted.
    pub fn is_whole(&self, is_enough: bool) -> bool {
        !self.is_torn && (is_enough || self.is_exhausted())
    }

    /// Nothing more can match.
    fn is_exhausted(&self) -> bool {
        let reached = |last: u64| if self.descending { last <= self.low } else { last >= self.end.saturating_sub(1) };
        self.low >= self.end || self.last.is_some_and(reached)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use schemas::id::SessionId;

    use super::*;
    use crate::ports::StepPlace;

    fn whole(query: &StepQuery, steps: u64, told: &[u64], is_enough: bool) -> bool {
        let mut stretch = Stretch::new(query, steps);
        told.iter().for_each(|iteration| stretch.see(*iteration));
        stretch.is_whole(is_enough)
    }

    #[test]
    fn what_is_missing_at_either_end_is_noticed() {
        let up = StepQuery::default();
        let down = StepQuery { descending: true, ..StepQuery::default() };
        assert!(whole(&up, 3, &[0, 1, 2], false) && whole(&down, 3, &[2, 1, 0], false));
        assert!(!whole(&up, 3, &[1, 2], false), "the first ones are in the archive");
        assert!(!whole(&up, 3, &[1, 2], true), "however many match");
        assert!(!whole(&down, 3, &[2, 1], false), "the first one is in the archive");
        assert!(whole(&down, 3, &[2, 1], true), "it is not wanted");
        assert!(!whole(&down, 3, &[1, 0], true), "the newest one is not there");
        assert!(!whole(&up, 3, &[0, 1], false), "the newest one is not there");
        assert!(!whole(&up, 3, &[], false) && !whole(&down, 3, &[], false));
        assert!(whole(&up, 3, &[0, 1, 2, 3], false) && whole(&down, 3, &[3, 2, 1, 0], false), "it went on");
        assert!(!whole(&down, 4, &[3, 1, 0], true) && !whole(&up, 4, &[0, 2, 3], true), "there is a gap");
    }

    #[test]
    fn where_nothing_can_match_nothing_need_be_told() {
        for descending in [false, true] {
            let after = StepQuery { min_iteration: Some(7), descending, ..StepQuery::default() };
            assert!(whole(&after, 7, &[], false) && !whole(&after, 8, &[], false));
            assert!(whole(&StepQuery { descending, ..StepQuery::default() }, 0, &[], false));
        }
    }

    #[test]
    fn a_cursor_bounds_what_may_match_unless_the_page_is_by_time() {
        let session_id = SessionId::parse("s").expect("an id");
        let place = |iteration| Some(StepPlace { iteration, created_at_ms: 0, session_id: session_id.clone() });
        let up = StepQuery { after: place(2), ..StepQuery::default() };
        assert!(whole(&up, 5, &[2, 3, 4], false) && !whole(&up, 5, &[3, 4], false));
        let down = StepQuery { after: place(2), descending: true, ..StepQuery::default() };
        assert!(whole(&down, 5, &[4, 3, 2, 1, 0], false) && whole(&down, 5, &[2, 1, 0], false));
        assert!(!whole(&StepQuery { by_time: true, ..down }, 5, &[2, 1, 0], false));
    }

    proptest! {
        /// Nothing that may match and is not told goes unnoticed.
        #[test]
        fn all_that_may_match_was_told(
            steps in 0u64..9,
            there in prop::collection::vec(any::<bool>(), 9),
            min in prop::option::of(0u64..10),
            max in prop::option::of(0u64..10),
            descending in any::<bool>(),
        ) {
            let query = StepQuery { min_iteration: min, max_iteration: max, descending, ..StepQuery::default() };
            let mut told: Vec<u64> = (0..steps).zip(&there).filter(|(_, is)| **is).map(|(n, _)| n).collect();
            let mut window = min.unwrap_or(0)..steps.min(max.map_or(steps, |max| max + 1));
            let has_all = window.all(|iteration| told.contains(&iteration));
            if descending {
                told.reverse();
            }
            prop_assert!(has_all || !whole(&query, steps, &told, false));
        }
    }
}
