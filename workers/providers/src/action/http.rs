//! `http`: one request with a templated address, headers and body. An answer with an error status of
//! the server is infrastructure, any other error status is business (SPEC 4.3).

use std::collections::BTreeMap;
use std::time::Duration;

use domain::chat::ToolErrorCode;
use domain::ports::{ActionCall, ActionFailure, Probe};
use domain::template::Escape;
use domain::tool::default_method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response};
use schemas::limits::TOOL_ANSWER_BYTES_MAX;
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use super::template;
use super::variables::{Sent, Variables};
use crate::call::{CallError, Class};
use crate::clock;
use crate::http::{KEY_HEADER, SESSION_HEADER};
use crate::net::{self, Net, body};

#[derive(Debug, Deserialize)]
struct Settings {
    url: String,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// From header to the variable that has its value.
    #[serde(default)]
    headers_env: BTreeMap<String, String>,
    #[serde(default)]
    body: Option<Value>,
    /// Hosts that may be called; the one that is written in `url` if absent.
    #[serde(default)]
    allow_hosts: Option<Vec<String>>,
    /// Address that tells whether an attempt happened: it did if it is found.
    #[serde(default)]
    probe: Option<String>,
}

/// What connections are about is ours to say.
const RESERVED: [&str; 5] = ["host", "content-length", "transfer-encoding", "connection", "upgrade"];

pub async fn run(net: &Net, variables: &Variables, call: &ActionCall) -> Result<Value, ActionFailure> {
    let settings: Settings = super::settings(call)?;
    let mut seen = template::context(call);
    let key = template::key(call, &seen)?;
    seen["key"] = key.clone().into();
    let url = address(net, &settings.url, &settings, &seen)?;
    let payload = payload(settings.body.as_ref(), &seen)?;
    let method = method(&settings, payload.is_some())?;
    let mut headers = headers(&settings, &seen, call, &key, payload.as_ref())?;
    let sent = variables.add(&settings.headers_env, &url, net.allows_private(), &mut headers)?;
    let place = net::shown(&url);
    let mut request = net.steps.request(method, url).headers(headers);
    if let Some((_, bytes)) = payload {
        request = request.body(bytes);
    }
    let request = request.timeout(Duration::from_millis(call.timeout_ms.max(1)));
    let response = request.send().await.map_err(|error| super::failure(net::classify(error, &place)))?;
    answer(response, &place, &sent).await
}

/// Asks the address of `probe`: what is found happened, what is not did not.
pub async fn probe(net: &Net, variables: &Variables, call: &ActionCall) -> Probe {
    try_probe(net, variables, call).await.unwrap_or(Probe::Unknown)
}

async fn try_probe(net: &Net, variables: &Variables, call: &ActionCall) -> Option<Probe> {
    let settings: Settings = super::settings(call).ok()?;
    let mut seen = template::context(call);
    let key = template::key(call, &seen).ok()?;
    seen["key"] = key.clone().into();
    let url = address(net, settings.probe.as_ref()?, &settings, &seen).ok()?;
    let mut headers = headers(&settings, &seen, call, &key, None).ok()?;
    let sent = variables.add(&settings.headers_env, &url, net.allows_private(), &mut headers).ok()?;
    let place = net::shown(&url);
    let request = net.steps.get(url).headers(headers).timeout(Duration::from_millis(call.timeout_ms.max(1)));
    let response = request.send().await.ok()?;
    match response.status().as_u16() {
        404 => Some(Probe::DidNotHappen),
        200..=299 => answer(response, &place, &sent).await.ok().map(Probe::Happened),
        _ => None,
    }
}

/// The address, which must lead where the definition says.
fn address(net: &Net, text: &str, settings: &Settings, seen: &Value) -> Result<Url, ActionFailure> {
    let rendered = template::text(text, seen, Escape::Url, "url")?;
    let url = net.address(&rendered).map_err(super::failure)?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused(format!("{} has a user name in it, which is not sent", net::shown(&url))));
    }
    let host = url.host_str().unwrap_or_default();
    let allowed = match (&settings.allow_hosts, authority(text)) {
        (Some(list), _) => list.iter().any(|pattern| is_allowed(pattern, host)),
        (None, Some(written)) => {
            Url::parse(&format!("http://{written}/")).is_ok_and(|own| own.host_str() == Some(host))
        }
        (None, None) => false,
    };
    if allowed {
        return Ok(url);
    }
    Err(refused(format!("{host} is not among the hosts that this action may call; add it to allow_hosts")))
}

fn refused(message: String) -> ActionFailure {
    ActionFailure { may_have_happened: false, ..ActionFailure::business(ToolErrorCode::PermissionDenied, message) }
}

/// Host and port as they are written; `None` if the input has a say in them.
fn authority(template: &str) -> Option<&str> {
    let (_, rest) = template.split_once("://")?;
    // An address that begins with a place may be anything.
    let begins = !template.trim_start().starts_with("{{");
    let written = rest.split(['/', '?', '#']).next()?;
    (begins && !written.contains("{{")).then_some(written)
}

pub(super) fn is_allowed(pattern: &str, host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let pattern = pattern.to_ascii_lowercase();
    match pattern.strip_prefix("*.") {
        Some(above) => host.strip_suffix(above).is_some_and(|below| below.len() > 1 && below.ends_with('.')),
        None => host == pattern,
    }
}

fn method(settings: &Settings, has_body: bool) -> Result<Method, ActionFailure> {
    match settings.method.as_deref().unwrap_or_else(|| default_method(has_body)) {
        "GET" => Ok(Method::GET),
        "POST" => Ok(Method::POST),
        "PUT" => Ok(Method::PUT),
        "DELETE" => Ok(Method::DELETE),
        other => Err(ActionFailure::invalid(format!("method {other}: use GET, POST, PUT or DELETE"))),
    }
}

/// Type and bytes. A text that looks like JSON has its values escaped for it.
fn payload(body: Option<&Value>, seen: &Value) -> Result<Option<(&'static str, Vec<u8>)>, ActionFailure> {
    Ok(match body {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => {
            let is_json = text.trim_start().starts_with(['{', '[']) && !text.trim_start().starts_with("{{");
            let (kind, escape) = if is_json {
                ("application/json", Escape::Json)
            } else {
                ("text/plain; charset=utf-8", Escape::Nothing)
            };
            Some((kind, template::text(text, seen, escape, "body")?.into_bytes()))
        }
        Some(value) => {
            let value = template::json_of(value, seen, "body")?;
            Some(("application/json", value.to_string().into_bytes()))
        }
    })
}

fn headers(
    settings: &Settings,
    seen: &Value,
    call: &ActionCall,
    key: &str,
    payload: Option<&(&'static str, Vec<u8>)>,
) -> Result<HeaderMap, ActionFailure> {
    let mut headers = HeaderMap::new();
    let value = |name: &str, text: &str| {
        HeaderValue::from_str(text).map_err(|_| {
            ActionFailure::invalid(format!("headers.{name}: the value has characters that headers cannot"))
        })
    };
    headers.insert(HeaderName::from_static("idempotency-key"), value(KEY_HEADER, key)?);
    headers.insert(HeaderName::from_static("x-stepfleet-session"), value(SESSION_HEADER, call.session_id.as_str())?);
    if let Some((kind, _)) = payload {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    for (name, text) in &settings.headers {
        let known = header_name("headers", name)?;
        headers.insert(known, value(name, &template::text(text, seen, Escape::Nothing, name)?)?);
    }
    Ok(headers)
}

/// A header that settings may set; `field` is where they do.
pub(super) fn header_name(field: &str, name: &str) -> Result<HeaderName, ActionFailure> {
    let lower = name.to_ascii_lowercase();
    if RESERVED.contains(&lower.as_str()) {
        return Err(ActionFailure::invalid(format!("{field}.{name}: this header is not yours to set")));
    }
    HeaderName::from_bytes(lower.as_bytes())
        .map_err(|_| ActionFailure::invalid(format!("{field}.{name}: is no name of a header")))
}

/// `{status, body}`: JSON as it is, anything else as text. What was `sent` for a variable is in neither.
async fn answer(response: Response, place: &str, sent: &Sent) -> Result<Value, ActionFailure> {
    let status = response.status();
    let asked = net::retry_after_ms(response.headers(), clock::now_ms());
    let bytes = body::read(response, TOOL_ANSWER_BYTES_MAX, place).await.map_err(super::failure)?;
    if status.is_redirection() {
        let message = format!("{place}: answered with a redirect (status {status}); give the final address");
        return Err(ActionFailure::business(ToolErrorCode::ExecutionFailed, message));
    }
    if status.is_success() {
        let text = String::from_utf8_lossy(&bytes);
        let body: Value = serde_json::from_str(&text).unwrap_or_else(|_| text.into_owned().into());
        return Ok(json!({"status": status.as_u16(), "body": sent.redact_all(body)}));
    }
    // Before it is cut, which could leave a part of a value.
    let said = sent.redact_body(&bytes);
    let message = format!("{place}: answered with status {status}: {}", body::beginning(said.as_bytes()));
    let class = match status.as_u16() {
        429 => Class::RateLimit,
        408 | 425 | 500.. => Class::Overloaded,
        _ => Class::Invalid,
    };
    let failed = super::failure(CallError::new(class, message).retry_after(asked));
    // Gateways answer for a target that they have lost, with 502, 504, and as often with 503 or numbers of their own:
    // they do not know what came of the call. A 503 that says when to come again is the target's (RFC 9110, 15.6.4).
    let is_reported = match status.as_u16() {
        408 => false,
        503 => asked.is_some(),
        code => code <= 500,
    };
    let failed = ActionFailure { reported: is_reported, ..failed };
    Err(match status.as_u16() {
        401 | 403 => code(failed, ToolErrorCode::PermissionDenied),
        404 | 410 => code(failed, ToolErrorCode::NotFound),
        400 | 422 => code(failed, ToolErrorCode::InvalidInput),
        _ => failed,
    })
}

fn code(mut failure: ActionFailure, code: ToolErrorCode) -> ActionFailure {
    failure.error.code = code;
    failure
}
