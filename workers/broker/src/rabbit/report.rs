//! What the log says of the broker as a whole: each change once for the process, whichever of its connections
//! notices it, and of what comes and goes a line now and then.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::outage::Outage;
use schemas::telemetry::metric;
use tokio::time::Instant;

/// Cheap to clone: the connections of a process share one.
#[derive(Clone)]
pub(super) struct Report(Arc<Inner>);

struct Inner {
    broker: String,
    begun: Instant,
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    away: Trouble,
    blocked: Trouble,
}

/// One thing that may be wrong.
#[derive(Default)]
struct Trouble {
    outage: Outage,
    /// The connections that have it, by what they are for, and why.
    with: BTreeMap<&'static str, String>,
}

#[derive(Debug, PartialEq, Eq)]
struct Line {
    /// Why something is wrong; `None`: nothing is any more.
    reason: Option<String>,
    left_out: u64,
}

impl Trouble {
    /// `wrong`: why, if so. `Some`: a line is due, after so many changes that none told; with what it is about, which
    /// may be the trouble of another connection.
    fn see(&mut self, role: &'static str, wrong: Option<&str>, now: Duration) -> Option<Line> {
        match wrong {
            Some(reason) => self.with.insert(role, reason.to_owned()),
            None => self.with.remove(role),
        };
        let left_out = self.outage.see(!self.with.is_empty(), now)?;
        Some(Line { reason: self.with.values().next().cloned(), left_out })
    }
}

impl Report {
    /// `broker` as it is shown.
    pub fn new(broker: String) -> Self {
        Self(Arc::new(Inner { broker, begun: Instant::now(), told: Mutex::default() }))
    }

    /// A connection is lost, or did not come about.
    pub fn lost(&self, role: &'static str, reason: &str) {
        count_failure();
        tracing::debug!(broker = self.0.broker, role, reason, "without a connection to the broker");
        self.tell_away(role, Some(reason));
    }

    /// A connection has held for a while.
    pub fn holds(&self, role: &'static str) {
        self.tell_away(role, None);
    }

    fn tell_away(&self, role: &'static str, wrong: Option<&str>) {
        let Some(Line { reason, left_out }) = self.told().away.see(role, wrong, self.0.begun.elapsed()) else { return };
        let broker = self.0.broker.as_str();
        match reason {
            Some(reason) => {
                tracing::warn!(broker, reason, left_out, "the broker is away; trying again until it is back")
            }
            None => tracing::info!(broker, left_out, "the broker is there again"),
        }
    }

    /// Whether a connection takes messages at present, or why not. Told now and then, so that no end stays untold.
    pub fn takes(&self, role: &'static str, blocked: Option<&str>) {
        let line = self.told().blocked.see(role, blocked, self.0.begun.elapsed());
        let Some(Line { reason, left_out }) = line else { return };
        let broker = self.0.broker.as_str();
        match reason {
            Some(reason) => tracing::warn!(broker, reason, left_out, "the broker takes no messages for now"),
            None => tracing::info!(broker, left_out, "the broker takes messages again"),
        }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The broker did not do what a connection is for.
pub(super) fn count_failure() {
    metrics::counter!(metric::SERVICE_FAILURES, "of" => "broker").increment(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;
    const ROLES: [&str; 2] = ["publishes", "consumes"];

    const WHY: Option<&str> = Some("refused");

    #[test]
    fn both_connections_are_one_outage() {
        let mut away = Trouble::default();
        let mut lines = |why, now| ROLES.map(|role| away.see(role, why, now)).into_iter().flatten().count();
        for second in 0..60 {
            assert_eq!(lines(WHY, S(second)), usize::from(second == 0), "{second}");
        }
        assert_eq!((lines(None, S(60)), lines(None, S(90))), (1, 0), "back once both are");
    }

    #[test]
    fn while_one_is_lost_it_is_not_back() {
        let mut away = Trouble::default();
        assert!(away.see(ROLES[0], WHY, S(0)).is_some());
        // The other one comes and goes.
        for second in 20..200 {
            assert_eq!(away.see(ROLES[1], WHY.filter(|_| second % 2 == 0), S(second)), None, "{second}");
        }
        assert_eq!(away.see(ROLES[1], None, S(200)), None);
        assert_eq!(away.see(ROLES[0], None, S(201)), Some(Line { reason: None, left_out: 0 }));
    }

    /// A line may be due when the one speaks that is well.
    #[test]
    fn a_line_is_about_what_is_wrong_whoever_brings_it() {
        let mut away = Trouble::default();
        for (role, why, at) in [(ROLES[0], WHY, 0), (ROLES[0], None, 20), (ROLES[1], Some("reset"), 23)] {
            away.see(role, why, S(at));
        }
        let later = (24..60).find_map(|second| away.see(ROLES[0], None, S(second))).expect("a line");
        assert_eq!(later.reason.as_deref(), Some("reset"));
    }

    #[test]
    fn what_ends_soon_is_told_by_a_later_look() {
        let mut blocked = Trouble::default();
        let mut look = |n: u64| blocked.see(ROLES[0], WHY.filter(|_| n < 4), Duration::from_millis(n * 500));
        let lines: Vec<u64> = (0..120).filter(|n| look(*n).is_some()).collect();
        assert_eq!(lines, [0, 20]);
    }
}
