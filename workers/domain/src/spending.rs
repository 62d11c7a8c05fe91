//! What calls of models have used: added up by the commits that record the calls.

use schemas::conversation::{LogKind, LogRecord};
use schemas::event::{EventKind, EventRecord};
use schemas::limits::{CALL_COST_NANOS_MAX, CALL_TOKENS_MAX, SPENT_OF_SHARD_MAX};
use schemas::record::Entry;
use schemas::session::ModelUse;

use crate::chat::ProviderCallRecord;

/// Of all recorded calls of a namespace, or of some of them. Costs are in billionths of the operator's
/// currency, so that sums are exact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    pub tokens: u64,
    pub cost_nanos: u64,
    pub calls: u64,
}

/// Of one unit of the currency.
pub(crate) const NANOS: f64 = 1e9;

impl Spent {
    /// What a record of a log adds, within the bounds of one call; `None` unless it is one of a call.
    pub fn of(record: &LogRecord) -> Option<Self> {
        if record.kind != LogKind::ProviderCall {
            return None;
        }
        record.body.to::<ProviderCallRecord>().ok().as_ref().map(Self::of_call)
    }

    /// What one call adds, within its bounds.
    pub fn of_call(call: &ProviderCallRecord) -> Self {
        let tokens = call.usage.as_ref().map_or(0, |usage| usage.input_tokens.saturating_add(usage.output_tokens));
        // A cast of a number that is negative or too large ends at the bounds.
        let cost_nanos = (call.cost.unwrap_or(0.0) * NANOS).round() as u64;
        Self { tokens: tokens.min(CALL_TOKENS_MAX), cost_nanos: cost_nanos.min(CALL_COST_NANOS_MAX), calls: 1 }
    }

    /// What an event of a session adds, as [`Self::of`].
    pub fn of_event(event: &EventRecord) -> Option<Self> {
        if event.kind != EventKind::ProviderCall {
            return None;
        }
        event.data.to::<ProviderCallRecord>().ok().as_ref().map(Self::of_call)
    }

    /// What each call of a commit's steps adds. Those of turns are records of a conversation.
    pub fn of_steps(entry: &Entry) -> impl Iterator<Item = Self> + '_ {
        entry.events.iter().filter_map(Self::of_event)
    }

    /// What the steps of a session have used.
    pub fn by_steps(used: &ModelUse) -> Self {
        Self { tokens: used.tokens, cost_nanos: used.cost_nanos, calls: used.calls }
    }

    /// Up to what one shard counts, so that a database adds these sums without an overflow.
    pub fn add(&mut self, other: Self) {
        self.tokens = self.tokens.saturating_add(other.tokens).min(SPENT_OF_SHARD_MAX);
        self.cost_nanos = self.cost_nanos.saturating_add(other.cost_nanos).min(SPENT_OF_SHARD_MAX);
        self.calls = self.calls.saturating_add(other.calls);
    }

    /// In the operator's currency.
    pub fn cost(&self) -> f64 {
        self.cost_nanos as f64 / NANOS
    }
}

#[cfg(test)]
mod tests {
    use schemas::json::Json;
    use serde_json::{Value, json};

    use super::*;

    fn spent(kind: LogKind, usage: Value, cost: Value) -> Option<Spent> {
        let body = json!({"id": "r", "conversation_id": "c", "turn_id": "t", "provider": "p", "model": "m",
                          "operation": "chat", "started_at_ms": 0, "usage": usage, "cost": cost});
        let id = "r.call".to_owned();
        Spent::of(&LogRecord {
            kind,
            id,
            turn_id: None,
            agent_id: None,
            session_id: None,
            at_ms: 0,
            body: Json::of(&body),
        })
    }

    fn call(input: u64, output: u64, cost: f64) -> (u64, u64, u64) {
        let usage = json!({"input_tokens": input, "output_tokens": output, "total_tokens": 0});
        let spent = spent(LogKind::ProviderCall, usage, json!(cost)).expect("a call");
        (spent.tokens, spent.cost_nanos, spent.calls)
    }

    #[test]
    fn a_call_adds_no_more_than_its_bounds_and_takes_nothing_back() {
        assert_eq!(call(10, 5, 0.25), (15, 250_000_000, 1));
        assert_eq!(call(CALL_TOKENS_MAX, 1, 1e6 + 1.0), (CALL_TOKENS_MAX, CALL_COST_NANOS_MAX, 1));
        assert_eq!(call(u64::MAX, u64::MAX, 1e300), (CALL_TOKENS_MAX, CALL_COST_NANOS_MAX, 1));
        assert_eq!(call(0, 0, -1e300), (0, 0, 1));
    }

    #[test]
    fn what_is_not_told_costs_nothing_and_only_calls_count() {
        let unknown = spent(LogKind::ProviderCall, Value::Null, Value::Null);
        assert_eq!(unknown, Some(Spent { tokens: 0, cost_nanos: 0, calls: 1 }));
        assert_eq!(spent(LogKind::Event, Value::Null, json!(1.0)), None);
    }

    #[test]
    fn sums_end_at_their_bounds() {
        let mut sum = Spent { tokens: SPENT_OF_SHARD_MAX - 1, cost_nanos: u64::MAX, calls: u64::MAX };
        sum.add(Spent { tokens: 1, cost_nanos: 1, calls: 1 });
        assert_eq!((sum.tokens, sum.cost_nanos, sum.calls), (SPENT_OF_SHARD_MAX, SPENT_OF_SHARD_MAX, u64::MAX));
        sum.add(Spent { tokens: 1, ..Spent::default() });
        assert_eq!(sum.tokens, SPENT_OF_SHARD_MAX);
    }
}
