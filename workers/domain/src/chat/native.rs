//! Requests in a provider's own shape (SPEC K-31, W-PRV-14).

use schemas::limits::NAME_BYTES_MAX;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The provider whose models are named in the address of a request.
const NAMED_IN_ADDRESS: &str = "gemini";
/// What names of models may begin with there.
const MODELS: &str = "models/";

/// A body as the provider's own client would send it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NativeRequest {
    /// Whose shape it has; a request never goes to another provider.
    pub provider: String,
    pub body: Value,
}

impl NativeRequest {
    /// Whose shapes there are.
    pub const PROVIDERS: [&'static str; 4] = ["anthropic", "openai", "openai_responses", "gemini"];

    /// The model that the body names, if it names one.
    ///
    /// # Errors
    /// What is there is no name of a model, in words that follow the name of the field.
    pub fn model(&self) -> Result<Option<&str>, String> {
        match self.body.get("model") {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(name)) => named(&self.provider, name).map(|()| Some(name.as_str())),
            Some(_) => Err("must be a string: the provider's own name of a model".to_owned()),
        }
    }
}

fn named(provider: &str, name: &str) -> Result<(), String> {
    if name.trim().is_empty() {
        return Err("must not be blank; leave it out for the model of the profile".to_owned());
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(format!("is {} bytes long; at most {NAME_BYTES_MAX} are allowed", name.len()));
    }
    model_in_address(provider, name)
}

/// Whether a model may be asked by this name, where the name becomes a part of the address: it must not lead to another
/// address of the same host, with the operator's key. Elsewhere it may be any.
///
/// # Errors
/// It must not, in words that follow the name of the field.
pub fn model_in_address(provider: &str, name: &str) -> Result<(), String> {
    if provider == NAMED_IN_ADDRESS && !is_segment(name.strip_prefix(MODELS).unwrap_or(name)) {
        return Err("is no name of a model: it has letters, digits, '-', '_', '.' and '@' alone".to_owned());
    }
    Ok(())
}

fn is_segment(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
    name.chars().all(is_plain) && name.chars().any(|c| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn model(provider: &str, body: Value) -> Result<Option<String>, String> {
        let native = NativeRequest { provider: provider.to_owned(), body };
        native.model().map(|name| name.map(str::to_owned))
    }

    #[test]
    fn the_model_of_a_body_is_a_name_or_left_out() {
        for provider in NativeRequest::PROVIDERS {
            assert_eq!(model(provider, json!({})), Ok(None));
            assert_eq!(model(provider, json!({"model": null})), Ok(None));
            assert_eq!(model(provider, json!({"model": "m-1.5_x"})), Ok(Some("m-1.5_x".to_owned())));
            for (wrong, words) in
                [(json!(" "), "blank"), (json!(7), "a string"), (json!("x".repeat(129)), "at most 128")]
            {
                let refused = model(provider, json!({"model": wrong})).expect_err(words);
                assert!(refused.contains(words), "{provider}: {refused}");
            }
        }
    }

    #[test]
    fn a_model_that_is_part_of_an_address_cannot_lead_elsewhere() {
        assert!(model("gemini", json!({"model": "models/gemini-2.5-flash"})).is_ok());
        for name in ["../files", "a/b", "a?b", "a#b", "a:b", "a%2fb", "..", "models/", "a b"] {
            assert!(model("gemini", json!({"model": name})).is_err(), "{name}");
            assert!(model("openai", json!({"model": name})).is_ok(), "{name}: in a body it is a text like any other");
        }
    }
}
