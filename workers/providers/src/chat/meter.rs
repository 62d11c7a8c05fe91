//! What a call uses beside its reply: attempts that brought none, and that the provider may bill all the same.

use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::chat::{ChatRequest, Usage};
use domain::context::{estimate_chars, estimate_request, estimate_tokens};
use serde_json::{Value, json};

/// Of one call. Attempts put themselves down here when they end, and when they are dropped.
pub(crate) struct Meter<'a> {
    request: &'a ChatRequest,
    read: Mutex<Reading>,
}

#[derive(Default)]
struct Reading {
    attempts: u32,
    lost: Vec<Lost>,
}

/// An attempt without a reply.
struct Lost {
    attempt: u32,
    usage: Usage,
    /// The provider did not tell all of it.
    estimated: bool,
}

impl<'a> Meter<'a> {
    /// `request`: what every attempt sends.
    pub fn new(request: &'a ChatRequest) -> Self {
        Self { request, read: Mutex::default() }
    }

    /// One more attempt begins; its number, from 1.
    pub fn begin(&self) -> u32 {
        let mut read = self.lock();
        read.attempts += 1;
        read.attempts
    }

    pub fn attempts(&self) -> u32 {
        self.lock().attempts
    }

    /// An attempt broke off that had told `chars` characters, and perhaps what it had used by then. What it did
    /// not tell is estimated (SPEC A-CMP-02).
    pub fn lose(&self, attempt: u32, told: Option<Usage>, chars: u64) {
        let output = estimate_chars(chars);
        // Figures that come at the beginning know nothing of what is said afterwards.
        let estimated = told.as_ref().is_none_or(|told| told.output_tokens < output);
        let mut usage = told.unwrap_or_else(|| Usage { input_tokens: self.input_tokens(), ..Usage::default() });
        usage.output_tokens = usage.output_tokens.max(output);
        usage.total_tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        usage.breakdown = None;
        self.lock().lost.push(Lost { attempt, usage, estimated });
    }

    fn input_tokens(&self) -> u64 {
        match &self.request.native {
            Some(native) => estimate_tokens(&native.body.to_string()),
            None => estimate_request(self.request),
        }
    }

    /// Of all attempts, `reply` being what the last one told with its reply.
    pub fn usage(&self, reply: Option<&Usage>) -> Option<Usage> {
        let read = self.lock();
        read.lost.iter().fold(reply.cloned(), |sum, lost| match sum {
            // The provider's own figures are of its reply.
            Some(sum) => Some(Usage { breakdown: sum.breakdown.clone(), ..sum.plus(&lost.usage) }),
            None => Some(lost.usage.clone()),
        })
    }

    /// The attempts that were lost, for the record; `None` if there are none.
    pub fn lost(&self) -> Option<Value> {
        let read = self.lock();
        let told = read.lost.iter().map(|Lost { attempt, usage, estimated }| {
            json!({"attempt": attempt, "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens,
                   "estimated": estimated})
        });
        (!read.lost.is_empty()).then(|| told.collect())
    }

    fn lock(&self) -> MutexGuard<'_, Reading> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
