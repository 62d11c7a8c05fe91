//! A client of the HTTP API, for the operator's commands.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use schemas::problem::Problem;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cli::Target;
use crate::datadir_files::{ADDRESS_FILE, TOKEN_FILE};

/// A request that the fleet refused, with what it said.
#[derive(Debug)]
pub struct Refusal(pub Problem);

impl std::error::Error for Refusal {}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&told(&self.0))
    }
}

/// Speaks to one fleet with one token.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    token: String,
}

impl Client {
    /// Address and token as given, else as `up` left them in the data directory.
    ///
    /// # Errors
    /// No token is given and none is found.
    pub fn find(target: &Target) -> Result<Self> {
        let base = match &target.url {
            Some(url) => url.clone(),
            None => read(&target.data_dir, ADDRESS_FILE).unwrap_or_else(|_| "http://127.0.0.1:7070".into()),
        };
        let token = match &target.token {
            Some(token) => token.clone(),
            None => read(&target.data_dir, TOKEN_FILE).context(
                "no token: start a fleet with `stepfleet up`, name its directory with --data-dir, or give --token or \
                 STEPFLEET_TOKEN",
            )?,
        };
        let http = reqwest::Client::builder().no_proxy().build().context("the HTTP client")?;
        Ok(Self { http, base: base.trim_end_matches('/').to_owned(), token })
    }

    /// A client of a known address.
    pub fn new(base: &str, token: &str) -> Result<Self> {
        let http = reqwest::Client::builder().no_proxy().build().context("the HTTP client")?;
        Ok(Self { http, base: base.to_owned(), token: token.to_owned() })
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, String)]) -> Result<T> {
        self.answer(self.request(Method::GET, path).query(query)).await
    }

    pub async fn post<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T> {
        self.answer(self.request(Method::POST, path).json(body)).await
    }

    /// The same under a key, if there is one: sending it again with that key changes nothing.
    pub async fn post_under<T: DeserializeOwned>(&self, path: &str, key: Option<&str>, body: &Value) -> Result<T> {
        let mut request = self.request(Method::POST, path).json(body);
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        self.answer(request).await
    }

    pub async fn patch<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T> {
        self.answer(self.request(Method::PATCH, path).json(body)).await
    }

    pub async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.answer(self.request(Method::DELETE, path)).await
    }

    /// The same with an answer that is read piece by piece.
    pub async fn post_long(&self, path: &str, body: &Value) -> Result<Response> {
        self.checked(self.request(Method::POST, path).json(body)).await
    }

    /// An answer whose body is read piece by piece.
    pub async fn stream(&self, path: &str, last_event: u64) -> Result<Response> {
        let request =
            self.request(Method::GET, path).header("last-event-id", last_event).header("accept", "text/event-stream");
        self.checked(request).await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base)).bearer_auth(&self.token)
    }

    async fn answer<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T> {
        let response = self.checked(request).await?;
        let body = response.bytes().await.context("the answer broke off")?;
        serde_json::from_slice(&body).context("the answer is not what this version expects")
    }

    async fn checked(&self, request: RequestBuilder) -> Result<Response> {
        let response = request.send().await.map_err(|error| self.unreachable(error))?;
        let status = response.status();
        let kind = response.headers().get("content-type");
        // A degraded fleet answers /health with 503 and a body worth showing; one that starts, with a problem.
        let is_health = response.url().path() == "/health" && kind.is_some_and(|kind| kind == "application/json");
        if status.is_success() || (status == StatusCode::SERVICE_UNAVAILABLE && is_health) {
            return Ok(response);
        }
        let body = response.bytes().await.unwrap_or_default();
        match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) => Err(Refusal(problem).into()),
            Err(_) => bail!("{} answered {status}: {}", self.base, String::from_utf8_lossy(&body)),
        }
    }

    fn unreachable(&self, error: reqwest::Error) -> anyhow::Error {
        if error.is_connect() {
            anyhow!("no fleet answers at {}; start one with `stepfleet up`, or name it with --url", self.base)
        } else {
            anyhow!(error.without_url()).context(format!("{} does not answer", self.base))
        }
    }
}

/// A problem document in words, field by field where it names fields.
fn told(problem: &Problem) -> String {
    let mut text = format!("{} ({})", problem.title, problem.code.as_str());
    if problem.errors.is_empty() {
        text.push_str(&format!(": {}", problem.detail));
    }
    for error in &problem.errors {
        text.push_str(&format!("\n  {}: {}", error.field, error.message));
    }
    text
}

fn read(data_dir: &Path, file: &str) -> Result<String> {
    let path = data_dir.join(file);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use schemas::problem::{Code, FieldProblem};

    use super::*;

    #[test]
    fn a_problem_is_told_with_its_fields() {
        let plain = Problem::new(Code::SessionEnded, "session s1 is stopped");
        assert_eq!(told(&plain), "The session has ended (session_ended): session s1 is stopped");
        let fields = Problem::fields(Code::InvalidRequest, vec![FieldProblem::new("payload.moniker", "is missing")]);
        assert_eq!(told(&fields), "The request is not valid (invalid_request)\n  payload.moniker: is missing");
    }
}
