//! Errors that providers report, by class (SPEC C-PRV-09): as an answer with an error status, or in
//! the middle of a stream that began well.

use serde_json::Value;

use crate::call::{CallError, Class};
use crate::config::{Endpoint, Vendor};
use crate::net::body::beginning;

/// Longest part of a provider's message that is passed on.
pub const SAID_CHARS_MAX: usize = 500;

/// Classifies an answer with an error status.
pub fn of_answer(vendor: Vendor, status: u16, body: Option<&Value>, raw: &[u8]) -> CallError {
    let report = Report::of(body);
    let said = if report.said.is_empty() { beginning(raw) } else { report.said.clone() };
    let error = report.error(vendor, Some(status), &said);
    CallError { status: Some(status), ..error }
}

/// Says what to set if a key was wanted and none was sent.
pub fn of_key(error: CallError, endpoint: &Endpoint) -> CallError {
    if error.class != Class::Auth || endpoint.key.is_some() {
        return error;
    }
    let (vendor, setting) = (endpoint.vendor.as_str(), endpoint.key_setting);
    CallError { message: format!("{vendor}: no key was sent; set {setting} ({})", error.message), ..error }
}

/// Classifies an error event of a stream.
pub fn in_stream(vendor: Vendor, event: &Value) -> CallError {
    let report = Report::of(Some(event));
    let said = if report.said.is_empty() { beginning(event.to_string().as_bytes()) } else { report.said.clone() };
    report.error(vendor, None, &said)
}

/// What an error object says.
struct Report<'a> {
    /// `type`, `code` and `status` of the error.
    words: [&'a str; 3],
    /// A code that is a number: an HTTP status.
    number: Option<u16>,
    said: String,
    retry_after_ms: Option<u64>,
    /// A quota of a whole day is used up.
    daily: bool,
}

impl<'a> Report<'a> {
    fn of(body: Option<&'a Value>) -> Self {
        // Some gateways wrap the object in a list; some events are the object itself.
        let body = body.map(|body| body.get(0).unwrap_or(body));
        let error = body.and_then(|body| body.get("error").filter(|error| !error.is_null()).or(Some(body)));
        let word = |key: &str| error.and_then(|error| error.get(key)).and_then(Value::as_str).unwrap_or_default();
        let said = match error {
            Some(Value::String(text)) => text.clone(),
            _ if !word("message").is_empty() => word("message").to_owned(),
            _ => word("detail").to_owned(),
        };
        let number = error.and_then(|error| error.get("code")?.as_u64()).filter(|code| (400..600).contains(code));
        let details = error.and_then(|error| error.get("details")?.as_array()).map_or(&[][..], Vec::as_slice);
        Self {
            words: [word("type"), word("code"), word("status")],
            number: number.and_then(|code| u16::try_from(code).ok()),
            retry_after_ms: retry_delay_ms(details).or_else(|| asked_in_words_ms(&said)),
            said: said.chars().take(SAID_CHARS_MAX).collect(),
            daily: details.iter().any(names_a_daily_quota),
        }
    }

    fn error(&self, vendor: Vendor, status: Option<u16>, said: &str) -> CallError {
        let class = self.class(status.or(self.number));
        let status = status.map(|status| format!(" (status {status})")).unwrap_or_default();
        let message = format!("{}: {}{status}: {said}", vendor.as_str(), in_words(class));
        let word = self.words.iter().rev().find(|word| !word.is_empty() && **word != "error");
        CallError { word: word.map(|word| (*word).to_owned()), ..CallError::new(class, message) }
            .retry_after(self.retry_after_ms)
    }

    fn class(&self, status: Option<u16>) -> Class {
        let is = |words: &[&str]| self.words.iter().any(|word| words.contains(word));
        // Words that mean one thing whatever the status.
        if self.daily
            || is(&["insufficient_quota", "billing_error", "billing_hard_limit_reached", "billing_not_active"])
            || self.said.contains("credit balance")
        {
            return Class::Quota;
        }
        if is(&["content_filter", "content_policy_violation", "invalid_prompt", "image_content_policy_violation"]) {
            return Class::Safety;
        }
        if is(&["overloaded_error"]) {
            return Class::Overloaded;
        }
        match status {
            Some(401 | 403) => Class::Auth,
            Some(402) => Class::Quota,
            Some(400) if self.said.contains("API key") => Class::Auth,
            Some(408) => Class::Timeout,
            Some(429) => Class::RateLimit,
            Some(409 | 425 | 500..) => Class::Overloaded,
            Some(400..) => Class::Invalid,
            Some(_) => Class::Unknown,
            None => self.class_by_word(),
        }
    }

    /// In a stream there is no status. The request was good enough to begin an answer, so what has
    /// no known word is the provider's own trouble.
    fn class_by_word(&self) -> Class {
        let of = |word: &str| {
            Some(match word {
                "rate_limit_error" | "rate_limit_exceeded" | "too_many_requests" | "RESOURCE_EXHAUSTED" => {
                    Class::RateLimit
                }
                "authentication_error"
                | "permission_error"
                | "invalid_api_key"
                | "UNAUTHENTICATED"
                | "PERMISSION_DENIED" => Class::Auth,
                "invalid_request_error"
                | "not_found_error"
                | "request_too_large"
                | "context_length_exceeded"
                | "model_not_found"
                | "INVALID_ARGUMENT"
                | "NOT_FOUND"
                | "FAILED_PRECONDITION" => Class::Invalid,
                "timeout_error" | "DEADLINE_EXCEEDED" => Class::Timeout,
                _ => return None,
            })
        };
        // A code says more than a type.
        self.words.iter().rev().find_map(|word| of(word)).unwrap_or(Class::Overloaded)
    }
}

fn in_words(class: Class) -> &'static str {
    match class {
        Class::RateLimit => "too many requests",
        Class::Overloaded => "it is overloaded or broken",
        Class::Timeout => "it took too long",
        Class::Auth => "the key was refused",
        Class::Quota => "the account has no quota left",
        Class::Safety => "a filter refused the request",
        Class::Unknown => "it answered what nobody expects",
        _ => "the request was refused",
    }
}

/// `retryDelay` among the details of Google's error model, as in `"17s"`.
fn retry_delay_ms(details: &[Value]) -> Option<u64> {
    duration_ms(details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?)
}

/// Google's limits per day come with the same status as those per minute.
fn names_a_daily_quota(detail: &Value) -> bool {
    let violations = detail.get("violations").and_then(Value::as_array);
    let ids = violations.into_iter().flatten().filter_map(|violation| violation.get("quotaId")?.as_str());
    ids.into_iter().any(|id| id.contains("PerDay"))
}

/// "Please try again in 1.5s", as OpenAI says it.
fn asked_in_words_ms(said: &str) -> Option<u64> {
    const BEFORE: &str = "try again in ";
    // Found in a copy whose letters are as long as the original's.
    let at = said.to_ascii_lowercase().find(BEFORE)? + BEFORE.len();
    let word = said[at..].split_whitespace().next()?;
    duration_ms(word.trim_end_matches(|c: char| !c.is_ascii_alphabetic()))
}

/// `1.5s`, `20ms`, `6m0s`, `1h2m`.
fn duration_ms(text: &str) -> Option<u64> {
    let (mut rest, mut total) = (text, 0.0);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let value: f64 = rest[..digits].parse().ok()?;
        let unit_end = rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |end| digits + end);
        let unit = match &rest[digits..unit_end] {
            "ms" => 1.0,
            "s" => 1_000.0,
            "m" => 60_000.0,
            "h" => 3_600_000.0,
            _ => return None,
        };
        total += value * unit;
        rest = &rest[unit_end..];
    }
    (!text.is_empty()).then_some(total.ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_read_from_words() {
        assert_eq!(asked_in_words_ms("Limit 3. Please try again in 1.5s. Visit us."), Some(1_500));
        assert_eq!(asked_in_words_ms("Try again in 20ms."), Some(20));
        assert_eq!(asked_in_words_ms("größer: try again in 6m0s"), Some(360_000));
        for nothing in ["try again in a while", "try again in", "try again later", "try again in 5"] {
            assert_eq!(asked_in_words_ms(nothing), None, "{nothing}");
        }
    }
}
