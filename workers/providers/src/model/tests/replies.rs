//! Answers that come whole.

use domain::chat::Finish;

use super::*;

fn tokens(reply: &ChatReply) -> (u64, u64, u64) {
    let usage = reply.usage.clone().expect("usage");
    (usage.input_tokens, usage.output_tokens, usage.total_tokens)
}

#[test]
fn anthropic_answers_with_a_message() {
    let reply = read(
        Vendor::Anthropic,
        json!({"id": "msg_1", "model": "m-1b", "stop_reason": "tool_use",
            "content": [{"type": "thinking", "thinking": "x", "signature": "s"}, {"type": "text", "text": "a"},
                {"type": "text", "text": "b"}, {"type": "tool_use", "id": "t1", "name": "look", "input": {"q": 1}}],
            "usage": {"input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 3}}),
    )
    .expect("an answer");
    assert_eq!((reply.text().as_str(), reply.model.as_str(), reply.finish), ("ab", "m-1b", Finish::ToolUse));
    assert_eq!(tokens(&reply), (12, 3, 15));
    let call = reply.tool_calls().next().expect("a call");
    assert_eq!((call.id.as_str(), call.name.as_str(), &call.input), ("t1", "look", &json!({"q": 1})));
    assert_eq!(reply.raw["content"][0]["signature"], "s");
}

#[test]
fn openai_answers_with_a_completion() {
    let reply = read(
        Vendor::Openai,
        json!({"model": "m-1b", "choices": [{"finish_reason": "length",
            "message": {"content": [{"type": "text", "text": "a"}], "tool_calls": [
                {"id": "c1", "function": {"name": "look", "arguments": "{\"q\": 1}"}},
                {"function": {"name": "look", "arguments": {"q": 2}}}]}}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 3}}),
    )
    .expect("an answer");
    assert_eq!((reply.text().as_str(), reply.finish, tokens(&reply)), ("a", Finish::Length, (5, 3, 8)));
    let inputs: Vec<&Value> = reply.tool_calls().map(|call| &call.input).collect();
    assert_eq!(inputs, [&json!({"q": 1}), &json!({"q": 2})]);
    let older = read(
        Vendor::Openai,
        json!({"choices": [{"finish_reason": "function_call",
            "message": {"content": null, "function_call": {"name": "look", "arguments": "{}"}}}]}),
    )
    .expect("an answer");
    assert_eq!((older.finish, older.tool_calls().count(), older.usage), (Finish::ToolUse, 1, None));
}

#[test]
fn openai_answers_with_a_response() {
    let reply = read(
        Vendor::OpenaiResponses,
        json!({"id": "resp_1", "status": "completed", "model": "m-1b", "output": [
            {"type": "reasoning", "id": "rs", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
            {"type": "function_call", "id": "fc", "call_id": "c1", "name": "look", "arguments": "{\"q\":"},
            {"type": "message", "content": [{"type": "output_text", "text": "a"}]}],
            "usage": {"input_tokens": 5, "output_tokens": 3, "total_tokens": 8}}),
    )
    .expect("an answer");
    assert_eq!((reply.text().as_str(), reply.finish, tokens(&reply)), ("a", Finish::ToolUse, (5, 3, 8)));
    let call = reply.tool_calls().next().expect("a call");
    assert_eq!((call.id.as_str(), call.invalid.as_deref()), ("c1", Some("{\"q\":")));
    let failed = json!({"status": "failed", "error": {"code": "server_error", "message": "no"}, "output": []});
    assert_eq!(read(Vendor::OpenaiResponses, failed).expect_err("failed").class, Class::Overloaded);
    let queued = json!({"status": "queued", "error": null, "output": []});
    assert!(read(Vendor::OpenaiResponses, queued).expect_err("not finished").message.contains("queued"));
}

#[test]
fn gemini_answers_with_candidates() {
    let body = json!({"modelVersion": "m-1b", "candidates": [{"finishReason": "STOP",
        "content": {"parts": [{"text": "hm", "thought": true}, {"text": "a"}]}}],
        "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 3, "thoughtsTokenCount": 4}});
    let reply = read(Vendor::Gemini, body).expect("an answer");
    assert_eq!((reply.text().as_str(), reply.finish, tokens(&reply)), ("a", Finish::Stop, (5, 7, 12)));
    // A proxy that gives the stream as one list.
    let list = json!([{"candidates": [{"content": {"parts": [{"text": "a"}]}}]},
        {"candidates": [{"content": {"parts": [{"text": "b"}]}, "finishReason": "MAX_TOKENS"}]}]);
    let reply = read(Vendor::Gemini, list).expect("an answer");
    assert_eq!((reply.text().as_str(), reply.finish), ("ab", Finish::Length));
    let cut = json!([{"candidates": [{"content": {"parts": [{"text": "a"}]}}]}]);
    assert_eq!(read(Vendor::Gemini, cut).expect_err("no end").class, Class::Cut);
}

#[test]
fn declined_and_empty_answers_are_errors() {
    let class = |vendor, body| read(vendor, body).expect_err("an error").class;
    assert_eq!(class(Vendor::Anthropic, json!({"content": [], "stop_reason": "refusal"})), Class::Safety);
    assert_eq!(class(Vendor::Anthropic, json!({"nothing": 1})), Class::Unknown);
    let filtered = json!({"choices": [{"message": {"content": null}, "finish_reason": "content_filter"}]});
    assert_eq!(class(Vendor::Openai, filtered), Class::Safety);
    assert_eq!(class(Vendor::Openai, json!({"choices": []})), Class::Unknown);
    let filtered = json!({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}, "output": []});
    assert_eq!(class(Vendor::OpenaiResponses, filtered), Class::Safety);
    assert_eq!(class(Vendor::Gemini, json!({"promptFeedback": {"blockReason": "SAFETY"}})), Class::Safety);
    assert_eq!(class(Vendor::Gemini, json!({})), Class::Unknown);
}
