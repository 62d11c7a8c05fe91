//! The trace of an action. Its ids are derived from the action's, so that every process that meets
//! the action adds to the same trace, however it came there: over the broker, from the ledger, or
//! after a take-over. Nothing is carried along, and nothing can get lost.

use schemas::id::{ActionId, Namespace};
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceIds {
    /// Of the whole trace; never 0.
    pub trace: u128,
    /// Of its first span, the acceptance, which is the parent of all others; never 0.
    pub root: u64,
}

pub fn trace_ids(namespace: &Namespace, action: &ActionId) -> TraceIds {
    let name = format!("{namespace}/{action}");
    TraceIds { trace: xxh3_128(name.as_bytes()).max(1), root: span_id(&name, 0) }
}

/// The id of a span, from what is particular to it.
pub fn span_id(name: &str, seed: u64) -> u64 {
    xxh3_64_with_seed(name.as_bytes(), seed).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_of_a_trace_depend_on_the_namespace_and_the_action_only() {
        let ids = |namespace: &str, action: &str| {
            trace_ids(&namespace.parse().expect("a namespace"), &action.parse().expect("an id"))
        };
        assert_eq!(ids("default", "a1"), ids("default", "a1"));
        assert_ne!(ids("default", "a1").trace, ids("default", "a2").trace);
        assert_ne!(ids("default", "a1").trace, ids("other", "a1").trace);
        // Processes of different versions meet in one trace.
        assert_eq!(ids("default", "a1").trace, 0xa8ca_887f_b236_acc1_f03b_29c9_c67f_3df9);
    }
}
