//! What the log says of the broker as a whole: each change once for the process, whichever of its connections
//! notices it, and of what comes and goes a line now and then.

use std::collections::BTreeSet;
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
    /// The connections that have it, by what they are for.
    with: BTreeSet<&'static str>,
}

impl Trouble {
    /// `Some`: a line is due, after so many changes that none told.
    fn see(&mut self, role: &'static str, is_wrong: bool, now: Duration) -> Option<u64> {
        match is_wrong {
            true => self.with.insert(role),
            false => self.with.remove(role),
        };
        self.outage.see(!self.with.is_empty(), now)
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
        if let Some(left_out) = self.told().away.see(role, true, self.0.begun.elapsed()) {
            let broker = self.0.broker.as_str();
            tracing::warn!(broker, reason, left_out, "the broker is away; trying again until it is back");
        }
    }

    /// A connection has held for a while.
    pub fn holds(&self, role: &'static str) {
        if let Some(left_out) = self.told().away.see(role, false, self.0.begun.elapsed()) {
            tracing::info!(broker = self.0.broker, left_out, "the broker is there again");
        }
    }

    /// Whether a connection takes messages at present, or why not. Told now and then, so that no end stays untold.
    pub fn takes(&self, role: &'static str, blocked: Option<&str>) {
        let line = self.told().blocked.see(role, blocked.is_some(), self.0.begun.elapsed());
        match (line, blocked) {
            (None, _) => {}
            (Some(left_out), Some(reason)) => {
                tracing::warn!(broker = self.0.broker, reason, left_out, "the broker takes no messages for now");
            }
            (Some(left_out), None) => {
                tracing::info!(broker = self.0.broker, left_out, "the broker takes messages again");
            }
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

    #[test]
    fn both_connections_are_one_outage() {
        let mut away = Trouble::default();
        let mut lines = |is_away, now| ROLES.map(|role| away.see(role, is_away, now)).into_iter().flatten().count();
        for second in 0..60 {
            assert_eq!(lines(true, S(second)), usize::from(second == 0), "{second}");
        }
        assert_eq!((lines(false, S(60)), lines(false, S(90))), (1, 0), "back once both are");
    }

    #[test]
    fn while_one_is_lost_it_is_not_back() {
        let mut away = Trouble::default();
        assert_eq!(away.see(ROLES[0], true, S(0)), Some(0));
        // The other one comes and goes.
        for second in 20..200 {
            assert_eq!(away.see(ROLES[1], second % 2 == 0, S(second)), None, "{second}");
        }
        assert_eq!(away.see(ROLES[1], false, S(200)), None);
        assert_eq!(away.see(ROLES[0], false, S(201)), Some(0));
    }

    #[test]
    fn what_ends_soon_is_told_by_a_later_look() {
        let mut blocked = Trouble::default();
        let looks = (0..120_u64).map(|n| (n, blocked.see(ROLES[0], n < 4, Duration::from_millis(n * 500))));
        let lines: Vec<u64> = looks.filter_map(|(n, line)| line.map(|_| n)).collect();
        assert_eq!(lines, [0, 20]);
    }
}
