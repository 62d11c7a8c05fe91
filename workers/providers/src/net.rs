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

    /// Whether addresses that users bring may be private ones.
    pub fn allows_private(&self) -> bool {
        self.allow_private
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

/// How long the other side asks to wait: `retry-after-ms`, else `retry-after` in seconds or as a date
/// (RFC 9110, 10.2.3), measured from `now_ms`.
pub fn retry_after_ms(headers: &reqwest::header::HeaderMap, now_ms: i64) -> Option<u64> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let number = |name: &str| text(name)?.parse::<f64>().ok().filter(|ms| ms.is_finite() && *ms >= 0.0);
    let ms = number("retry-after-ms").or_else(|| number("retry-after").map(|seconds| seconds * 1_000.0));
    let date = || http_date_ms(text("retry-after")?).map(|at| u64::try_from(at - now_ms).unwrap_or(0));
    ms.map(|ms| ms.ceil() as u64).or_else(date)
}

/// A date as in `Sun, 06 Nov 1994 08:49:37 GMT`, the only form that may still be sent.
fn http_date_ms(text: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = text.split_once(", ")?.1.split(' ');
    let (day, month, year, time) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let month = 1 + MONTHS.iter().position(|name| *name == month)?;
    (words.next() == Some("GMT")).then_some(())?;
    domain::time::parse_rfc3339(&format!("{year}-{month:02}-{day}T{time}Z"))
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn waits_are_read_from_either_header_in_any_form() {
        let now = domain::time::parse_rfc3339("1994-11-06T08:49:37Z").expect("a time");
        let asked = |headers: &[(&'static str, &'static str)]| {
            let pair = |(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            retry_after_ms(&headers.iter().map(pair).collect::<HeaderMap>(), now)
        };
        assert_eq!(asked(&[]), None);
        assert_eq!(asked(&[("retry-after", "2")]), Some(2_000));
        assert_eq!(asked(&[("retry-after", "1.5")]), Some(1_500));
        assert_eq!(asked(&[("retry-after", "2"), ("retry-after-ms", "125.2")]), Some(126));
        assert_eq!(asked(&[("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT")]), Some(10_000));
        assert_eq!(asked(&[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")]), Some(0));
        for nonsense in ["-1", "NaN", "soon", "Sun, 99 Nov 1994 08:49:37 GMT", "Sun, 06 Now 1994 08:49:37 GMT"] {
            assert_eq!(asked(&[("retry-after", nonsense)]), None, "{nonsense}");
        }
    }
}
