//! The time that a fleet shares: what one look at the database's clock says, and what follows from it.
//! All times in milliseconds.

/// The longest answer that the time can be told by: a look is wrong by half of it at most.
pub const ANSWER_MS_MAX: i64 = 500;
/// Less is within what a look is wrong by.
pub const SHIFT_MS_MIN: i64 = 20;
/// A correction from which on an operator should know of it.
pub const SHIFT_TOLD_MS: i64 = 2_000;
/// Looks in a row without an answer, of which an operator should know.
pub const MISSES_TOLD: u32 = 3;

/// One look at the database's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Time of this process when it asked.
    pub before_ms: i64,
    /// What the database said.
    pub told_ms: i64,
    /// Time of this process when the answer was there.
    pub after_ms: i64,
}

impl Look {
    /// How far the database's clock is ahead of this process's; negative: behind; 0: within what this
    /// look may be wrong by, and following that would only make the clock jitter. `None`: the answer
    /// took too long to tell the time by, or this process's own clock was set meanwhile.
    pub fn ahead_ms(self) -> Option<i64> {
        let took = self.after_ms.checked_sub(self.before_ms).filter(|took| (0..=ANSWER_MS_MAX).contains(took))?;
        let half = took / 2;
        let ahead = self.told_ms.checked_sub(self.before_ms + half)?;
        Some(if ahead.unsigned_abs() <= half.unsigned_abs() { 0 } else { ahead })
    }
}

/// What a process does after a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heed {
    Keep,
    /// Sets its clock forward by so much, or back. `is_told`: and says so to the operator.
    Shift {
        by_ms: i64,
        is_told: bool,
    },
    /// Says that it has not been told the time for a while. Once per silence.
    TellOfSilence,
}

/// Follows the database's clock, look by look.
#[derive(Debug, Clone, Default)]
pub struct Follower {
    misses: u32,
}

impl Follower {
    /// `ahead_ms` as of [`Look::ahead_ms`]; `None` when there was no answer to go by.
    pub fn heed(&mut self, ahead_ms: Option<i64>) -> Heed {
        let Some(by_ms) = ahead_ms else {
            self.misses = self.misses.saturating_add(1);
            return if self.misses == MISSES_TOLD { Heed::TellOfSilence } else { Heed::Keep };
        };
        self.misses = 0;
        match by_ms.unsigned_abs() {
            shift if shift < SHIFT_MS_MIN.unsigned_abs() => Heed::Keep,
            shift => Heed::Shift { by_ms, is_told: shift >= SHIFT_TOLD_MS.unsigned_abs() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn look(before_ms: i64, told_ms: i64, after_ms: i64) -> Option<i64> {
        Look { before_ms, told_ms, after_ms }.ahead_ms()
    }

    #[test]
    fn the_time_is_told_from_the_middle_of_the_look() {
        assert_eq!(look(1_000, 1_005, 1_010), Some(0));
        assert_eq!(look(1_000, 6_005, 1_010), Some(5_000));
        assert_eq!(look(1_000, 505, 1_010), Some(-500));
    }

    #[test]
    fn what_a_look_may_be_wrong_by_is_no_difference() {
        assert_eq!((look(1_000, 1_000, 1_100), look(1_000, 1_100, 1_100)), (Some(0), Some(0)));
        assert_eq!((look(1_000, 999, 1_100), look(1_000, 1_101, 1_100)), (Some(-51), Some(51)));
    }

    #[test]
    fn nobody_tells_the_time_by_a_slow_answer_or_by_a_clock_that_was_set() {
        assert_eq!(look(1_000, 9_000, 1_001 + ANSWER_MS_MAX), None);
        assert!(look(1_000, 9_000, 1_000 + ANSWER_MS_MAX).is_some());
        assert_eq!(look(1_000, 1_000, 999), None, "it went back");
        assert_eq!(look(i64::MIN, 0, i64::MAX), None);
        assert_eq!(look(i64::MIN, i64::MAX, i64::MIN), None);
    }

    #[test]
    fn small_differences_are_kept_and_large_ones_are_told() {
        let mut follower = Follower::default();
        assert_eq!(follower.heed(Some(SHIFT_MS_MIN - 1)), Heed::Keep);
        assert_eq!(follower.heed(Some(-SHIFT_MS_MIN)), Heed::Shift { by_ms: -SHIFT_MS_MIN, is_told: false });
        assert_eq!(follower.heed(Some(-SHIFT_TOLD_MS)), Heed::Shift { by_ms: -SHIFT_TOLD_MS, is_told: true });
        assert_eq!(follower.heed(Some(i64::MIN)), Heed::Shift { by_ms: i64::MIN, is_told: true });
    }

    #[test]
    fn a_silence_is_told_once() {
        let mut follower = Follower::default();
        let told = |looks: &[Option<i64>], follower: &mut Follower| {
            looks.iter().filter(|look| follower.heed(**look) == Heed::TellOfSilence).count()
        };
        assert_eq!(told(&[None, None, Some(0), None, None], &mut follower), 0, "an answer in between ends it");
        assert_eq!(told(&[None; 50], &mut follower), 1);
        assert_eq!(told(&[Some(0), None, None, None], &mut follower), 1, "and the next silence is another one");
    }

    proptest! {
        /// Whatever the way there and back take, the clock is set to within half of both.
        #[test]
        fn a_shift_brings_the_clocks_together(
            own in 0..4_000_000_000_000_i64, ahead in -1_000_000_000..1_000_000_000_i64, there in 0..250_i64, back in 0..250_i64
        ) {
            let found = look(own, own + there + ahead, own + there + back).expect("it was quick enough");
            prop_assert!((found - ahead).abs() <= (there + back + 1) / 2 + 1 || found == 0);
            prop_assert!(found != 0 || ahead.abs() <= there + back + 1);
        }
    }
}
