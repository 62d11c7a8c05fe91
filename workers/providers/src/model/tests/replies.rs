//! Answers that come whole.

use std::slice::from_ref;

use domain::chat::Finish;

use super::samples::{all, play};
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

/// Of each call its input, and its arguments if they are invalid.
fn called(vendor: Vendor, body: Value) -> Vec<(Value, Option<String>)> {
    let reply = read(vendor, body).expect("an answer");
    reply.tool_calls().map(|call| (call.input.clone(), call.invalid.clone())).collect()
}

#[test]
fn the_call_that_a_message_is_cut_in_is_invalid() {
    let block = |input: Value| json!({"type": "tool_use", "id": "t", "name": "look", "input": input});
    let message = |stop: &str, blocks: &[Value]| json!({"content": blocks, "stop_reason": stop});
    let (none, some) = (block(json!({})), block(json!({"q": 1})));
    let (valid, blank) = ((json!({}), None::<String>), (json!({}), Some(String::new())));
    for stop in ["max_tokens", "model_context_window_exceeded"] {
        let got = called(Vendor::Anthropic, message(stop, &[none.clone(), none.clone()]));
        assert_eq!(got, [valid.clone(), blank.clone()], "{stop}");
        let got = called(Vendor::Anthropic, message(stop, &[some.clone(), some.clone()]));
        assert_eq!(got, [(json!({"q": 1}), None), (json!({}), Some("{\"q\":1}".to_owned()))], "{stop}");
        let after = json!({"type": "text", "text": "and"});
        assert_eq!(called(Vendor::Anthropic, message(stop, &[none.clone(), after])), from_ref(&valid), "{stop}");
    }
    assert_eq!(called(Vendor::Anthropic, message("tool_use", from_ref(&none))), from_ref(&valid));
    let text = json!({"type": "text", "text": "No."});
    assert_eq!(called(Vendor::Anthropic, message("refusal", &[text, none])), [blank]);
}

#[test]
fn the_call_that_an_answer_of_openais_is_cut_in_is_invalid() {
    let (valid, blank) = ((json!({}), None::<String>), (json!({}), Some(String::new())));
    let chat = |finish: &str, arguments: Value| {
        let call = |arguments: Value| json!({"id": "c", "function": {"name": "look", "arguments": arguments}});
        let message = json!({"content": null, "tool_calls": [call("".into()), call(arguments)]});
        called(Vendor::Openai, json!({"choices": [{"finish_reason": finish, "message": message}]}))
    };
    for finish in ["length", "content_filter"] {
        assert_eq!(chat(finish, "".into()), [valid.clone(), blank.clone()], "{finish}");
        assert_eq!(chat(finish, Value::Null), [valid.clone(), blank.clone()], "{finish}");
    }
    for (finish, arguments) in [("tool_calls", json!("")), ("length", json!("{}")), ("length", json!({}))] {
        assert_eq!(chat(finish, arguments), [valid.clone(), valid.clone()], "{finish}");
    }
    let older = json!({"content": null, "function_call": {"name": "look", "arguments": ""}});
    let older = json!({"choices": [{"finish_reason": "length", "message": older}]});
    assert_eq!(called(Vendor::Openai, older), from_ref(&blank));

    let response = |reason: Value, last: Value| {
        let first = json!({"type": "function_call", "call_id": "a", "name": "look", "arguments": ""});
        called(Vendor::OpenaiResponses, json!({"incomplete_details": {"reason": reason}, "output": [first, last]}))
    };
    let item = |status: Value| json!({"type": "function_call", "call_id": "b", "name": "look", "status": status});
    for reason in ["max_output_tokens", "content_filter"] {
        for status in [json!("incomplete"), json!("in_progress"), Value::Null] {
            let got = response(json!(reason), item(status.clone()));
            assert_eq!(got, [valid.clone(), blank.clone()], "{reason} {status}");
        }
        assert_eq!(response(json!(reason), item(json!("completed"))), [valid.clone(), valid.clone()], "{reason}");
    }
    assert_eq!(response(Value::Null, item(Value::Null)), [valid.clone(), valid]);
}

#[test]
fn a_cut_call_is_invalid_whether_its_block_is_closed_or_has_no_piece() {
    let sample = all().into_iter().find(|sample| sample.name == "anthropic/length_at_name").expect("a sample");
    let text = String::from_utf8(sample.bytes).expect("utf-8");
    let event = |value: Value| format!("event: {}\ndata: {value}\n\n", value["type"].as_str().expect("a type"));
    let close = event(json!({"type": "content_block_stop", "index": 1}));
    let closed = text.replace("event: message_delta", &format!("{close}event: message_delta"));
    let pieces: Vec<&str> = text.split_inclusive("\n\n").filter(|event| !event.contains("_block_delta")).collect();
    for stream in [closed, pieces.concat()] {
        let reply = play(Vendor::Anthropic, true, [stream.as_bytes()]).0.expect("a reply");
        let invalid: Vec<Option<&str>> = reply.tool_calls().map(|call| call.invalid.as_deref()).collect();
        assert_eq!(invalid, [None, Some("")], "{stream}");
    }
    // An empty object that came is a whole one.
    let whole = event(json!({"type": "content_block_delta", "index": 1,
        "delta": {"type": "input_json_delta", "partial_json": "{}"}}));
    let whole = text.replace("event: message_delta", &format!("{whole}event: message_delta"));
    let reply = play(Vendor::Anthropic, true, [whole.as_bytes()]).0.expect("a reply");
    assert!(reply.tool_calls().all(|call| call.invalid.is_none()), "{reply:?}");
}

#[test]
fn a_refusal_without_a_text_says_what_the_provider_says_of_it() {
    let sample = all().into_iter().find(|sample| sample.name == "anthropic/refused").expect("a sample");
    let error = play(sample.vendor, true, [sample.bytes.as_slice()]).0.expect_err("a refusal");
    assert!(error.message.ends_with("(refusal: cyber: This looks like an attack.)"), "{}", error.message);
    let told = |details: Value| {
        let body = json!({"content": [], "stop_reason": "refusal", "stop_details": details});
        read(Vendor::Anthropic, body).expect_err("a refusal").message
    };
    let nameless = json!({"type": "refusal", "category": null, "explanation": null});
    for nothing in [Value::Null, json!("x"), nameless] {
        assert!(told(nothing.clone()).ends_with("(refusal)"), "{nothing}");
    }
    assert!(told(json!({"explanation": "ü".repeat(5_000)})).chars().count() < 600);
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
