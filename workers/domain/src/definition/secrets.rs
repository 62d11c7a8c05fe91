//! Keys never live in definitions: everybody who may read them would have them, and every version
//! keeps them for good.

use serde_json::Value;

use super::normal::FREE;
use crate::action::fields::{Object, Problems};
use crate::tool::variable_name;

const SAID: &str = "keys never live in definitions: name the provider or server here, and give its \
                    key to the processes that call it, in their environment, as in ANTHROPIC_API_KEY (http actions name \
                    such a variable in headers_env)";
/// Parts of a field's name, in lower case and without `-` and `_`.
const NAMES: [&str; 9] =
    ["apikey", "secret", "password", "passwd", "accesskey", "privatekey", "authorization", "credential", "clientkey"];
/// How the keys of well-known services begin.
const BEGINNINGS: [&str; 10] =
    ["sk-", "sk_live_", "rk_live_", "ghp_", "gho_", "github_pat_", "xoxb-", "xoxp-", "AKIA", "AIza"];
/// Shorter texts are no keys.
const KEY_BYTES_MIN: usize = 20;
const DEPTH_MAX: usize = 64;
/// Settings that are passed on, where a field's name means what it says.
const SETTINGS: [&str; 2] = ["config", "execution_config"];
/// Where they name variables: what the headers are called says nothing of the values.
const VARIABLES: &str = "config.headers_env";
/// Within them, what speaks of other people's fields.
const OTHERS: [&str; 3] = ["schema", "output", "fields"];
/// A request in a provider's own shape, and what speaks of other people's fields there: schemas of tools and answers,
/// and what tools were given and have answered.
const NATIVE: &str = "config.native.body";
const NATIVE_OTHERS: [&str; 6] =
    ["parameters", "parametersJsonSchema", "responseSchema", "responseJsonSchema", "response", "input"];

pub(super) fn check(object: &Object<'_>, problems: &mut Problems) {
    for (name, value) in object.entries() {
        look(object.path(clip(name)), name, value, true, DEPTH_MAX, problems);
    }
}

/// `named`: names count too. In schemas and examples they do not: a tool may well ask for a password.
fn look(path: String, name: &str, value: &Value, named: bool, depth: usize, problems: &mut Problems) {
    if depth == 0 {
        return;
    }
    if named && is_name_of_key(name) {
        problems.add(path, format!("looks like a place for a key; {SAID}"));
        return;
    }
    let of_others = FREE.contains(&name)
        || OTHERS.contains(&name)
        || name.ends_with("_mapping")
        || (NATIVE_OTHERS.contains(&name) && path.starts_with(NATIVE));
    let named = named && path != VARIABLES && (SETTINGS.contains(&name) || !of_others);
    match value {
        Value::String(text) if is_key(text) => problems.add(path, format!("holds what looks like a key; {SAID}")),
        Value::Object(map) => {
            for (name, value) in map {
                look(format!("{path}.{}", clip(name)), name, value, named, depth - 1, problems);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                look(format!("{path}[{index}]"), "", value, named, depth - 1, problems);
            }
        }
        _ => {}
    }
}

fn clip(name: &str) -> &str {
    name.char_indices().nth(64).map_or(name, |(end, _)| &name[..end])
}

fn is_name_of_key(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    NAMES.iter().any(|part| plain.contains(part)) || plain == "token" || plain.ends_with("token")
}

fn is_key(text: &str) -> bool {
    let text = text.trim();
    if text.contains("-----BEGIN") && text.contains("PRIVATE KEY-----") {
        return true;
    }
    let one_word = |text: &str| text.len() >= KEY_BYTES_MIN && !text.contains(char::is_whitespace);
    let bearer = text.get(..7).filter(|start| start.eq_ignore_ascii_case("bearer ")).map(|_| text[7..].trim());
    if bearer.is_some_and(|token| one_word(token) && !token.contains("{{") && !is_variable(token)) {
        return true;
    }
    (one_word(text) && BEGINNINGS.iter().any(|start| text.starts_with(start))) || has_password(text)
}

fn is_variable(text: &str) -> bool {
    text.contains('_') && variable_name(text).is_ok()
}

/// `https://user:password@host`.
fn has_password(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_plain = !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || c == '+');
    is_plain && authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_keys_are_told_from_names_of_counts() {
        for name in ["api_key", "apiKey", "X-Api-Key", "OPENAI_API_KEY", "client_secret", "token", "access_token"] {
            assert!(is_name_of_key(name), "{name}");
        }
        for name in ["max_tokens", "stop_tokens_limit", "key", "keywords", "idempotency_key", "monkey"] {
            assert!(!is_name_of_key(name), "{name}");
        }
    }

    #[test]
    fn keys_are_told_from_texts() {
        for text in [
            concat!("sk", "-ant-0123456789abcdefghij"),
            "Bearer 0123456789abcdefghijk",
            concat!("-----BEGIN RSA ", "PRIVATE KEY-----\nx"),
            "https://ana:geheim@example.org/x",
        ] {
            assert!(is_key(text), "{text}");
        }
        for text in [
            "sk-short",
            "Bearer of good news, always",
            "Bearer {{input.session_of_the_user}}",
            "https://a.b/c@d:e",
            "Bearer CRM_PRODUCTION_TOKEN",
        ] {
            assert!(!is_key(text), "{text}");
        }
    }
}
