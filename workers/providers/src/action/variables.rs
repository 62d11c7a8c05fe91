//! Headers whose values are variables of this process: definitions name them, and never have them. The operator says
//! which, and to which host each may go: without that, whoever writes a definition could have any of them sent to a
//! server of their own.

use std::collections::BTreeMap;

use domain::chat::ToolErrorCode;
use domain::ports::ActionFailure;
use domain::tool::HeaderVariable;
use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::Value;
use url::Url;

use super::http;
use crate::config::Secret;

/// A variable that headers may have, and a host that it may be sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpVariable {
    pub name: String,
    /// As in `api.example.org`, or `*.example.org` for all below.
    pub host: String,
}

/// What headers may be filled with.
#[derive(Debug, Clone)]
pub struct Variables {
    allowed: Vec<HttpVariable>,
    read: fn(&str) -> Option<String>,
}

/// The values that were sent, to be taken out of whatever comes back.
#[derive(Debug, Default)]
pub(super) struct Sent(Vec<Secret>);

impl Variables {
    /// Variables of this process, read when they are needed.
    pub fn of_process(allowed: Vec<HttpVariable>) -> Self {
        Self::read_by(allowed, |name| std::env::var(name).ok())
    }

    /// With a lookup that tests bring.
    pub(super) fn read_by(allowed: Vec<HttpVariable>, read: fn(&str) -> Option<String>) -> Self {
        Self { allowed, read }
    }

    /// Adds the headers of `headers_env`. What goes wrong is told without the values.
    pub(super) fn add(
        &self,
        wanted: &BTreeMap<String, String>,
        url: &Url,
        may_be_plain: bool,
        headers: &mut HeaderMap,
    ) -> Result<Sent, ActionFailure> {
        if !wanted.is_empty() && url.scheme() != "https" && !may_be_plain {
            return Err(refused("headers_env is sent over https alone; give an address that begins with https://"));
        }
        let mut sent = Sent::default();
        for (name, text) in wanted {
            let of_place = |why: String| ActionFailure::invalid(format!("headers_env.{name}: {why}"));
            let variable = HeaderVariable::parse(text).map_err(of_place)?;
            let secret = self.secret(variable.name, url)?;
            let value = match variable.scheme {
                Some(scheme) => HeaderValue::from_str(&format!("{scheme} {}", secret.expose())),
                None => HeaderValue::from_str(secret.expose()),
            };
            let mut value = value.map_err(|_| {
                of_place(format!("the value of {} has characters that headers cannot have", variable.name))
            })?;
            // Neither logged by the client, nor kept in the tables of a connection.
            value.set_sensitive(true);
            headers.insert(http::header_name("headers_env", name)?, value);
            sent.0.push(secret);
        }
        // One may be part of another.
        sent.0.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
        Ok(sent)
    }

    fn secret(&self, name: &str, url: &Url) -> Result<Secret, ActionFailure> {
        let host = url.host_str().unwrap_or_default();
        if !self.allowed.iter().any(|one| one.name == name && http::is_allowed(&one.host, host)) {
            return Err(refused(format!(
                "the variable {name} may not be sent to {host}: the operator of the executors allows that with \
                 {name}@{host} in http_env"
            )));
        }
        (self.read)(name).as_deref().and_then(Secret::new).ok_or_else(|| {
            refused(format!("the variable {name} is not set, or is empty, in the environment of this executor"))
        })
    }
}

fn refused(message: impl Into<String>) -> ActionFailure {
    ActionFailure { may_have_happened: false, ..ActionFailure::business(ToolErrorCode::PermissionDenied, message) }
}

impl Sent {
    /// A text of the other side, which may repeat what it was sent.
    pub fn redact(&self, text: String) -> String {
        self.0.iter().fold(text, |text, secret| secret.redact(&text))
    }

    /// A body as a text.
    pub fn redact_body(&self, bytes: &[u8]) -> String {
        match serde_json::from_slice::<Value>(bytes) {
            Ok(value) if !self.0.is_empty() => self.redact_all(value).to_string(),
            _ => self.redact(String::from_utf8_lossy(bytes).into_owned()),
        }
    }

    /// The same of the texts in JSON, which may be written with escapes.
    pub fn redact_all(&self, value: Value) -> Value {
        match value {
            _ if self.0.is_empty() => value,
            Value::String(text) => self.redact(text).into(),
            Value::Array(items) => items.into_iter().map(|item| self.redact_all(item)).collect(),
            Value::Object(map) => {
                map.into_iter().map(|(name, value)| (self.redact(name), self.redact_all(value))).collect()
            }
            Value::Number(number) => match self.redact(number.to_string()) {
                text if text == number.to_string() => Value::Number(number),
                text => text.into(),
            },
            other => other,
        }
    }
}
