//! A server that was set without a model: what it has is asked once, at the start.

use std::time::Duration;

use serde_json::Value;

use crate::config::{Endpoint, ProvidersConfig};
use crate::exchange;
use crate::net::Net;

/// A server that is there says so at once, and no start is held up for one that is not.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// What to do if the model is the wrong one.
const ANOTHER: &str = ". For another one, set STEPFLEET_MODEL=openai/<model>";

/// Names the default model, if only the server of it was set: hardly any server but the vendor's own has the model that
/// is asked for there. One that does not tell what it has changes nothing.
pub async fn name_model(config: &mut ProvidersConfig) {
    let Some(endpoint) = config.without_model() else { return };
    let (server, usual) = (&endpoint.base_url, &endpoint.model);
    let asked = tokio::time::timeout(ANSWER_MAX, listed(config.allow_private, &endpoint)).await;
    let list = asked.unwrap_or_else(|_| Err(format!("no answer within {} s", ANSWER_MAX.as_secs())));
    match list.and_then(|list| chosen(&list, usual).ok_or_else(|| "it lists none that talks".to_owned())) {
        Ok(model) => {
            tracing::info!(
                server,
                model,
                "no model is named; this one of those that the server lists is taken{ANOTHER}"
            );
            config.model = Some(format!("{}/{model}", endpoint.vendor.as_str()));
        }
        Err(problem) => {
            tracing::warn!(
                server,
                problem,
                model = usual,
                "no model is named and none is listed; this one is asked for{ANOTHER}"
            );
        }
    }
}

/// What the server says it has.
async fn listed(allow_private: bool, endpoint: &Endpoint) -> Result<Value, String> {
    let net = Net::new(allow_private)?;
    let asked = async {
        let response = exchange::get(&net, endpoint, "/models").await?;
        let status = response.status().as_u16();
        if !(200..300).contains(&status) {
            return Err(exchange::refused(endpoint, status, response).await);
        }
        exchange::json(endpoint, response).await
    };
    asked.await.map_err(|error| exchange::hide(error, endpoint).message)
}

/// The model to take from a list in OpenAI's form: the usual one if it is there, else the first.
fn chosen(list: &Value, usual: &str) -> Option<String> {
    let all = list["data"].as_array()?.iter().filter_map(|model| model["id"].as_str());
    let talking: Vec<&str> = all.filter(|id| !id.trim().is_empty() && talks(id)).collect();
    talking.iter().find(|id| **id == usual).or(talking.first()).map(|id| (*id).to_owned())
}

/// Models that make vectors, hear, speak or draw are listed among the others, and cannot talk.
fn talks(id: &str) -> bool {
    const OTHERS: [&str; 11] =
        ["embed", "bge-", "minilm", "gte-", "e5-", "rerank", "whisper", "tts", "moderation", "dall-e", "diffusion"];
    let id = id.to_ascii_lowercase();
    !OTHERS.iter().any(|other| id.contains(other))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use domain::ports::Models;
    use serde_json::json;

    use super::*;
    use crate::Performer;
    use crate::fake_server::{FakeServer, Say};

    fn config(variables: &[(&str, &str)]) -> ProvidersConfig {
        let lookup = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        ProvidersConfig::from_env(lookup, BTreeMap::new())
    }

    fn list(ids: &[&str]) -> Value {
        let models: Vec<Value> = ids.iter().map(|id| json!({"id": id, "object": "model"})).collect();
        json!({"object": "list", "data": models})
    }

    #[test]
    fn the_first_model_that_talks_is_taken_unless_the_usual_one_is_there() {
        let taken = |list: &Value| chosen(list, "usual");
        assert_eq!(taken(&list(&["llama3.2:latest", "qwen"])).as_deref(), Some("llama3.2:latest"));
        assert_eq!(taken(&list(&["text-Embedding-x", "meta/llama"])).as_deref(), Some("meta/llama"));
        assert_eq!(taken(&list(&["other", "usual"])).as_deref(), Some("usual"));
        for nothing in [
            list(&[]),
            list(&["nomic-embed-text", " "]),
            json!({"data": [{"name": "x"}, 1]}),
            json!({"models": [{"name": "x"}]}),
            json!(["x"]),
            Value::Null,
        ] {
            assert_eq!(taken(&nothing), None, "{nothing}");
        }
    }

    #[tokio::test]
    async fn a_server_without_a_model_is_asked_once_and_shown_with_what_it_has() {
        let server = FakeServer::start(vec![Say::Answer(200, "", list(&["a/b", "c"]).to_string())]).await;
        let base = format!("{}/v1/", server.url);
        let mut config = config(&[("OPENAI_BASE_URL", &base), ("OPENAI_API_KEY", "sk-hidden")]);
        name_model(&mut config).await;
        name_model(&mut config).await;
        let requests = server.requests();
        assert_eq!(requests.len(), 1, "it is named by now");
        let head = &requests[0].head;
        assert!(head.starts_with("get /v1/models ") && head.contains("authorization: bearer sk-hidden"), "{head}");
        let performer = Performer::new(&config).expect("valid");
        assert_eq!(Models::provider(&performer), format!("openai (a/b at {}/v1)", server.url));
    }

    #[tokio::test]
    async fn a_server_that_does_not_tell_changes_nothing() {
        for reply in [
            Say::Answer(404, "", json!({"detail": "Not Found"}).to_string()),
            Say::Answer(200, "", "<html>".to_owned()),
            Say::Answer(200, "", list(&[]).to_string()),
            Say::HangUp,
        ] {
            let server = FakeServer::start(vec![reply]).await;
            let before = config(&[("OPENAI_BASE_URL", &server.url)]);
            let mut after = before.clone();
            name_model(&mut after).await;
            assert_eq!((&after, server.requests().len()), (&before, 1));
        }
    }

    #[tokio::test]
    async fn a_server_that_says_nothing_holds_no_start_up() {
        let server = FakeServer::start(vec![Say::Silence]).await;
        let mut config = config(&[("OPENAI_BASE_URL", &server.url)]);
        let asked = tokio::time::timeout(ANSWER_MAX * 5, name_model(&mut config)).await;
        assert!(asked.is_ok() && config.model.is_none());
    }
}
