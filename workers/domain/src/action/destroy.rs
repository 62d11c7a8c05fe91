//! `destroy {reason?}`: `stopping`, then `stopped` within the grace period (SPEC Q-LIF-05).

use super::fields::{Object, Problems};
use super::reason;

pub(super) fn check(payload: &Object<'_>, problems: &mut Problems) {
    reason::check(payload, problems);
}
