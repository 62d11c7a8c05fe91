//! The performer as the runner uses it: models over the wire, the script, profiles.

use domain::effect::EffectFailure;
use schemas::id::{Namespace, SessionId, SessionKey};
use serde_json::{Value, json};

use super::*;
use crate::config::{Profile, ProvidersConfig};
use crate::fake_server::{FakeServer, Say};

fn call(profile: Option<&str>) -> EffectCall {
    let session = SessionKey::new(Namespace::parse("default").expect("an id"), SessionId::parse("s-1").expect("an id"));
    let request = ModelRequest {
        profile: profile.map(str::to_owned),
        system: "be brief".to_owned(),
        prompt: "hello".to_owned(),
        max_tokens: 50,
        json: true,
    };
    EffectCall { session, key: "default:s-1:0:0".to_owned(), effect: Effect::Model(request) }
}

fn config(variables: &[(&str, &str)], profiles: &[(&str, Profile)]) -> ProvidersConfig {
    let lookup = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
    ProvidersConfig::from_env(lookup, profiles.iter().map(|(n, p)| ((*n).to_owned(), p.clone())).collect())
}

/// An account of each vendor at the fake server.
async fn ask(vendor: &str, replies: Vec<Say>) -> (Outcome, FakeServer) {
    let server = FakeServer::start(replies).await;
    let (key, url) = match vendor {
        "anthropic" => ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
        "openai" => ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
        _ => ("GEMINI_API_KEY", "GEMINI_BASE_URL"),
    };
    let performer = Performer::new(&config(&[(key, "sk-hidden"), (url, &server.url)], &[])).expect("valid");
    assert!(performer.provider().starts_with(vendor) && performer.provider().contains(&server.url));
    (performer.perform(&call(None)).await, server)
}

fn answer(status: u16, headers: &'static str, body: Value) -> Say {
    Say::Answer(status, headers, body.to_string())
}

fn spoken(vendor: &str) -> Value {
    match vendor {
        "anthropic" => json!({"content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn",
            "usage": {"input_tokens": 2, "output_tokens": 1}}),
        "openai" => json!({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 2, "completion_tokens": 1}}),
        _ => json!({"candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 2, "candidatesTokenCount": 1}}),
    }
}

fn failed(outcome: Outcome) -> EffectFailure {
    match outcome {
        Outcome::Failed(failure) => failure,
        Outcome::Ok(value) => panic!("expected a failure, got {value}"),
    }
}

#[tokio::test]
async fn every_vendor_answers_in_one_shape_after_a_busy_moment() {
    for (vendor, key_header) in [
        ("anthropic", "x-api-key: sk-hidden"),
        ("openai", "authorization: bearer sk-hidden"),
        ("gemini", "x-goog-api-key: sk-hidden"),
    ] {
        let busy = answer(429, "retry-after: 0\r\n", json!({"error": {"message": "slow down"}}));
        let (outcome, server) = ask(vendor, vec![busy, answer(200, "", spoken(vendor))]).await;
        let Outcome::Ok(value) = outcome else { panic!("{outcome:?}") };
        assert_eq!(
            (&value["text"], &value["provider"], &value["finish"]),
            (&json!("hi"), &json!(vendor), &json!("stop"))
        );
        assert_eq!(value["usage"], json!({"input_tokens": 2, "output_tokens": 1, "total_tokens": 3}));
        let requests = server.requests();
        assert_eq!(requests.len(), 2);
        assert!(requests[1].head.contains(key_header), "{}", requests[1].head);
    }
}

#[tokio::test]
async fn a_refused_key_is_final_and_never_shown() {
    let said = json!({"error": {"message": "incorrect key sk-hidden given", "type": "authentication_error"}});
    for vendor in ["anthropic", "openai", "gemini"] {
        let (outcome, server) = ask(vendor, vec![answer(401, "", said.clone())]).await;
        let failure = failed(outcome);
        assert_eq!((failure.code, failure.retriable, server.requests().len()), (Code::ProviderFailed, false, 1));
        assert!(
            failure.message.contains("the key was refused") && !failure.message.contains("sk-hidden"),
            "{failure:?}"
        );
    }
}

#[tokio::test]
async fn refused_and_unreadable_answers_are_final() {
    for (reply, part) in [
        (answer(400, "", json!({"error": {"message": "max_tokens too large"}})), "max_tokens too large"),
        (Say::Answer(200, "", "<html>".to_owned()), "not JSON"),
        (answer(200, "", json!({"object": "list"})), "no choices"),
    ] {
        let (outcome, server) = ask("openai", vec![reply]).await;
        let failure = failed(outcome);
        assert!(failure.message.contains(part) && !failure.retriable, "{failure:?}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_cut_answer_is_asked_for_again() {
    let (outcome, server) = ask("openai", vec![Say::Cut, answer(200, "", spoken("openai"))]).await;
    assert!(matches!(outcome, Outcome::Ok(_)), "{outcome:?}");
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn profiles_choose_the_endpoint() {
    let server = FakeServer::start(vec![answer(200, "", spoken("openai"))]).await;
    let profile = |provider: &str| Profile {
        provider: provider.to_owned(),
        model: "local-1".to_owned(),
        base_url: Some(server.url.clone()),
        max_tokens: Some(7),
        api_key_env: None,
    };
    let config = config(&[], &[("fast", profile("openai")), ("fake", profile("scripted"))]);
    let performer = Performer::new(&config).expect("valid");
    assert!(performer.provider().starts_with("scripted (built-in"), "{}", performer.provider());
    assert!(matches!(performer.perform(&call(Some("fast"))).await, Outcome::Ok(value) if value["text"] == "hi"));
    let body: Value = serde_json::from_str(&server.requests()[0].body).expect("json");
    assert_eq!((&body["model"], &body["max_tokens"]), (&json!("local-1"), &json!(7)));
    assert!(
        matches!(performer.perform(&call(Some("fake"))).await, Outcome::Ok(value) if value["provider"] == "scripted")
    );
    let failure = failed(performer.perform(&call(Some("slow"))).await);
    assert_eq!(failure.code, Code::ProviderMissing);
    assert!(failure.message.contains("known are fake, fast"), "{}", failure.message);
}

#[test]
fn all_problems_are_found_at_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("s.json");
    std::fs::write(&script, "{\"rules\": [").expect("written");
    let mut config = config(&[("STEPFLEET_SCRIPT", script.to_str().expect("utf-8"))], &[]);
    config.allow_paths = Some(vec![folder.path().join("no-such")]);
    let problems = Performer::new(&config).expect_err("problems").0;
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].contains("s.json") && problems[0].contains("line 1"), "{problems:?}");
    assert!(problems[1].contains("no-such"), "{problems:?}");
}
