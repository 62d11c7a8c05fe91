//! Requests, profiles, prices and contexts as plain values.

use serde_json::{Value, json};

use super::*;

mod record;

#[test]
fn a_message_is_read_from_a_text_or_from_parts() {
    let message: Message = serde_json::from_value(json!({"role": "user", "content": "hi"})).expect("a message");
    assert_eq!(message, Message::text(Role::User, "hi"));
    let result = json!({"role": "tool", "content": [{"type": "tool_result", "call_id": "c", "content": "42"}]});
    let message: Message = serde_json::from_value(result).expect("a message");
    assert_eq!(message.content, [Part::tool_result("c", "42", false)]);
}

#[test]
fn every_part_survives_its_json() {
    let parts = vec![
        Part::Text { text: "a".into(), signature: Some("s".into()) },
        Part::Image { source: ImageSource::Base64 { media_type: "image/png".into(), data: "aGk=".into() } },
        Part::Image { source: ImageSource::Url { url: "https://h/i.png".into() } },
        Part::ToolCall(ToolCall {
            id: "c".into(),
            name: "look".into(),
            input: json!({}),
            invalid: Some("{".into()),
            signature: None,
        }),
        Part::ToolResult { call_id: "c".into(), content: vec![Part::text("no")], is_error: true },
        Part::Reasoning(Reasoning { text: String::new(), signature: None, id: None, provider: "gemini".into() }),
        Part::Opaque { provider: "anthropic".into(), value: json!({"type": "redacted_thinking"}) },
    ];
    let message = Message::new(Role::Assistant, parts);
    let text = serde_json::to_string(&message).expect("json");
    assert_eq!(serde_json::from_str::<Message>(&text).expect("a message"), message);
}

#[test]
fn parameters_take_what_they_leave_open_from_the_profile() {
    let profile: Parameters = serde_json::from_value(
        json!({"max_tokens": 100, "temperature": 0.5, "stop_sequences": ["END"], "top_k": 5, "seed": 1}),
    )
    .expect("parameters");
    let own = Parameters { max_tokens: Some(4_096), top_p: Some(0.9), ..Parameters::default() };
    let both = own.over(&profile);
    assert_eq!((both.max_tokens, both.temperature, both.top_p), (Some(100), Some(0.5), Some(0.9)));
    assert_eq!((both.stop_sequences.as_slice(), &both.extra["top_k"]), (&["END".to_owned()][..], &json!(5)));
    let seeded: Parameters = serde_json::from_value(json!({"seed": 2, "max_tokens": 7})).expect("parameters");
    let both = seeded.over(&profile);
    assert_eq!((both.max_tokens, &both.extra["seed"]), (Some(7), &json!(2)));
}

#[test]
fn headers_of_a_profile_are_no_part_of_the_body() {
    let defined = json!({"id": "fast", "name": "Fast", "provider": "anthropic", "model_id": "m-9",
        "execution_config": {"top_k": 5, "headers": {"anthropic-beta": "a", "openai-beta": 7}}});
    let profile = ModelProfile::from(serde_json::from_value::<schemas::definition::ModelProfile>(defined).unwrap());
    assert_eq!(Value::Object(profile.parameters.extra.clone()), json!({"top_k": 5}));
    assert_eq!(json!(profile.parameters.headers), json!({"anthropic-beta": "a"}));
    let kept: ModelProfile = serde_json::from_value(json!(profile)).expect("what is stored is read");
    assert_eq!(kept, profile);
    let own: Parameters = serde_json::from_value(json!({"headers": {"openai-beta": "b"}})).expect("parameters");
    assert_eq!(json!(own.over(&profile.parameters).headers), json!({"anthropic-beta": "a", "openai-beta": "b"}));
    assert_eq!(json!(Parameters::default().over(&profile.parameters).headers), json!({"anthropic-beta": "a"}));
}

#[test]
fn costs_count_the_cache_apart() {
    let usage = Usage {
        input_tokens: 10_000,
        output_tokens: 2_000,
        total_tokens: 12_000,
        cached_input_tokens: 4_000,
        cache_write_tokens: 1_000,
        ..Usage::default()
    };
    let mut prices =
        Prices { cost_per_1k_input_tokens: Some(2.0), cost_per_1k_output_tokens: Some(10.0), ..Prices::default() };
    assert_eq!(prices.cost(&usage), Some(40.0));
    prices.cost_per_1k_cached_input_tokens = Some(0.5);
    prices.cost_per_1k_cache_write_tokens = Some(3.0);
    assert_eq!(prices.cost(&usage), Some(10.0 + 2.0 + 3.0 + 20.0));
    assert_eq!(Prices { cost_per_1k_output_tokens: None, ..prices }.cost(&usage), None);
    assert!(prices.check().is_ok());
    let wrong = Prices { cost_per_1k_output_tokens: Some(-1.0), ..prices }.check().expect_err("negative");
    assert!(wrong.contains("cost_per_1k_output_tokens"));
    // Figures that contradict each other must not underflow.
    let odd = Usage { input_tokens: 1, cached_input_tokens: 5, cache_write_tokens: 5, ..Usage::default() };
    assert_eq!(prices.cost(&odd), Some(0.0005));
}

#[test]
fn prices_that_a_definition_leaves_out_are_not_known() {
    let profile = |prices: Value| {
        let mut profile = json!({"id": "fast", "name": "Fast", "provider": "local", "model_id": "m-9"});
        profile.as_object_mut().unwrap().extend(prices.as_object().unwrap().clone());
        ModelProfile::from(serde_json::from_value::<schemas::definition::ModelProfile>(profile).unwrap())
    };
    let unpriced = profile(json!({}));
    assert_eq!((unpriced.provider.as_str(), unpriced.model.as_str()), ("local", "m-9"));
    assert_eq!((unpriced.prices, unpriced.parameters.max_tokens), (Prices::default(), Some(4_096)));
    let used = Usage { input_tokens: 1_000, output_tokens: 1_000, ..Usage::default() };
    let priced = profile(json!({"cost_per_1k_output_tokens": 5.0}));
    assert_eq!(priced.prices.cost(&used), Some(5.0), "one of both is a price, and the other one is 0");
}

#[test]
fn the_context_names_conversation_and_turn() {
    let context = CallContext {
        conversation_id: "c-1".into(),
        turn_id: "t-2".into(),
        agent: "scorer".into(),
        parent_turn_id: Some("t-1".into()),
        request_class: Some(RequestClass::Interactive),
        metadata: [("experiment".to_owned(), Value::from("b"))].into_iter().collect(),
    };
    let agent = context.agent_context("anthropic", "m-1");
    let labels = json!({"conversationId": "c-1", "turnId": "t-2", "provider": "anthropic", "model": "m-1"});
    assert_eq!((agent.run_id.as_str(), Value::Object(agent.labels)), ("c-1:t-2", labels));
    assert_eq!((agent.agent.as_str(), &agent.metadata["experiment"]), ("scorer", &json!("b")));
    assert_eq!(context.parent_run_id().as_deref(), Some("c-1:t-1"));
    let extensions = Value::Object(context.extensions("anthropic", "m-1", true));
    let expected = json!({"ai.provider": "anthropic", "ai.model": "m-1", "ai.request_type": "chat",
        "ai.streaming": true, "request.class": "interactive"});
    assert_eq!(extensions, expected);
}

#[test]
fn a_request_that_nobody_could_take_is_refused_with_the_remedy() {
    let mut request = ChatRequest::ask("be brief", "hello");
    assert_eq!((request.check(), request.system()), (Ok(()), "be brief".to_owned()));
    request.tools.push(ToolSpec { name: "t".into(), description: String::new(), input_schema: json!("x") });
    assert!(request.check().expect_err("no schema").contains("\"t\""));
    assert!(ChatRequest::default().check().expect_err("no message").contains("at least one message"));
    let native = NativeRequest { provider: "openai".into(), body: json!([]) };
    assert!(ChatRequest { native: Some(native), ..ChatRequest::default() }.check().is_err());
}

#[test]
fn made_ids_are_stable_distinct_and_plain() {
    let id = made_id("default:s-1:4:0", 1);
    assert_eq!(id, made_id("default:s-1:4:0", 1));
    assert_ne!(id, made_id("default:s-1:4:0", 2));
    assert_ne!(id, made_id("default:s-1:4:1", 1));
    assert!(is_made_id(&id) && !is_made_id("call_1") && id.len() <= 40);
    assert!(id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'));
}

#[test]
fn results_of_tools_are_told_to_the_model() {
    let text = |result: &ToolResult| match result.part() {
        Part::ToolResult { content, is_error, .. } => (content[0].as_text().unwrap_or_default().to_owned(), is_error),
        other => panic!("{other:?}"),
    };
    assert_eq!(text(&ToolResult::ok("c", json!("blue"))), ("blue".to_owned(), false));
    assert_eq!(text(&ToolResult::ok("c", json!({"sky": "blue"}))), ("{\"sky\":\"blue\"}".to_owned(), false));
    let mut call = ToolCall { id: "c".into(), name: "look".into(), input: json!({}), invalid: None, signature: None };
    assert_eq!(ToolResult::of_invalid(&call), None);
    call.invalid = Some("{".into());
    let result = ToolResult::of_invalid(&call).expect("a result");
    let (told, is_error) = text(&result);
    let told: Value = serde_json::from_str(&told).expect("json");
    assert_eq!(
        (&told["error"]["code"], &told["error"]["retriable"], is_error),
        (&json!("INVALID_INPUT"), &json!(false), true)
    );
    assert_eq!(json!(result)["success"], false);
}
