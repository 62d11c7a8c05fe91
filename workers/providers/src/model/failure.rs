//! Error answers of the vendors, by class (SPEC C-PRV-09).

use serde_json::Value;

use crate::call::{CallError, Class};
use crate::config::Vendor;
use crate::net::body::beginning;

/// Classifies an answer with an error status.
pub(super) fn classify(vendor: Vendor, status: u16, body: Option<&Value>, raw: &[u8]) -> CallError {
    // Some gateways wrap the error object in a list.
    let error = body.map(|body| body.get(0).unwrap_or(body)).and_then(|body| body.get("error"));
    let word = |key: &str| error.and_then(|error| error.get(key)).and_then(Value::as_str).unwrap_or_default();
    let said = match error {
        Some(Value::String(text)) => text.clone(),
        _ if !word("message").is_empty() => word("message").chars().take(500).collect(),
        _ => beginning(raw),
    };
    let reason = [word("type"), word("code"), word("status")];
    let class = match status {
        _ if reason.contains(&"insufficient_quota") || reason.contains(&"billing_error") => Class::Quota,
        _ if reason.contains(&"overloaded_error") => Class::Overloaded,
        401 | 403 => Class::Auth,
        402 => Class::Quota,
        400 if said.contains("API key") => Class::Auth,
        408 => Class::Timeout,
        429 => Class::RateLimit,
        409 | 425 | 500.. => Class::Overloaded,
        _ => Class::Invalid,
    };
    let message = format!("{}: {} (status {status}): {said}", vendor.as_str(), in_words(class));
    CallError::new(class, message).retry_after(error.and_then(retry_delay_ms))
}

fn in_words(class: Class) -> &'static str {
    match class {
        Class::RateLimit => "too many requests",
        Class::Overloaded => "it is overloaded or broken",
        Class::Timeout => "it took too long",
        Class::Auth => "the key was refused",
        Class::Quota => "the account has no quota left",
        _ => "the request was refused",
    }
}

/// `error.details[].retryDelay` of Google's error model, as in `"17s"`.
fn retry_delay_ms(error: &Value) -> Option<u64> {
    let details = error.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    (seconds.is_finite() && seconds >= 0.0).then_some((seconds * 1_000.0).ceil() as u64)
}
