//! The transport: HTTP clients, which addresses may be called, bounded bodies.

pub mod address;
pub mod body;
mod resolver;

use std::time::Duration;

use reqwest::redirect::Policy;
use url::{Host, Url};

use crate::call::{CallError, Class};
use resolver::{PublicOnly, Refused};

const CONNECT_MS: u64 = 10_000;
/// Redirects followed when reading a document.
const REDIRECTS_MAX: usize = 5;

/// The clients. Model endpoints are the operator's choice and may be anywhere; addresses that
/// users bring are checked.
#[derive(Debug, Clone)]
pub struct Net {
    /// For configured endpoints.
    pub models: reqwest::Client,
    /// For step functions: never follows a redirect.
    pub steps: reqwest::Client,
    /// For documents: follows a few redirects.
    pub pages: reqwest::Client,
    allow_private: bool,
}

impl Net {
    /// # Errors
    /// When the TLS set-up of the machine is unusable.
    pub fn new(allow_private: bool) -> Result<Self, String> {
        let base = || {
            reqwest::Client::builder()
                .connect_timeout(Duration::from_millis(CONNECT_MS))
                .user_agent(concat!("stepfleet/", env!("CARGO_PKG_VERSION")))
        };
        // A proxy would make the connection for us, past every check.
        let checked = || {
            let builder = base().no_proxy();
            if allow_private { builder } else { builder.dns_resolver(std::sync::Arc::new(PublicOnly)) }
        };
        let redirects = Policy::custom(move |attempt| {
            if attempt.previous().len() > REDIRECTS_MAX {
                return attempt.error("too many redirects");
            }
            match check(attempt.url(), allow_private) {
                Ok(()) => attempt.follow(),
                Err(refused) => attempt.error(Refused(refused)),
            }
        });
        let build = |builder: reqwest::ClientBuilder| builder.build().map_err(|error| format!("http client: {error}"));
        Ok(Self {
            models: build(base().redirect(Policy::none()))?,
            steps: build(checked().redirect(Policy::none()))?,
            pages: build(checked().redirect(redirects))?,
            allow_private,
        })
    }

    /// Reads and checks an address that a user brought.
    ///
    /// # Errors
    /// What is wrong with it, or why it is not called.
    pub fn address(&self, text: &str) -> Result<Url, CallError> {
        let wrong = |problem: String| CallError::new(Class::Forbidden, problem);
        let url = Url::parse(text).map_err(|error| wrong(format!("{text:?} is no address: {error}")))?;
        check(&url, self.allow_private).map_err(wrong)?;
        Ok(url)
    }
}

/// Names are resolved, and their addresses checked, when the connection is made; literal
/// addresses never pass the resolver and are checked here.
fn check(url: &Url, allow_private: bool) -> Result<(), String> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("{}: only http and https addresses are called", url.scheme()));
    }
    let ip = match url.host() {
        None => return Err("the address has no host".to_owned()),
        Some(Host::Domain(_)) => return Ok(()),
        Some(Host::Ipv4(ip)) => ip.into(),
        Some(Host::Ipv6(ip)) => ip.into(),
    };
    if allow_private || address::is_public(ip) { Ok(()) } else { Err(address::refusal(&ip.to_string())) }
}

/// An address for messages: no user, no password, no query.
pub fn shown(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}{}", url.scheme(), url.host_str().unwrap_or(""), url.path())
}

/// What went wrong on the way, with its class. The message never holds the URL: it may hold a key.
pub fn classify(error: reqwest::Error, place: &str) -> CallError {
    let error = error.without_url();
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    let mut last = String::new();
    while let Some(inner) = cause {
        if let Some(refused) = inner.downcast_ref::<Refused>() {
            return CallError::new(Class::Forbidden, format!("{place}: {}", refused.0));
        }
        last = inner.to_string();
        cause = inner.source();
    }
    let (class, what) = if error.is_timeout() {
        (Class::Timeout, "no answer in time")
    } else if error.is_connect() {
        (Class::Network, "no connection")
    } else if error.is_redirect() {
        (Class::Invalid, "too many redirects")
    } else if error.is_body() || error.is_decode() {
        (Class::Cut, "the answer broke off")
    } else if error.is_builder() {
        (Class::Invalid, "the request cannot be built")
    } else {
        (Class::Network, "the connection broke")
    };
    let call = CallError::new(class, format!("{place}: {what} ({last})"));
    if error.is_connect() || error.is_builder() { call.not_sent() } else { call }
}

/// Milliseconds of a `retry-after-ms` or `retry-after` header in seconds (RFC 9110, 10.2.3); dates
/// are not read.
pub fn retry_after_ms(headers: &reqwest::header::HeaderMap) -> Option<u64> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let ms = number("retry-after-ms").or_else(|| number("retry-after").map(|seconds| seconds * 1_000.0))?;
    (ms.is_finite() && ms >= 0.0).then_some(ms.ceil() as u64)
}
