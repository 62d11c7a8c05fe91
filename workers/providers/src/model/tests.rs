//! The adapters on recorded bodies: what is sent, what is read, how errors are classed.

use super::*;

fn endpoint(vendor: Vendor, base_url: &str) -> Endpoint {
    Endpoint {
        vendor,
        model: "m-1".to_owned(),
        base_url: base_url.to_owned(),
        key: Secret::new("sk-hidden"),
        max_tokens: Some(100),
    }
}

fn ask() -> ModelRequest {
    ModelRequest {
        profile: None,
        system: "be brief".to_owned(),
        prompt: "hello".to_owned(),
        max_tokens: 4_096,
        json: true,
    }
}

#[test]
fn anthropic_speaks_messages() {
    let wire = anthropic::request(&endpoint(Vendor::Anthropic, "https://h"), &ask());
    assert_eq!(wire.url, "https://h/v1/messages");
    let body = json!({"model": "m-1", "max_tokens": 100, "system": "be brief",
        "messages": [{"role": "user", "content": "hello"}]});
    assert_eq!(wire.body, body);
    let answer = anthropic::answer(&json!({"model": "m-1b", "stop_reason": "tool_use",
        "content": [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"},
            {"type": "tool_use", "id": "t1", "name": "look", "input": {"q": 1}}],
        "usage": {"input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 3}}))
    .expect("an answer");
    assert_eq!((answer.text.as_str(), answer.model.as_str(), answer.finish), ("ab", "m-1b", Finish::ToolCalls));
    assert_eq!(answer.usage, Usage { input_tokens: 12, output_tokens: 3 });
    assert_eq!(answer.tool_calls, [json!({"id": "t1", "name": "look", "arguments": {"q": 1}})]);
}

#[test]
fn openai_speaks_chat_completions() {
    let wire = openai::request(&endpoint(Vendor::Openai, "http://h/v1"), &ask());
    assert_eq!((wire.url.as_str(), wire.key_header), ("http://h/v1/chat/completions", ("authorization", "Bearer ")));
    assert_eq!(
        (&wire.body["max_tokens"], &wire.body["response_format"]),
        (&json!(100), &json!({"type": "json_object"}))
    );
    assert_eq!(wire.body["messages"][0], json!({"role": "system", "content": "be brief"}));
    let original = openai::request(&endpoint(Vendor::Openai, "https://api.openai.com/v1"), &ask());
    assert_eq!(original.body["max_completion_tokens"], 100);
    let answer = openai::answer(&json!({"model": "m-1b", "choices": [{"finish_reason": "length",
        "message": {"content": [{"type": "text", "text": "a"}], "tool_calls": [
            {"id": "c1", "function": {"name": "look", "arguments": "{\"q\": 1}"}}]}}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 3}}))
    .expect("an answer");
    assert_eq!((answer.text.as_str(), answer.finish), ("a", Finish::Length));
    assert_eq!(answer.usage, Usage { input_tokens: 5, output_tokens: 3 });
    assert_eq!(answer.tool_calls, [json!({"id": "c1", "name": "look", "arguments": {"q": 1}})]);
}

#[test]
fn gemini_speaks_generate_content() {
    let wire = gemini::request(&endpoint(Vendor::Gemini, "https://h"), &ask());
    assert_eq!(wire.url, "https://h/v1beta/models/m-1:generateContent");
    assert_eq!(wire.body["generationConfig"], json!({"maxOutputTokens": 100, "responseMimeType": "application/json"}));
    let answer = gemini::answer(&json!({"modelVersion": "m-1b", "candidates": [{"finishReason": "STOP",
        "content": {"parts": [{"text": "hm", "thought": true}, {"text": "a"}]}}],
        "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 3, "thoughtsTokenCount": 4}}))
    .expect("an answer");
    assert_eq!((answer.text.as_str(), answer.finish), ("a", Finish::Stop));
    assert_eq!(answer.usage, Usage { input_tokens: 5, output_tokens: 7 });
}

#[test]
fn declined_and_empty_answers_are_errors() {
    let class = |result: Result<Answer, CallError>| result.expect_err("an error").class;
    assert_eq!(class(anthropic::answer(&json!({"content": [], "stop_reason": "refusal"}))), Class::Safety);
    assert_eq!(class(anthropic::answer(&json!({"nothing": 1}))), Class::Invalid);
    let filtered = json!({"choices": [{"message": {"content": null}, "finish_reason": "content_filter"}]});
    assert_eq!(class(openai::answer(&filtered)), Class::Safety);
    assert_eq!(class(openai::answer(&json!({"choices": []}))), Class::Invalid);
    assert_eq!(class(gemini::answer(&json!({"promptFeedback": {"blockReason": "SAFETY"}}))), Class::Safety);
    assert_eq!(class(gemini::answer(&json!({}))), Class::Invalid);
}

#[test]
fn error_answers_are_classed() {
    let cases = [
        (Vendor::Anthropic, 529, json!({"error": {"type": "overloaded_error", "message": "busy"}}), Class::Overloaded),
        (Vendor::Anthropic, 401, json!({"error": {"type": "authentication_error", "message": "key"}}), Class::Auth),
        (Vendor::Anthropic, 400, json!({"error": {"type": "invalid_request_error", "message": "max"}}), Class::Invalid),
        (Vendor::Openai, 429, json!({"error": {"message": "slow", "type": "requests"}}), Class::RateLimit),
        (Vendor::Openai, 429, json!({"error": {"message": "pay", "code": "insufficient_quota"}}), Class::Quota),
        (Vendor::Openai, 404, json!({"error": "model not found"}), Class::Invalid),
        (Vendor::Openai, 503, json!("down"), Class::Overloaded),
        (
            Vendor::Gemini,
            400,
            json!([{"error": {"message": "API key not valid", "status": "INVALID_ARGUMENT"}}]),
            Class::Auth,
        ),
        (Vendor::Gemini, 403, json!({"error": {"message": "no", "status": "PERMISSION_DENIED"}}), Class::Auth),
        (Vendor::Gemini, 500, json!({"error": {"message": "oops"}}), Class::Overloaded),
    ];
    for (vendor, status, body, class) in cases {
        let error = failure::classify(vendor, status, Some(&body), body.to_string().as_bytes());
        assert_eq!(error.class, class, "{status} {body}");
        assert!(error.message.starts_with(vendor.as_str()), "{}", error.message);
    }
    let body = json!({"error": {"message": "slow", "details": [{"@type": "x"}, {"retryDelay": "1.5s"}]}});
    assert_eq!(failure::classify(Vendor::Gemini, 429, Some(&body), b"").retry_after_ms, Some(1_500));
}
