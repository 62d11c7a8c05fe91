//! The embeddings API of OpenAI, and of the many servers that speak it: `POST {base}/embeddings`.

use std::sync::OnceLock;

use async_trait::async_trait;
use bytes::Bytes;
use domain::context::estimate_tokens;
use domain::failure::{Certainty, Failure};
use domain::ports::Embedder;
use domain::retry::MODEL;
use schemas::limits::{EMBEDDING_API_CHARS_MAX, EMBEDDING_BATCH_MAX, EMBEDDING_DIMENSIONS_MAX, EMBEDDING_TEXTS_MAX};
use schemas::problem::Code;
use schemas::telemetry::metric;
use serde_json::{Value, json};

use super::static_model::too_many;
use crate::call::{CallError, Class};
use crate::config::Endpoint;
use crate::model::Wire;
use crate::net::Net;
use crate::{attempts, exchange};

/// Characters of one request: the APIs bound the tokens of all its texts together.
const REQUEST_CHARS_MAX: usize = 200_000;

#[derive(Debug)]
pub struct ApiEmbedder {
    net: Net,
    endpoint: Endpoint,
    /// Fewer than the model's own, if the server is asked for that.
    dimensions: Option<u32>,
    /// As the first answer has it.
    found: OnceLock<usize>,
    name: String,
}

impl ApiEmbedder {
    pub fn new(net: Net, endpoint: Endpoint, dimensions: Option<u32>) -> Self {
        // The same model on two servers may be two revisions of it.
        let place = if endpoint.is_original() { String::new() } else { format!("@{}", endpoint.base_url) };
        let short = dimensions.map(|dimensions| format!(":{dimensions}")).unwrap_or_default();
        let name = format!("{}/{}{short}{place}", endpoint.vendor.as_str(), endpoint.model);
        Self { net, endpoint, dimensions, found: OnceLock::new(), name }
    }

    fn wire(&self, texts: &[&str]) -> Wire {
        let mut body = json!({ "model": self.endpoint.model, "input": texts, "encoding_format": "float" });
        if let Some(dimensions) = self.dimensions {
            body["dimensions"] = dimensions.into();
        }
        Wire {
            url: format!("{}/embeddings", self.endpoint.base_url),
            headers: Vec::new(),
            key_header: ("authorization", "Bearer "),
            body,
        }
    }

    async fn attempt(&self, wire: &Wire, body: Bytes, texts: &[&str]) -> Result<Vec<Vec<f32>>, CallError> {
        let response = exchange::send(&self.net, &self.endpoint, wire, body).await?;
        let status = response.status().as_u16();
        if !(200..300).contains(&status) {
            return Err(exchange::refused(&self.endpoint, status, response).await);
        }
        let answer = exchange::json(&self.endpoint, response).await?;
        // Whatever becomes of it: it is billed. Nothing else counts it (docs/definitions.md, budgets).
        let (tokens, counted) = tokens(&answer, texts);
        let model = self.name.clone();
        metrics::counter!(metric::EMBEDDING_TOKENS, "model" => model, "counted" => counted).increment(tokens);
        let vectors = read(&answer, texts.len()).map_err(|problem| self.unusable(&problem))?;
        let size = vectors.first().map_or(0, Vec::len);
        let known = *self.found.get_or_init(|| size);
        if known != size {
            return Err(self.unusable(&format!("its vectors have {size} numbers, and had {known} before")));
        }
        Ok(vectors)
    }

    fn unusable(&self, problem: &str) -> CallError {
        CallError::new(Class::Unknown, format!("{}: the embeddings cannot be used: {problem}", self.name))
    }

    /// Texts of one request.
    async fn request(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Failure> {
        let wire = self.wire(texts);
        let body = Bytes::from(wire.body.to_string());
        let attempt = || async {
            // Before anything is logged.
            let result = self.attempt(&wire, body.clone(), texts).await;
            result.map_err(|error| exchange::hide(error, &self.endpoint))
        };
        attempts::run(MODEL, |_| true, attempt).await.map_err(|(error, attempts)| self.failure(error, attempts))
    }

    /// A vector leaves no trace outside: what failed did not happen.
    fn failure(&self, error: CallError, attempts: u32) -> Failure {
        let told = error.into_failure(Code::ProviderFailed, attempts);
        let certainty = Certainty::DidNotHappen;
        Failure { code: told.code, certainty, retriable: told.retriable, message: told.message }
    }
}

#[async_trait]
impl Embedder for ApiEmbedder {
    fn model(&self) -> &str {
        &self.name
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Failure> {
        if texts.len() > EMBEDDING_TEXTS_MAX {
            return Err(too_many(texts.len()));
        }
        // Servers refuse blank texts: theirs are vectors of no numbers.
        let mut vectors = vec![Vec::new(); texts.len()];
        let asked: Vec<(usize, &str)> =
            texts.iter().map(|text| beginning(text)).enumerate().filter(|(_, text)| !text.trim().is_empty()).collect();
        for batch in batches(&asked) {
            let texts: Vec<&str> = batch.iter().map(|(_, text)| *text).collect();
            for ((at, _), vector) in batch.iter().zip(self.request(&texts).await?) {
                vectors[*at] = vector;
            }
        }
        Ok(vectors)
    }
}

/// As much of a text as any model of such an API takes.
fn beginning(text: &str) -> &str {
    text.char_indices().nth(EMBEDDING_API_CHARS_MAX).map_or(text, |(end, _)| &text[..end])
}

/// As few requests as the bounds allow.
fn batches<'t>(texts: &'t [(usize, &'t str)]) -> Vec<&'t [(usize, &'t str)]> {
    let (mut batches, mut start, mut chars) = (Vec::new(), 0, 0);
    for (at, (_, text)) in texts.iter().enumerate() {
        let more = text.chars().count();
        if at > start && (at - start >= EMBEDDING_BATCH_MAX || chars + more > REQUEST_CHARS_MAX) {
            batches.push(&texts[start..at]);
            (start, chars) = (at, 0);
        }
        chars += more;
    }
    if start < texts.len() {
        batches.push(&texts[start..]);
    }
    batches
}

/// What an answer says that its texts have, and where that is from; without a word of it, the estimate of all budgets.
pub(super) fn tokens(answer: &Value, texts: &[&str]) -> (u64, &'static str) {
    let usage = &answer["usage"];
    match usage["prompt_tokens"].as_u64().or_else(|| usage["total_tokens"].as_u64()) {
        Some(tokens) => (tokens, "told"),
        None => (texts.iter().map(|text| estimate_tokens(text)).sum(), "estimated"),
    }
}

/// The vectors of an answer, in the order of the texts.
fn read(answer: &Value, texts: usize) -> Result<Vec<Vec<f32>>, String> {
    let data = answer.get("data").and_then(Value::as_array).ok_or("there is no list \"data\"")?;
    let mut vectors = vec![Vec::new(); texts];
    for (place, item) in data.iter().enumerate() {
        // Servers that leave the index out keep the order.
        let index = item.get("index").and_then(Value::as_u64).map_or(place, |index| index as usize);
        let slot = vectors.get_mut(index).ok_or_else(|| format!("there are {texts} texts, and a vector {index}"))?;
        *slot = vector(item)?;
    }
    let size = vectors.first().map_or(0, Vec::len);
    match vectors.iter().position(|vector| vector.len() != size || vector.is_empty()) {
        None => Ok(vectors),
        Some(at) => Err(format!("vector {at} is missing or of another size than the first")),
    }
}

fn vector(item: &Value) -> Result<Vec<f32>, String> {
    let numbers = item.get("embedding").and_then(Value::as_array).ok_or("an embedding is no list of numbers")?;
    if numbers.len() > EMBEDDING_DIMENSIONS_MAX {
        return Err(format!("a vector has {} numbers; at most {EMBEDDING_DIMENSIONS_MAX} are taken", numbers.len()));
    }
    let number = |value: &Value| value.as_f64().map(|number| number as f32).filter(|number| number.is_finite());
    numbers.iter().map(|value| number(value).ok_or_else(|| format!("{value} is no number of a vector"))).collect()
}
