//! Accepting goes on while the broker is away: actions are answered as if nothing had happened.

use super::Findings;
use crate::seen::Seen;
use crate::seen::outage::{Outage, Post};

/// An answer that came within this time came at once.
const AT_ONCE_MS: u64 = 1_000;
/// Tries between these times before an outage show how the fleet and the machine are without it.
const BEFORE_MS: std::ops::Range<i64> = 500..3_500;
/// What is not well before is not judged.
const BEFORE_MIN: f64 = 0.95;
const DURING_MIN: f64 = 0.9;
/// So few tries say nothing.
const BEFORE_POSTS_MIN: usize = 10;
const POSTS_MIN: usize = 20;

/// Tries that had to be answered with 202, and those that were, at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub tries: usize,
    pub at_once: usize,
}

impl Tally {
    fn of(posts: &[Post], from_ms: i64, to_ms: i64) -> Self {
        let within = posts.iter().filter(|post| (from_ms..to_ms).contains(&post.at_ms));
        within.filter(|post| !is_refusal(post)).fold(Self::default(), |sum, post| Self {
            tries: sum.tries + 1,
            at_once: sum.at_once + usize::from(post.status == 202 && post.took_ms <= AT_ONCE_MS),
        })
    }

    pub fn share(self) -> f64 {
        self.at_once as f64 / self.tries.max(1) as f64
    }
}

/// What no try would change: the session has ended, say.
fn is_refusal(post: &Post) -> bool {
    (400..500).contains(&post.status) && post.status != 429
}

/// All outages that can be judged as one, and how many those are.
pub fn during(seen: &Seen) -> (Tally, usize) {
    let well_before = |outage: &&Outage| {
        let (from_ms, to_ms) = (outage.from_ms - BEFORE_MS.end, outage.from_ms - BEFORE_MS.start);
        let before = Tally::of(&seen.posts, from_ms, to_ms);
        before.tries >= BEFORE_POSTS_MIN && before.share() >= BEFORE_MIN
    };
    let judged: Vec<&Outage> = seen.outages.iter().filter(well_before).collect();
    let all = judged.iter().map(|outage| Tally::of(&seen.posts, outage.from_ms, outage.to_ms));
    let sum = all
        .fold(Tally::default(), |sum, one| Tally { tries: sum.tries + one.tries, at_once: sum.at_once + one.at_once });
    (sum, judged.len())
}

pub fn says_something(tally: Tally) -> bool {
    tally.tries >= POSTS_MIN
}

pub fn check(seen: &Seen, findings: &mut Findings) {
    let (tally, outages) = during(seen);
    let Tally { tries, at_once } = tally;
    findings.expect("accepting stopped", None, !says_something(tally) || tally.share() > DURING_MIN, || {
        format!("in {outages} outages of the broker {at_once} of {tries} actions were accepted within {AT_ONCE_MS} ms")
    });
}
