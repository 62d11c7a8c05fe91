//! What was asked of models, until it is told to the session that pays for it.

use std::sync::{Mutex, PoisonError};

use domain::chat::ProviderCallRecord;
use domain::ports::Bill;
use schemas::limits::{ACTION_BYTES_MAX, PROVIDER_CALL_BYTES_MAX, TOOL_RESULT_BYTES_MAX};

/// Calls of one attempt that are told one by one; what the others used is added to the last of them.
const CALLS_MAX: usize = 32;
const _: () = assert!(TOOL_RESULT_BYTES_MAX + CALLS_MAX * PROVIDER_CALL_BYTES_MAX + (16 << 10) <= ACTION_BYTES_MAX);

/// Of one attempt of a tool, or of one call that may be cut short.
#[derive(Default)]
pub struct Till(Mutex<Vec<ProviderCallRecord>>);

impl Till {
    /// Everything so far, once.
    pub fn empty(&self) -> Vec<ProviderCallRecord> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Bill for Till {
    fn add(&self, record: ProviderCallRecord) {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.len() < CALLS_MAX {
            calls.push(record.within(PROVIDER_CALL_BYTES_MAX));
        } else if let Some(last) = calls.last_mut() {
            last.add(&record);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(n: usize) -> ProviderCallRecord {
        let record = json!({"id": format!("c{n}"), "conversation_id": "c", "turn_id": "t", "provider": "p", "model": "m",
            "operation": "chat", "started_at_ms": 0, "cost": 0.5,
            "usage": {"input_tokens": 10, "output_tokens": 1, "total_tokens": 11}});
        serde_json::from_value(record).expect("a record")
    }

    #[test]
    fn however_many_calls_there_are_all_of_them_are_paid() {
        let till = Till::default();
        (0..CALLS_MAX + 2).for_each(|n| till.add(call(n)));
        let calls = till.empty();
        let last = calls.last().expect("calls");
        assert_eq!((calls.len(), last.id.as_str(), last.cost), (CALLS_MAX, "c31", Some(1.5)));
        assert_eq!(last.response_metadata["added_calls"], 2);
        let tokens: u64 = calls.iter().filter_map(|call| call.usage.as_ref()).map(|usage| usage.input_tokens).sum();
        assert_eq!(tokens, 10 * (CALLS_MAX as u64 + 2));
        assert!(till.empty().is_empty(), "once");
    }

    #[test]
    fn what_a_provider_says_beside_its_figures_has_a_bound() {
        let till = Till::default();
        let mut talkative = call(1);
        talkative.response_metadata.insert("message_id".to_owned(), "x".repeat(PROVIDER_CALL_BYTES_MAX).into());
        till.add(talkative);
        assert_eq!(till.empty(), [call(1)]);
        let mut usual = call(2);
        usual.response_metadata.insert("finish".to_owned(), "stop".into());
        till.add(usual.clone());
        assert_eq!(till.empty(), [usual]);
    }
}
