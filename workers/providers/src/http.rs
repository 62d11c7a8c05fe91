//! POSTs JSON to step functions of others and takes JSON back.

use std::time::Duration;

use domain::effect::{EffectCall, EffectClass, EffectFailure, Outcome};
use domain::retry::{HTTP, Schedule};
use schemas::json::is_too_deep;
use schemas::limits::{DATA_BYTES_MAX, EFFECT_MS_MAX, JSON_DEPTH_MAX, STATE_BYTES_MAX, TEXT_BYTES_MAX};
use schemas::problem::Code;
use serde_json::Value;

use crate::attempts;
use crate::call::{CallError, Class};
use crate::clock;
use crate::net::{self, Net, body};

/// A frame with everything at its limit, escaped.
const ANSWER_BYTES_MAX: usize = 2 * (STATE_BYTES_MAX + DATA_BYTES_MAX + TEXT_BYTES_MAX);

/// The same key for all attempts at one effect, also after a crash: the other side can tell a
/// repeat from a new call.
pub const KEY_HEADER: &str = "Idempotency-Key";
pub const SESSION_HEADER: &str = "X-Stepfleet-Session";

/// POSTs and reads the answer. Attempts follow the effect's class: at most once means that a
/// request that may have arrived is not sent again.
pub async fn post(
    net: &Net,
    call: &EffectCall,
    url: &str,
    request: &Value,
    timeout_ms: u64,
    class: EffectClass,
) -> Outcome {
    let schedule = Schedule { timeout_ms: timeout_ms.clamp(1, EFFECT_MS_MAX), ..HTTP };
    let repeat = |error: &CallError| class != EffectClass::AtMostOnce || !error.sent;
    match attempts::run(schedule, repeat, || send(net, call, url, request, schedule.timeout_ms)).await {
        Ok(answer) => Outcome::Ok(answer),
        Err((error, attempts)) => Outcome::Failed(failure(error, attempts, class)),
    }
}

async fn send(net: &Net, call: &EffectCall, url: &str, request: &Value, timeout_ms: u64) -> Result<Value, CallError> {
    let url = net.address(url)?;
    let place = net::shown(&url);
    let request = net
        .steps
        .post(url)
        .header(KEY_HEADER, call.key.as_str())
        .header(SESSION_HEADER, call.session.session_id.as_str())
        .timeout(Duration::from_millis(timeout_ms))
        .json(request);
    let response = request.send().await.map_err(|error| net::classify(error, &place))?;
    let status = response.status();
    let asked = net::retry_after_ms(response.headers(), clock::now_ms());
    let body = body::read(response, ANSWER_BYTES_MAX, &place).await?;
    if status.is_redirection() {
        let message = format!("{place}: answered with a redirect (status {status}); give the final address");
        return Err(CallError::new(Class::Invalid, message));
    }
    if !status.is_success() {
        let class = match status.as_u16() {
            429 => Class::RateLimit,
            408 | 425 | 500.. => Class::Overloaded,
            401 | 403 => Class::Auth,
            _ => Class::Invalid,
        };
        let message = format!("{place}: answered with status {status}: {}", body::beginning(&body));
        return Err(CallError::new(class, message).retry_after(asked));
    }
    let answer: Value = serde_json::from_slice(&body).map_err(|error| {
        let begins = body::beginning(&body);
        CallError::new(Class::Invalid, format!("{place}: the answer is not JSON: {error}; it begins with {begins:?}"))
    })?;
    if is_too_deep(&answer) {
        let what = format!("the answer is not JSON of at most {JSON_DEPTH_MAX} levels");
        return Err(CallError::new(Class::Invalid, format!("{place}: {what}; answer with flatter data")));
    }
    Ok(answer)
}

/// In doubt is only what must not be repeated; a status is an answer, and leaves no doubt.
fn failure(error: CallError, attempts: u32, class: EffectClass) -> EffectFailure {
    let silent = matches!(error.class, Class::Timeout | Class::Network | Class::Cut);
    let in_doubt = class == EffectClass::AtMostOnce && error.sent && silent;
    let code = match error.class {
        _ if in_doubt => Code::EffectInDoubt,
        // The only invalid answers with a good status are those that are no JSON.
        Class::Invalid if error.message.contains("the answer is not JSON") => Code::FrameInvalid,
        _ => Code::StepFailed,
    };
    let mut failure = error.into_failure(code, attempts);
    if in_doubt {
        failure.retriable = false;
        failure.message.push_str("; it may have taken effect and is not repeated");
    }
    failure
}

#[cfg(test)]
mod tests;
