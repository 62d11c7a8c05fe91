//! When an operator is told that something is away, and that it is back: each change once, whatever the
//! errors say, and of what comes and goes at most one line in ten seconds.

use std::time::Duration;

/// Between two lines about the same thing.
pub const TELL_EVERY: Duration = Duration::from_secs(10);

/// Follows one thing, look by look. What is left out comes with a later look's line.
#[derive(Debug, Clone, Default)]
pub struct Outage {
    is_away: bool,
    /// What the last line said.
    told_away: bool,
    told_at: Option<Duration>,
    /// Since the last line.
    changes: u64,
}

impl Outage {
    /// `now` is the time since any moment, the same for all looks. `Some`: a line is due that says what
    /// this look saw; so many changes between it and the last line were told by none.
    pub fn see(&mut self, is_away: bool, now: Duration) -> Option<u64> {
        if self.is_away != is_away {
            self.is_away = is_away;
            self.changes = self.changes.saturating_add(1);
        }
        let is_early = self.told_at.is_some_and(|at| now.saturating_sub(at) < TELL_EVERY);
        if self.told_away == is_away || is_early {
            return None;
        }
        self.told_away = is_away;
        self.told_at = Some(now);
        // The line itself tells the last one.
        Some(std::mem::take(&mut self.changes).saturating_sub(1))
    }

    /// It is there, and the last line, if there was one, says so: seeing it there once more changes nothing.
    pub fn is_over(&self) -> bool {
        !self.is_away && !self.told_away
    }
}

/// Of what happens again and again, to whomever: a line in ten seconds at most, the first one at once.
#[derive(Debug, Clone, Default)]
pub struct Seldom {
    told_at: Option<Duration>,
    left_out: u64,
}

impl Seldom {
    /// It happens once more; `now` as for [`Outage::see`]. `Some`: a line is due, after so many without.
    pub fn see(&mut self, now: Duration) -> Option<u64> {
        if self.told_at.is_some_and(|at| now.saturating_sub(at) < TELL_EVERY) {
            self.left_out = self.left_out.saturating_add(1);
            return None;
        }
        self.told_at = Some(now);
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// The lines that looks lead to: when, what they say, and how many changes were left out.
    fn lines(looks: impl IntoIterator<Item = (u64, bool)>) -> Vec<(u64, bool, u64)> {
        let mut outage = Outage::default();
        let line = |(at, is_away)| outage.see(is_away, MS(at)).map(|left_out| (at, is_away, left_out));
        looks.into_iter().filter_map(line).collect()
    }

    #[test]
    fn what_was_never_away_is_not_told() {
        assert!(lines((0..100).map(|n| (n * 1_000, false))).is_empty());
        assert!(Outage::default().is_over());
    }

    #[test]
    fn an_outage_is_told_once_and_its_end_once() {
        let looks = (0..120).map(|n| (n * 1_000, (20..80).contains(&n)));
        assert_eq!(lines(looks), [(20_000, true, 0), (80_000, false, 0)]);
    }

    #[test]
    fn the_end_of_a_short_outage_is_told_later() {
        let looks = (0..60).map(|n| (n * 1_000, (20..23).contains(&n)));
        assert_eq!(lines(looks), [(20_000, true, 0), (30_000, false, 0)]);
        let mut outage = Outage::default();
        assert_eq!((outage.see(true, MS(0)), outage.see(false, MS(1_000))), (Some(0), None));
        assert!(!outage.is_over(), "it is there, and the log says that it is away");
        assert_eq!(outage.see(false, MS(10_000)), Some(0));
        assert!(outage.is_over());
    }

    #[test]
    fn what_comes_and_goes_is_told_every_ten_seconds_with_what_was_left_out() {
        // It changes twice a second, for a minute.
        let told = lines((0..120).map(|n| (n * 500, n % 2 == 0)));
        assert_eq!(told.iter().map(|(at, ..)| *at).collect::<Vec<_>>(), [0, 10_500, 21_000, 31_500, 42_000, 52_500]);
        assert_eq!(
            told.iter().map(|(_, is_away, _)| *is_away).collect::<Vec<_>>(),
            [true, false, true, false, true, false]
        );
        assert!(told[1..].iter().all(|(.., left_out)| *left_out == 20), "{told:?}");
    }

    #[test]
    fn what_happens_by_the_thousand_is_told_every_ten_seconds() {
        let mut seldom = Seldom::default();
        let lines: Vec<u64> = (0..2_500).filter_map(|n| seldom.see(MS(n * 10))).collect();
        assert_eq!(lines, [0, 999, 999]);
        assert_eq!(seldom.see(MS(3_600_000)), Some(499));
    }

    proptest! {
        /// However it comes and goes, lines are rare and account for every change.
        #[test]
        fn lines_are_rare_and_account_for_all(looks in prop::collection::vec((0..4_000_u64, any::<bool>()), 0..200)) {
            let mut outage = Outage::default();
            let (mut now, mut before, mut changes, mut accounted) = (0, false, 0, 0);
            let mut last: Option<u64> = None;
            for (wait, is_away) in looks {
                now += wait;
                changes += u64::from(before != is_away);
                before = is_away;
                if let Some(left_out) = outage.see(is_away, MS(now)) {
                    accounted += left_out + 1;
                    prop_assert_eq!(accounted, changes);
                    prop_assert!(last.is_none_or(|last| now - last >= 10_000));
                    last = Some(now);
                }
            }
        }
    }
}
