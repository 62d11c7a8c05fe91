//! A client of the fleet's HTTP API that knows several gateways.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::diary::now_ms;
use crate::seen::outage::Post;

/// Of one request. The gateway itself gives up after 30 s.
const REQUEST_MAX: Duration = Duration::from_secs(12);
/// Where actions are accepted: how that goes is measured.
const ACTIONS: &str = "/api/actions";
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(120);

pub struct Api {
    pub http: reqwest::Client,
    urls: Vec<String>,
    token: String,
    turn: AtomicUsize,
    posts: Mutex<Vec<Post>>,
}

/// An answer, read whole.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
}

impl Answer {
    /// Whether another try may bring another answer.
    pub fn is_passing(&self) -> bool {
        self.status == 429 || self.status >= 500
    }
}

impl Api {
    /// # Errors
    /// The HTTP client cannot be made.
    pub fn new(urls: Vec<String>, token: String) -> Result<Self> {
        let http = reqwest::Client::builder().no_proxy().connect_timeout(Duration::from_secs(2)).build()?;
        Ok(Self { http, urls, token, turn: AtomicUsize::new(0), posts: Mutex::default() })
    }

    /// Another gateway each time.
    pub fn any(&self) -> &str {
        self.of(self.turn.fetch_add(1, Ordering::Relaxed))
    }

    pub fn of(&self, number: usize) -> &str {
        self.urls.get(number % self.urls.len().max(1)).map_or("", String::as_str)
    }

    pub fn request(&self, method: reqwest::Method, url: String) -> reqwest::RequestBuilder {
        self.http.request(method, url).bearer_auth(&self.token)
    }

    /// One try at some gateway.
    ///
    /// # Errors
    /// There was no answer, or only half of one: what was asked may have happened.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Answer> {
        let request = self.request(reqwest::Method::POST, format!("{}{path}", self.any()));
        let (at_ms, started) = (now_ms(), Instant::now());
        let answer = answer(request.timeout(REQUEST_MAX).json(body)).await;
        // A gateway that is not there has accepted nothing, and refused nothing.
        let is_absent =
            |error: &anyhow::Error| error.downcast_ref().is_some_and(|error: &reqwest::Error| error.is_connect());
        if path == ACTIONS
            && !answer.as_ref().is_err_and(is_absent)
            && let Ok(mut posts) = self.posts.lock()
        {
            let (took_ms, status) = (started.elapsed().as_millis() as u64, answer.as_ref().map_or(0, |a| a.status));
            posts.push(Post { at_ms, took_ms, status });
        }
        answer
    }

    /// All tries to have an action accepted.
    pub fn posts(&self) -> Vec<Post> {
        self.posts.lock().map(|posts| posts.clone()).unwrap_or_default()
    }

    /// Tries until there is an answer that will not change by itself.
    ///
    /// # Errors
    /// There was none within the time.
    pub async fn post_until(&self, path: &str, body: &Value, patience: Duration) -> Result<Answer> {
        until(patience, path, || self.post(path, body)).await
    }

    /// As [`Api::post_until`], with another verb.
    ///
    /// # Errors
    /// There was none within the time.
    pub async fn patch_until(&self, path: &str, body: &Value, patience: Duration) -> Result<Answer> {
        until(patience, path, || {
            let request = self.request(reqwest::Method::PATCH, format!("{}{path}", self.any()));
            answer(request.timeout(REQUEST_MAX).json(body))
        })
        .await
    }

    /// Tries until there is an answer that will not change by itself.
    ///
    /// # Errors
    /// There was none within the time.
    pub async fn get(&self, path: &str, patience: Duration) -> Result<Answer> {
        until(patience, path, || {
            answer(self.request(reqwest::Method::GET, format!("{}{path}", self.any())).timeout(REQUEST_MAX))
        })
        .await
    }

    /// As [`Api::get`], for what is there for sure.
    ///
    /// # Errors
    /// There was no good answer within the time.
    pub async fn must_get(&self, path: &str, patience: Duration) -> Result<Value> {
        let answer = self.get(path, patience).await?;
        if answer.status != 200 {
            bail!("GET {path}: {} {}", answer.status, answer.body);
        }
        Ok(answer.body)
    }
}

async fn answer(request: reqwest::RequestBuilder) -> Result<Answer> {
    let response = request.send().await?;
    let status = response.status().as_u16();
    let text = response.text().await?;
    let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
    Ok(Answer { status, body })
}

async fn until<F>(patience: Duration, path: &str, mut attempt: impl FnMut() -> F) -> Result<Answer>
where
    F: Future<Output = Result<Answer>>,
{
    let started = Instant::now();
    loop {
        let last = match attempt().await {
            Ok(answer) if !answer.is_passing() => return Ok(answer),
            Ok(answer) => format!("{} {}", answer.status, answer.body),
            Err(error) => format!("{error:#}"),
        };
        if started.elapsed() > patience {
            return Err(anyhow::anyhow!(last)).with_context(|| format!("{path}: no answer within {patience:?}"));
        }
        tokio::time::sleep(PAUSE).await;
    }
}
