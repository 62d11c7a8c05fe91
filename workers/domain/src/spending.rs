//! What calls of models have used: added up by the commits that record the calls.

use schemas::conversation::{LogKind, LogRecord};

use crate::chat::ProviderCallRecord;

/// Of all recorded calls of a namespace, or of some of them. Costs are in billionths of the operator's
/// currency, so that sums are exact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    pub tokens: u64,
    pub cost_nanos: u64,
    pub calls: u64,
}

const NANOS: f64 = 1e9;
/// What one call may add, whatever its provider says of it: sums stay sums.
const CALL_TOKENS_MAX: u64 = 1_000_000_000_000;
const CALL_NANOS_MAX: u64 = 1_000_000_000_000_000;

impl Spent {
    /// What a record of a log adds; `None` unless it is one of a call.
    pub fn of(record: &LogRecord) -> Option<Self> {
        if record.kind != LogKind::ProviderCall {
            return None;
        }
        let call = record.body.to::<ProviderCallRecord>().ok()?;
        let tokens = call.usage.map_or(0, |usage| usage.input_tokens.saturating_add(usage.output_tokens));
        // A cast of a number that is negative or too large ends at the bounds.
        let cost_nanos = (call.cost.unwrap_or(0.0) * NANOS).round() as u64;
        Some(Self { tokens: tokens.min(CALL_TOKENS_MAX), cost_nanos: cost_nanos.min(CALL_NANOS_MAX), calls: 1 })
    }

    pub fn add(&mut self, other: Self) {
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.cost_nanos = self.cost_nanos.saturating_add(other.cost_nanos);
        self.calls = self.calls.saturating_add(other.calls);
    }

    /// In the operator's currency.
    pub fn cost(&self) -> f64 {
        self.cost_nanos as f64 / NANOS
    }
}
