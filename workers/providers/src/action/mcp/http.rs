//! A server over streamable HTTP: every message is a POST, whose answer is JSON or an event stream.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures::StreamExt;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use schemas::limits::TOOL_ANSWER_BYTES_MAX;
use serde_json::{Value, json};
use url::Url;

use super::McpError;
use super::message::{self, Incoming, PROTOCOL};
use crate::call::{CallError, Class};
use crate::config::Secret;
use crate::net::{self, body};
use crate::sse;

const SESSION: &str = "mcp-session-id";
/// Of an error answer, this much is looked at: far more than is told, so that no part of a token at its end is.
const ERROR_BYTES_MAX: usize = 1 << 20;

pub struct HttpLink {
    client: Client,
    url: Url,
    token: Option<Secret>,
    session: Option<String>,
    /// The version that the server answered with.
    protocol: String,
    next: AtomicU64,
    alive: AtomicBool,
}

impl HttpLink {
    pub async fn open(client: Client, url: &str, token_env: Option<&str>) -> Result<Self, McpError> {
        let url = Url::parse(url).map_err(|error| McpError::Invalid(format!("{url:?} is no address: {error}")))?;
        let token = match token_env {
            None => None,
            Some(name) => match std::env::var(name).ok().as_deref().and_then(Secret::new) {
                Some(token) => Some(token),
                None => return Err(McpError::Invalid(format!("the variable {name} is not set; it holds the token"))),
            },
        };
        let (next, alive) = (AtomicU64::new(1), AtomicBool::new(true));
        let mut link = Self { client, url, token, session: None, protocol: PROTOCOL.to_owned(), next, alive };
        let (result, session) = link.exchange("initialize", &message::initialize()).await?;
        link.session = session;
        if let Some(version) = result.get("protocolVersion").and_then(Value::as_str) {
            version.clone_into(&mut link.protocol);
        }
        let ready = message::notification("notifications/initialized", &json!({}));
        link.post(&ready).send().await.map_err(|error| link.broken(error))?;
        Ok(link)
    }

    pub fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }

    pub async fn request(&self, method: &str, parameters: &Value) -> Result<Value, McpError> {
        self.exchange(method, parameters).await.map(|(result, _)| result)
    }

    /// The result, and the session that the server opened with it.
    async fn exchange(&self, method: &str, parameters: &Value) -> Result<(Value, Option<String>), McpError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let request = self.post(&message::request(id, method, parameters));
        let response = request.send().await.map_err(|error| self.broken(error))?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && self.session.is_some() {
            self.alive.store(false, Ordering::Release);
            return Err(McpError::broken("it does not know our session any more", false));
        }
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let (session, kind) = (header(SESSION), header(CONTENT_TYPE.as_str()).unwrap_or_default());
        if !status.is_success() {
            return Err(self.refusal(response).await);
        }
        let result = if kind.starts_with("text/event-stream") {
            self.stream(response, id).await?
        } else {
            let place = net::shown(&self.url);
            let bytes = body::read(response, TOOL_ANSWER_BYTES_MAX, &place).await.map_err(told)?;
            let value: Value = serde_json::from_slice(&bytes)
                .map_err(|error| McpError::broken(format!("its answer is not JSON: {error}"), true))?;
            match message::read(&value) {
                Incoming::Response { id: answered, result } if answered == id => result?,
                _ => return Err(McpError::broken("it answered something else than was asked", true)),
            }
        };
        Ok((result, session))
    }

    async fn refusal(&self, response: Response) -> McpError {
        let status = response.status();
        let place = net::shown(&self.url);
        let read = body::read_up_to(response, ERROR_BYTES_MAX, &place).await;
        let begins = beginning(&read.map(|(bytes, _)| bytes).unwrap_or_default(), self.token.as_ref());
        let message = format!("{place}: answered with status {status}: {begins}");
        match status.as_u16() {
            408 | 425 | 500.. => McpError::broken(message, true),
            429 => McpError::broken(message, false),
            code => McpError::Refused { code: i64::from(code), message },
        }
    }

    /// Reads events until the one that answers the request.
    async fn stream(&self, response: Response, id: u64) -> Result<Value, McpError> {
        let (mut reader, mut events) = (sse::Reader::default(), Vec::new());
        let (mut bytes, mut taken) = (response.bytes_stream(), 0);
        while let Some(chunk) = bytes.next().await {
            let chunk = chunk.map_err(|error| self.broken(error))?;
            taken += chunk.len();
            if taken > TOOL_ANSWER_BYTES_MAX || reader.feed(&chunk, &mut events).is_err() {
                return Err(McpError::broken(format!("it sent more than {TOOL_ANSWER_BYTES_MAX} bytes"), true));
            }
            for event in events.drain(..) {
                let Ok(value) = serde_json::from_str::<Value>(&event.data) else { continue };
                match message::read(&value) {
                    Incoming::Response { id: answered, result } if answered == id => return result,
                    Incoming::Request { id, method } => {
                        self.post(&message::reply(&id, &method)).send().await.map_err(|error| self.broken(error))?;
                    }
                    Incoming::Response { .. } | Incoming::Other => {}
                }
            }
        }
        Err(McpError::broken("its stream ended without an answer", true))
    }

    fn post(&self, message: &Value) -> RequestBuilder {
        self.marked(self.client.post(self.url.clone()))
            .header(ACCEPT, "application/json, text/event-stream")
            .json(message)
    }

    fn marked(&self, mut request: RequestBuilder) -> RequestBuilder {
        request = request.header("mcp-protocol-version", &self.protocol);
        if let Some(session) = &self.session {
            request = request.header(SESSION, session);
        }
        if let Some(token) = &self.token {
            request = request.bearer_auth(token.expose());
        }
        request
    }

    fn broken(&self, error: reqwest::Error) -> McpError {
        told(net::classify(error, &net::shown(&self.url)))
    }
}

/// The start of an error answer, which may repeat the token. Taken out before anything is cut: half a token is a
/// secret, too.
fn beginning(bytes: &[u8], token: Option<&Secret>) -> String {
    let mut text = String::from_utf8_lossy(bytes).into_owned();
    if let Some(token) = token {
        text = token.redact(&text);
    }
    body::beginning(text.as_bytes())
}

fn told(error: CallError) -> McpError {
    match error.class {
        Class::Forbidden | Class::Invalid => McpError::Invalid(error.message),
        _ => McpError::broken(error.message, error.sent),
    }
}

impl Drop for HttpLink {
    fn drop(&mut self) {
        // The server may forget the session at once; if it cannot be told, it forgets it by itself.
        if self.session.is_some()
            && self.is_alive()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let request = self.marked(self.client.delete(self.url.clone()));
            runtime.spawn(async move {
                if let Err(error) = request.timeout(std::time::Duration::from_secs(5)).send().await {
                    tracing::debug!(error = %error.without_url(), "an MCP session was not given back");
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_token_is_left_where_an_error_answer_is_cut() {
        let token = Secret::new("tok-0123456789").expect("a token");
        // Of 200 characters in a row, and of 600 bytes.
        for before in ["x".repeat(195), " ".repeat(595)] {
            let told = beginning(format!("{before}{} is wrong", token.expose()).as_bytes(), Some(&token));
            assert!(told.ends_with("[key]"), "{told}");
        }
        assert_eq!(beginning(b"not\n now", None), "not now");
    }
}
