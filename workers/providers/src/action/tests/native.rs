//! Requests in the providers' own shapes, to a server of this machine that answers as the providers did.

use std::path::Path;

use domain::chat::Prices;
use domain::definition::check;
use schemas::definition::DefinitionKind;

use super::llm::Kept;
use super::*;
use crate::config::{Profile, Vendor};
use crate::fake_server::{FakeServer, Say};

/// Models of which the default is this provider's, at the server.
fn models_of(provider: &str, server: &FakeServer) -> Arc<Performer> {
    let prices =
        Prices { cost_per_1k_input_tokens: Some(1.0), cost_per_1k_output_tokens: Some(10.0), ..Prices::default() };
    let profile = Profile {
        provider: provider.to_owned(),
        model: "m-1".to_owned(),
        base_url: Some(server.url.clone()),
        max_tokens: Some(7),
        api_key_env: Some("TEST_KEY".to_owned()),
        prices,
        ..Profile::default()
    };
    let lookup = |name: &str| (name == "TEST_KEY").then(|| "sk-hidden".to_owned());
    let models = ProvidersConfig::from_env(lookup, BTreeMap::from([("default".to_owned(), profile)]));
    Arc::new(Performer::new(&models).expect("valid"))
}

fn asking(provider: &str, server: &FakeServer) -> Actions {
    Actions::new(config(false), models_of(provider, server), store()).expect("TLS works")
}

fn native(provider: &str, body: Value) -> Value {
    json!({"native": {"provider": provider, "body": body}})
}

/// An answer that was recorded, and its text.
fn recorded(vendor: Vendor) -> (Value, String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(vendor.as_str());
    let read = |name: &str| -> Value {
        serde_json::from_slice(&std::fs::read(folder.join(name)).expect("a sample")).expect("json")
    };
    let text = read("llmock_text.whole.want.json")["parts"][0]["text"].as_str().expect("a text").to_owned();
    (read("llmock_text.whole.json"), text)
}

fn sent(server: &FakeServer, at: usize) -> Value {
    serde_json::from_str(&server.requests()[at].body).expect("json")
}

#[tokio::test]
async fn k_31_a_body_is_filled_in_and_sent_as_it_is() {
    let body = json!({"messages": [{"text": "Say {{input.word}}, {{context.agent_id}}"}], "top_k": "{{input.n}}",
        "list": "{{input.list}}", "max_tokens": 99, "seed": null});
    let input = json!({"word": "\"hi\"", "n": 3, "list": [1, {"a": 2}]});
    for vendor in Vendor::ALL {
        let (answer, text) = recorded(vendor);
        let server = FakeServer::start(vec![Say::Answer(200, "", answer.to_string())]).await;
        let actions = asking(vendor.as_str(), &server);
        for (output, expected) in [(json!(null), json!(text)), (json!("text"), json!(text)), (json!("raw"), answer)] {
            let mut settings = native(vendor.as_str(), body.clone());
            settings["output"] = output;
            let result = actions.run(&call(ActionKind::Llm, settings, input.clone())).await;
            assert_eq!(result.unwrap(), expected, "{vendor:?}");
        }
        let mut expected = json!({"messages": [{"text": "Say \"hi\", ana"}], "top_k": 3, "list": [1, {"a": 2}],
            "max_tokens": 99, "seed": null});
        if vendor == Vendor::Gemini {
            assert!(server.requests()[0].head.contains("/models/m-1:generatecontent "), "the model is in the address");
        } else {
            expected["model"] = "m-1".into();
            expected["stream"] = false.into();
        }
        assert_eq!(sent(&server, 0), expected, "{vendor:?}");
        assert!(server.requests()[0].head.contains("sk-hidden"), "{vendor:?}: the key is the operator's");
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_tried_again_and_billed_like_any_other_call() {
    let (answer, text) = recorded(Vendor::Anthropic);
    let busy = json!({"type": "error", "error": {"type": "overloaded_error", "message": "no"}});
    let replies = vec![Say::Answer(529, "", busy.to_string()), Say::Answer(200, "", answer.to_string())];
    let server = FakeServer::start(replies).await;
    let (actions, kept) = (asking("anthropic", &server), Kept::default());
    let settings = native("anthropic", json!({"model": "{{input.model}}", "messages": []}));
    let asked = call(ActionKind::Llm, settings, json!({"model": "m-2"}));
    let asked = ActionCall { effect_class: EffectClass::Idempotent, ..asked };
    assert_eq!(actions.run_billed(&asked, &kept).await.unwrap(), json!(text));
    assert_eq!(sent(&server, 1)["model"], "m-2", "the body names its model");
    assert_eq!(kept.ids(), ["t1.1.0.llm.1"]);
    let record = kept.0.lock().unwrap()[0].clone();
    assert_eq!((record.provider.as_str(), record.model.as_str(), record.cost), ("anthropic", "m-2", Some(0.102)));
    assert_eq!(record.outcome.map(|outcome| (outcome.ok, outcome.attempts)), Some((true, 2)));
}

/// Its body may have tools that the provider runs.
#[tokio::test(start_paused = true)]
async fn what_may_have_had_an_effect_is_sent_again_only_where_that_is_safe() {
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "no"}}).to_string();
    let many = json!({"type": "error", "error": {"type": "rate_limit_error", "message": "no"}}).to_string();
    let (answer, text) = recorded(Vendor::Anthropic);
    let own = native("anthropic", json!({"messages": []}));
    let run = async |class: EffectClass, settings: &Value, replies: Vec<Say>| {
        let server = FakeServer::start(replies).await;
        let asked = ActionCall { effect_class: class, ..call(ActionKind::Llm, settings.clone(), json!({})) };
        let result = asking("anthropic", &server).run(&asked).await;
        (result.map_err(|failed| (failed.trouble, failed.may_have_happened)), server.requests().len())
    };
    for (class, times) in [
        (EffectClass::Pure, 3),
        (EffectClass::Idempotent, 3),
        (EffectClass::Probeable, 1),
        (EffectClass::AtMostOnce, 1),
    ] {
        for reply in [Say::Answer(529, "", overloaded.clone()), Say::HangUp] {
            let failed = Err((Some(Trouble::ServerError), true));
            assert_eq!(run(class, &own, vec![reply]).await, (failed, times), "{class:?}");
        }
        let refused = Say::Answer(429, "", many.clone());
        let failed = Err((Some(Trouble::RateLimit), false));
        assert_eq!(run(class, &own, vec![refused.clone()]).await, (failed, 3), "{class:?}: it did nothing");
        let then = vec![refused, Say::Answer(200, "", answer.to_string())];
        assert_eq!(run(class, &own, then).await, (Ok(json!(text)), 2), "{class:?}");
        let failed = Err((Some(Trouble::ServerError), false));
        let prompt = json!({"prompt": "x"});
        assert_eq!(run(class, &prompt, vec![Say::HangUp]).await, (failed, 3), "a prompt changes nothing");
    }
}

/// The provider had begun by then.
#[tokio::test(start_paused = true)]
async fn a_limit_that_is_met_while_it_is_answered_turns_nothing_away() {
    let error = json!({"code": "rate_limit_exceeded", "message": "slow down"});
    let failed = json!({"id": "r", "status": "failed", "error": error, "output": []}).to_string();
    for (class, times) in [(EffectClass::AtMostOnce, 1), (EffectClass::Idempotent, 3)] {
        let server = FakeServer::start(vec![Say::Answer(200, "", failed.clone())]).await;
        let settings = native("openai_responses", json!({"input": "x"}));
        let asked = ActionCall { effect_class: class, ..call(ActionKind::Llm, settings, json!({})) };
        let failed = asking("openai_responses", &server).run(&asked).await.unwrap_err();
        let told = (failed.trouble, failed.may_have_happened, server.requests().len());
        assert_eq!(told, (Some(Trouble::RateLimit), true, times), "{class:?}");
    }
}

#[tokio::test]
async fn an_answer_that_is_not_finished_has_no_text() {
    let says = |text: &str| json!({"type": "text", "text": text});
    let searches = json!([says("I look."), {"type": "server_tool_use", "id": "s", "name": "search"}]);
    let calls = |text: &str| json!([says(text), {"type": "tool_use", "id": "t", "name": "look", "input": {}}]);
    for (content, reason, told) in [
        (searches, "pause_turn", Err("(pause_turn)")),
        (calls(" "), "tool_use", Err("(tool_calls)")),
        (calls("I look."), "tool_use", Ok("I look.")),
        (json!([]), "end_turn", Ok("")),
    ] {
        let answer = json!({"content": content, "stop_reason": reason});
        let server = FakeServer::start(vec![Say::Answer(200, "", answer.to_string())]).await;
        let mut asked = call(ActionKind::Llm, native("anthropic", json!({"messages": []})), json!({}));
        match (asking("anthropic", &server).run(&asked).await, told) {
            (Ok(text), Ok(told)) => assert_eq!(text, told),
            (Err(failed), Err(told)) => {
                assert_eq!((failed.error.code, failed.trouble), (ToolErrorCode::ExecutionFailed, None));
                let what = format!("the answer is not finished {told}; take output: raw");
                assert_eq!(failed.error.message, what);
            }
            other => panic!("{reason}: {other:?}"),
        }
        asked.request.config.insert("output".to_owned(), json!("raw"));
        assert_eq!(asking("anthropic", &server).run(&asked).await.unwrap(), answer, "{reason}");
    }
}

#[tokio::test]
async fn a_request_for_another_provider_is_not_sent() {
    let server = FakeServer::start(vec![Say::HangUp]).await;
    let (actions, kept) = (asking("openai", &server), Kept::default());
    let asked = call(ActionKind::Llm, native("anthropic", json!({"messages": []})), json!({}));
    let failed = actions.run_billed(&asked, &kept).await.unwrap_err();
    let told = (failed.error.code, failed.trouble, failed.may_have_happened);
    assert_eq!(told, (ToolErrorCode::InvalidInput, None, false));
    let remedy = "leads to openai; choose a profile of \"anthropic\", or write the request for openai";
    assert!(failed.error.message.contains(remedy), "{}", failed.error.message);
    assert_eq!(kept.ids(), ["t1.1.0.llm.1"], "it has a record like any other call");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn what_cannot_be_filled_in_is_not_sent() {
    let server = FakeServer::start(vec![Say::HangUp]).await;
    let places = vec!["{{input.text}}"; 40];
    for (provider, body, input, words) in [
        (
            "gemini",
            json!({"model": "{{input.m}}"}),
            json!({"m": "../files"}),
            "native.body.model is no name of a model",
        ),
        ("openai", json!({"model": "{{input.m}}"}), json!({"m": 7}), "native.body.model must be a string"),
        ("openai", json!({"messages": "{{#if"}), json!({}), "native.body: line 1"),
        ("openai", json!({"messages": places}), json!({"text": "x".repeat(1 << 20)}), "its places show more than"),
    ] {
        let asked = call(ActionKind::Llm, native(provider, body), input);
        let failed = asking(provider, &server).run(&asked).await.unwrap_err();
        assert_eq!((failed.error.code, failed.may_have_happened), (ToolErrorCode::InvalidInput, false), "{words}");
        assert!(failed.error.message.contains(words), "{}", failed.error.message);
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn what_the_provider_refuses_is_told_in_its_words() {
    let no = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "max_tokens: required"}});
    let server = FakeServer::start(vec![Say::Answer(400, "", no.to_string())]).await;
    let asked = call(ActionKind::Llm, native("anthropic", json!({"messages": []})), json!({}));
    let failed = asking("anthropic", &server).run(&asked).await.unwrap_err();
    assert_eq!((failed.error.code, failed.trouble), (ToolErrorCode::ExecutionFailed, None));
    assert!(failed.error.message.contains("max_tokens: required"), "{}", failed.error.message);
}

#[tokio::test]
async fn a_text_is_held_to_the_schema_of_the_action() {
    let text = "```json\n{\"title\": \"Cat\"}\n```";
    let answer = json!({"content": [{"type": "text", "text": text}], "stop_reason": "end_turn"});
    let server = FakeServer::start(vec![Say::Answer(200, "", answer.to_string())]).await;
    let mut asked = call(ActionKind::Llm, native("anthropic", json!({"messages": []})), json!({}));
    asked.request.output_schema = json!({"type": "object", "required": ["title"]}).as_object().cloned();
    assert_eq!(asking("anthropic", &server).run(&asked).await.unwrap(), json!({"title": "Cat"}));
    assert_eq!(sent(&server, 0), json!({"messages": [], "model": "m-1", "stream": false}), "nothing is added");
}

#[tokio::test]
async fn extra_headers_of_a_profile_are_sent_beside_the_body() {
    let (answer, _) = recorded(Vendor::Anthropic);
    let server = FakeServer::start(vec![Say::Answer(200, "", answer.to_string())]).await;
    let profile = json!({"id": "fast", "name": "Fast", "provider": "default", "model_id": "default",
        "execution_config": {"top_k": 5, "headers": {"anthropic-beta": "beta-of-the-test"}}});
    let store = store();
    let new = [check(DefinitionKind::ModelProfile, &profile).expect("sound").new];
    store.define(&Namespace::default_ns(), &new).await.expect("written");
    let actions = Actions::new(config(false), models_of("anthropic", &server), store).expect("TLS works");
    let mut own = native("anthropic", json!({"messages": []}));
    own["model_profile_id"] = json!("fast");
    for (at, settings) in [json!({"prompt": "x", "model_profile_id": "fast"}), own].into_iter().enumerate() {
        actions.run(&call(ActionKind::Llm, settings, json!({}))).await.unwrap();
        let head = &server.requests()[at].head;
        assert!(head.contains("anthropic-beta: beta-of-the-test"), "{head}");
    }
    let (asked, own) = (sent(&server, 0), sent(&server, 1));
    assert_eq!((&asked["top_k"], &asked["headers"]), (&json!(5), &Value::Null));
    assert_eq!(own, json!({"messages": [], "model": "m-1", "stream": false}), "a body of one's own is left alone");
}
