//! The performer as the runner uses it: models over the wire, the script, profiles.

use domain::chat::{CallContext, ChatRequest, ErrorCategory, ModelProfile, ModelTarget, Parameters, Prices};
use domain::effect::{EffectFailure, ModelRequest};
use domain::moniker::model::asking;
use domain::spending::Spent;
use schemas::definition;
use schemas::id::{AgentId, Epoch, Namespace, SessionId, SessionKey};
use schemas::session::ModelUse;
use serde_json::{Value, json};

use super::*;
use crate::config::{Profile, ProvidersConfig};
use crate::fake_server::{FakeServer, Say};

/// What a step is answered whose question goes to this profile.
async fn asked(performer: &Performer, profile: Option<&str>) -> Result<Value, EffectFailure> {
    let session = SessionKey::new(Namespace::parse("default").expect("an id"), SessionId::parse("s-1").expect("an id"));
    let request = ModelRequest {
        agent: AgentId::parse("a-1").expect("an id"),
        conversation: None,
        profile: profile.map(str::to_owned),
        system: "be brief".to_owned(),
        prompt: "hello".to_owned(),
        max_tokens: 50,
        json: true,
        used: ModelUse::default(),
        since_ms: 0,
        unrecorded: Spent::default(),
    };
    let target = profile.map_or(ModelTarget::Default, |name| ModelTarget::Named(name.to_owned()));
    let effect = Effect::Model(request.clone());
    let call = EffectCall { session, epoch: Epoch(1), key: "default:s-1:0:0".to_owned(), effect };
    asking::answered(performer.chat(&asking::call_of(&call, &request, target), None).await).answer
}

fn config(variables: &[(&str, &str)], profiles: &[(&str, Profile)]) -> ProvidersConfig {
    let lookup = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
    ProvidersConfig::from_env(lookup, profiles.iter().map(|(n, p)| ((*n).to_owned(), p.clone())).collect())
}

/// An account of each vendor at the fake server.
async fn ask(vendor: &str, replies: Vec<Say>) -> (Result<Value, EffectFailure>, FakeServer) {
    let server = FakeServer::start(replies).await;
    let (key, url) = match vendor {
        "anthropic" => ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
        "openai" => ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
        _ => ("GEMINI_API_KEY", "GEMINI_BASE_URL"),
    };
    let performer = Performer::new(&config(&[(key, "sk-hidden"), (url, &server.url)], &[])).expect("valid");
    assert!(Effects::provider(&performer).starts_with(vendor) && Effects::provider(&performer).contains(&server.url));
    (asked(&performer, None).await, server)
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

#[tokio::test]
async fn every_vendor_answers_in_one_shape_after_a_busy_moment() {
    for (vendor, key_header) in [
        ("anthropic", "x-api-key: sk-hidden"),
        ("openai", "authorization: bearer sk-hidden"),
        ("gemini", "x-goog-api-key: sk-hidden"),
    ] {
        let busy = answer(429, "retry-after: 0\r\n", json!({"error": {"message": "slow down"}}));
        let (outcome, server) = ask(vendor, vec![busy, answer(200, "", spoken(vendor))]).await;
        let value = outcome.expect("an answer");
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
        let failure = outcome.expect_err("a failure");
        assert_eq!((failure.code, failure.retriable, server.requests().len()), (Code::ProviderFailed, false, 1));
        assert!(
            failure.message.contains("the key was refused") && !failure.message.contains("sk-hidden"),
            "{failure:?}"
        );
    }
}

#[tokio::test]
async fn a_profiles_own_server_gets_no_key_of_the_account_and_names_the_setting() {
    let said = json!({"error": {"message": "Unauthorized"}});
    let server = FakeServer::start(vec![answer(401, "", said)]).await;
    let local = Profile {
        provider: "openai".to_owned(),
        model: "local-1".to_owned(),
        base_url: Some(server.url.clone()),
        ..Profile::default()
    };
    let performer = Performer::new(&config(&[("OPENAI_API_KEY", "sk-hidden")], &[("local", local)])).expect("valid");
    let failure = asked(&performer, Some("local")).await.expect_err("a failure");
    let setting = "no key was sent; set api_key_env or api_key_file beside base_url";
    assert!(failure.message.contains(setting) && !failure.retriable, "{failure:?}");
    let head = &server.requests()[0].head;
    assert!(!head.contains("authorization") && !head.contains("sk-hidden"), "{head}");
}

#[tokio::test]
async fn refused_and_unreadable_answers_are_final() {
    for (reply, part) in [
        (answer(400, "", json!({"error": {"message": "max_tokens too large"}})), "max_tokens too large"),
        (Say::Answer(200, "", "<html>".to_owned()), "not JSON"),
        (answer(200, "", json!({"object": "list"})), "no choices"),
    ] {
        let (outcome, server) = ask("openai", vec![reply]).await;
        let failure = outcome.expect_err("a failure");
        assert!(failure.message.contains(part) && !failure.retriable, "{failure:?}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_cut_answer_is_asked_for_again() {
    let (outcome, server) = ask("openai", vec![Say::Cut, answer(200, "", spoken("openai"))]).await;
    assert!(outcome.is_ok(), "{outcome:?}");
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
        ..Profile::default()
    };
    let config = config(&[], &[("fast", profile("openai")), ("fake", profile("scripted"))]);
    let performer = Performer::new(&config).expect("valid");
    assert!(Effects::provider(&performer).starts_with("scripted (built-in"), "{}", Effects::provider(&performer));
    assert_eq!(asked(&performer, Some("fast")).await.expect("an answer")["text"], "hi");
    let body: Value = serde_json::from_str(&server.requests()[0].body).expect("json");
    assert_eq!((&body["model"], &body["max_tokens"]), (&json!("local-1"), &json!(7)));
    assert_eq!(asked(&performer, Some("fake")).await.expect("an answer")["provider"], "scripted");
    let failure = asked(&performer, Some("slow")).await.expect_err("a failure");
    assert_eq!(failure.code, Code::ProviderMissing);
    assert!(failure.message.contains("known are fake, fast"), "{}", failure.message);
}

fn chat_call(target: ModelTarget) -> ChatCall {
    let request = ChatRequest::ask("be brief", "hello");
    ChatCall { id: "call-1".to_owned(), target, request, context: CallContext::default(), once: false }
}

fn data(provider: &str, prices: Prices) -> ModelTarget {
    let parameters = Parameters { max_tokens: Some(5_000), temperature: Some(0.1), ..Parameters::default() };
    ModelTarget::Profile(Box::new(ModelProfile {
        provider: provider.to_owned(),
        model: "m-9".to_owned(),
        parameters,
        prices,
    }))
}

#[tokio::test]
async fn profiles_that_are_data_use_configured_addresses_and_keys() {
    let server = FakeServer::start(vec![answer(200, "", spoken("openai"))]).await;
    let local = Profile {
        provider: "openai".to_owned(),
        model: "local-1".to_owned(),
        base_url: Some(server.url.clone()),
        max_tokens: Some(7),
        prices: Prices {
            cost_per_1k_input_tokens: Some(1.0),
            cost_per_1k_output_tokens: Some(1.0),
            ..Prices::default()
        },
        ..Profile::default()
    };
    let variables = [("OPENAI_API_KEY", "sk-hidden"), ("OPENAI_BASE_URL", server.url.as_str())];
    let performer = Performer::new(&config(&variables, &[("local", local)])).expect("valid");

    let outcome = performer.chat(&chat_call(data("local", Prices::default())), None).await;
    assert_eq!((outcome.record.model.as_str(), outcome.record.cost), ("m-9", None), "the prices are those of local-1");
    let own = Prices { cost_per_1k_input_tokens: Some(0.0), cost_per_1k_output_tokens: Some(5.0), ..Prices::default() };
    let outcome = performer.chat(&chat_call(data("openai", own)), None).await;
    assert_eq!((outcome.result.expect("a reply").text().as_str(), outcome.record.cost), ("hi", Some(0.005)));
    let bodies: Vec<Value> =
        server.requests().iter().map(|got| serde_json::from_str(&got.body).expect("json")).collect();
    assert_eq!((&bodies[0]["model"], &bodies[0]["max_tokens"]), (&json!("m-9"), &json!(7)), "bounds hold");
    assert_eq!((&bodies[1]["max_tokens"], &bodies[1]["temperature"]), (&json!(5_000), &json!(0.1)));

    let outcome = performer.chat(&chat_call(data("gemini", Prices::default())), None).await;
    let failure = outcome.result.expect_err("no account");
    assert_eq!((failure.code, failure.retriable, failure.may_have_happened), (Code::ProviderMissing, false, false));
    assert!(failure.message.contains("GEMINI_API_KEY"), "{}", failure.message);
    assert_eq!(outcome.record.outcome.map(|outcome| (outcome.ok, outcome.attempts)), Some((false, 0)));
    let outcome = performer.chat(&chat_call(data("http://evil/v1", Prices::default())), None).await;
    assert!(outcome.result.expect_err("no address").message.contains("known are local"));
    assert_eq!(server.requests().len(), 2);
    let outcome = performer.chat(&chat_call(data("scripted", Prices::default())), None).await;
    assert_eq!(outcome.record.provider, "scripted");
    assert!(!format!("{performer:?}").contains("sk-hidden"));
}

#[tokio::test]
async fn a_request_costs_what_its_profile_takes_for_input() {
    let performer = Performer::new(&config(&[], &[])).expect("valid");
    let prices =
        Prices { cost_per_1k_input_tokens: Some(0.5), cost_per_1k_output_tokens: Some(9.0), ..Prices::default() };
    assert_eq!(performer.cost_of_input(&data("scripted", prices), 3_000), 1.5);
    assert_eq!(performer.cost_of_input(&data("scripted", Prices::default()), 3_000), 0.0, "no price is known");
    assert_eq!(performer.cost_of_input(&data("nobody", Prices::default()), 3_000), 0.0, "the call itself says so");
}

#[tokio::test]
async fn a_profile_of_the_default_is_whatever_the_fleet_was_started_with() {
    let server = FakeServer::start(vec![answer(200, "", spoken("openai"))]).await;
    let priced =
        Prices { cost_per_1k_input_tokens: Some(1.0), cost_per_1k_output_tokens: Some(1.0), ..Prices::default() };
    let own = Profile {
        provider: "openai".to_owned(),
        model: "own-1".to_owned(),
        base_url: Some(server.url.clone()),
        prices: priced,
        ..Profile::default()
    };
    let performer = Performer::new(&config(&[], &[("default", own)])).expect("valid");
    let ask = |model: &str| {
        let defined = json!({"id": "p", "name": "P", "provider": "default", "model_id": model});
        let defined: definition::ModelProfile = serde_json::from_value(defined).expect("a profile");
        chat_call(ModelTarget::Profile(Box::new(ModelProfile::from(defined))))
    };
    // By its own name, too, it is the model that the prices are for.
    for (model, cost) in [("default", Some(0.003)), ("other-2", None), ("own-1", Some(0.003))] {
        let outcome = performer.chat(&ask(model), None).await;
        assert!(outcome.result.is_ok(), "{model}: {:?}", outcome.result);
        assert_eq!(outcome.record.cost, cost, "{model}");
    }
    let asked = server.requests().into_iter().map(|got| serde_json::from_str::<Value>(&got.body).expect("json"));
    let models: Vec<Value> = asked.map(|body| body["model"].clone()).collect();
    assert_eq!(models, [json!("own-1"), json!("other-2"), json!("own-1")]);
    let keyless = Performer::new(&config(&[], &[])).expect("valid");
    assert_eq!(keyless.chat(&ask("default"), None).await.record.provider, "scripted");
}

#[tokio::test]
async fn a_request_that_nobody_takes_is_refused_before_it_is_sent() {
    let server = FakeServer::start(vec![answer(200, "", spoken("openai"))]).await;
    let performer =
        Performer::new(&config(&[("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", &server.url)], &[])).expect("valid");
    let mut call = chat_call(ModelTarget::Default);
    call.request.messages.clear();
    let outcome = performer.chat(&call, None).await;
    let failure = outcome.result.expect_err("no message");
    assert_eq!((failure.category, failure.may_have_happened), (ErrorCategory::Validation, false));
    assert!(server.requests().is_empty());
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
