//! `mock`: answers what it is told to, for tests and first steps. The same call is answered alike.

use std::time::Duration;

use domain::chat::{ToolError, ToolErrorCode};
use domain::ports::{ActionCall, ActionFailure, Trouble};
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Debug, Deserialize)]
struct Settings {
    /// The answer; the input itself if neither this nor a schema is given.
    #[serde(default)]
    output: Option<Value>,
    /// The answer is made up to fit it.
    #[serde(default)]
    schema: Option<Map<String, Value>>,
    #[serde(default)]
    seed: Option<u64>,
    #[serde(default)]
    delay_ms: Delay,
    #[serde(default)]
    error: Option<Forced>,
}

#[derive(Debug, Default, Deserialize)]
struct Delay {
    #[serde(default)]
    min: u64,
    #[serde(default)]
    max: Option<u64>,
}

/// A failure instead of an answer.
#[derive(Debug, Deserialize)]
struct Forced {
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    message: Option<String>,
    /// Of the infrastructure: tried again.
    #[serde(default)]
    retryable: bool,
}

pub async fn run(call: &ActionCall) -> Result<Value, ActionFailure> {
    let settings: Settings = super::settings(call)?;
    let seed = settings.seed.unwrap_or_else(|| seed_of(call.operation_id.as_str()));
    let mut random = Random(seed);
    let spread = settings.delay_ms.max.unwrap_or(settings.delay_ms.min).saturating_sub(settings.delay_ms.min);
    let delay = settings.delay_ms.min + random.below(spread.saturating_add(1));
    if delay > 0 {
        tokio::time::sleep(Duration::from_millis(delay)).await;
    }
    if let Some(forced) = settings.error {
        return Err(forced.failure());
    }
    Ok(match (settings.output, settings.schema) {
        (Some(output), _) => output,
        (None, Some(schema)) => made(&schema, &mut random),
        (None, None) => call.request.input.clone(),
    })
}

impl Forced {
    fn failure(self) -> ActionFailure {
        let word = self.code.unwrap_or_default().to_ascii_lowercase();
        let message = self.message.unwrap_or_else(|| "the mock fails, as it is told to".to_owned());
        let troubles = [Trouble::Network, Trouble::Timeout, Trouble::RateLimit, Trouble::ServerError];
        let named = troubles.into_iter().find(|trouble| trouble.as_str() == word);
        if let Some(trouble) = named.or(self.retryable.then_some(Trouble::ServerError)) {
            return ActionFailure::trouble(trouble, message, false);
        }
        let code = serde_json::from_value(word.to_ascii_uppercase().into()).unwrap_or(ToolErrorCode::ExecutionFailed);
        let error = ToolError { code, message, retriable: false };
        ActionFailure { error, trouble: None, may_have_happened: false, reported: false, retry_after_ms: None }
    }
}

fn seed_of(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// SplitMix64: a few numbers that look like chance and are the same for the same seed.
struct Random(u64);

impl Random {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Less than `bound`; 0 for a bound of 0.
    fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.number() % bound }
    }
}

/// A value that fits a schema, as far as schemas without patterns and multiples go.
fn made(schema: &Map<String, Value>, random: &mut Random) -> Value {
    if let Some(wanted) = schema.get("const") {
        return wanted.clone();
    }
    if let Some(Value::Array(allowed)) = schema.get("enum") {
        let at = random.below(allowed.len() as u64) as usize;
        return allowed.get(at).cloned().unwrap_or(Value::Null);
    }
    if let Some(default) = schema.get("default") {
        return default.clone();
    }
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str).unwrap_or("null"),
        _ if schema.contains_key("properties") => "object",
        _ if schema.contains_key("items") => "array",
        _ => "string",
    };
    match kind {
        "string" => text(schema, random).into(),
        "integer" => {
            let (low, high) = range(schema);
            let (low, high) = (low.ceil() as i64, high.floor() as i64);
            let span = high.saturating_sub(low).saturating_add(1).max(1);
            (low + random.below(span as u64) as i64).into()
        }
        "number" => {
            let (low, high) = range(schema);
            let part = random.below(1_000) as f64 / 1_000.0;
            (low + (high - low) * part).into()
        }
        "boolean" => (random.below(2) == 1).into(),
        "array" => items(schema, random),
        "object" => members(schema, random),
        _ => Value::Null,
    }
}

fn range(schema: &Map<String, Value>) -> (f64, f64) {
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let low = bound("minimum").or(bound("exclusiveMinimum").map(|low| low + 1.0));
    let high = bound("maximum").or(bound("exclusiveMaximum").map(|high| high - 1.0));
    match (low, high) {
        (Some(low), Some(high)) => (low, high.max(low)),
        (Some(low), None) => (low, low + 100.0),
        (None, Some(high)) => (high - 100.0, high),
        (None, None) => (0.0, 100.0),
    }
}

fn text(schema: &Map<String, Value>, random: &mut Random) -> String {
    let number = |name: &str| schema.get(name).and_then(Value::as_u64).map(|n| n.min(100_000) as usize);
    if schema.get("format").and_then(Value::as_str) == Some("date-time") {
        return "2026-01-01T00:00:00Z".to_owned();
    }
    let mut text = format!("text-{}", random.below(10_000));
    let min = number("minLength").unwrap_or(0);
    while text.len() < min {
        text.push('x');
    }
    text.truncate(number("maxLength").unwrap_or(usize::MAX));
    text
}

fn items(schema: &Map<String, Value>, random: &mut Random) -> Value {
    let number = |name: &str| schema.get(name).and_then(Value::as_u64).map(|n| n.min(1_000));
    let min = number("minItems").unwrap_or(1);
    let max = number("maxItems").unwrap_or(min.max(3)).max(min);
    let count = min + random.below(max - min + 1);
    let Some(Value::Object(each)) = schema.get("items") else {
        return (0..count).map(Value::from).collect();
    };
    (0..count).map(|_| made(each, random)).collect()
}

fn members(schema: &Map<String, Value>, random: &mut Random) -> Value {
    let Some(Value::Object(properties)) = schema.get("properties") else { return Value::Object(Map::new()) };
    let each = properties.iter().filter_map(|(name, schema)| Some((name.clone(), made(schema.as_object()?, random))));
    Value::Object(each.collect())
}
