//! What is sent: one conversation in every shape, native bodies, and replies that go back.

use std::collections::BTreeMap;

use domain::chat::{
    ImageSource, Message, NativeRequest, Parameters, Part, Reasoning, Role, ToolCall, ToolChoice, ToolSpec,
};

use super::samples::{all, play};
use super::*;

fn call(id: &str, name: &str, input: Value) -> ToolCall {
    ToolCall { id: id.to_owned(), name: name.to_owned(), input, invalid: None, signature: None }
}

/// Two tools asked at once, one in vain; a picture; thoughts of somebody else; a note in the middle.
fn conversation() -> ChatRequest {
    let picture = ImageSource::Base64 { media_type: "image/png".to_owned(), data: "aGk=".to_owned() };
    let foreign = Reasoning {
        text: "secret thoughts".to_owned(),
        signature: Some("s".to_owned()),
        id: None,
        provider: "elsewhere".to_owned(),
    };
    let broken = ToolCall { invalid: Some("{\"zone\"".to_owned()), ..call("b", "time", json!({})) };
    let result = Part::ToolResult {
        call_id: "a".to_owned(),
        content: vec![Part::text("{\"sky\": \"blue\"}"), Part::Image { source: picture.clone() }],
        is_error: false,
    };
    ChatRequest {
        messages: vec![
            Message::text(Role::System, "be brief"),
            Message {
                name: Some("ann".to_owned()),
                ..Message::new(Role::User, vec![Part::text("look"), Part::Image { source: picture }])
            },
            Message::new(
                Role::Assistant,
                vec![
                    Part::Reasoning(foreign),
                    Part::text(""),
                    Part::ToolCall(call("a", "look", json!({"at": 1}))),
                    Part::ToolCall(broken),
                ],
            ),
            Message::text(Role::System, "hurry"),
            Message::new(Role::Tool, vec![result]),
            Message::new(Role::Tool, vec![Part::tool_result("b", "bad arguments", true)]),
        ],
        tools: vec![ToolSpec {
            name: "look".to_owned(),
            description: "looks".to_owned(),
            input_schema: json!({"type": "object"}),
        }],
        parameters: Parameters {
            max_tokens: Some(100),
            temperature: Some(0.5),
            top_p: Some(0.9),
            stop_sequences: vec!["END".to_owned()],
            tool_choice: Some(ToolChoice::Tool("look".to_owned())),
            json: true,
            headers: BTreeMap::from([("anthropic-beta".to_owned(), "beta-of-the-test".to_owned())]),
            extra: json!({"seed": 4, "model": "x"}).as_object().expect("an object").clone(),
        },
        model: None,
        native: None,
    }
}

fn sent(vendor: Vendor, base_url: &str, stream: bool) -> Wire {
    request(&endpoint(vendor, base_url), &conversation(), stream).expect("a request")
}

const SOURCE: &str = "data:image/png;base64,aGk=";

#[test]
fn anthropic_is_sent_messages() {
    let wire = sent(Vendor::Anthropic, "https://h/v1", true);
    assert_eq!(wire.url, "https://h/v1/messages");
    assert_eq!((wire.headers[0].1.as_str(), wire.key_header), ("2023-06-01", ("x-api-key", "")));
    let picture = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}});
    let expected = json!({
        "model": "m-1", "stream": true, "max_tokens": 100, "system": "be brief", "temperature": 0.5, "top_p": 0.9,
        "stop_sequences": ["END"], "seed": 4,
        "tools": [{"name": "look", "description": "looks", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "tool", "name": "look"},
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "look"}, picture]},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "a", "name": "look", "input": {"at": 1}},
                {"type": "tool_use", "id": "b", "name": "time", "input": {"INVALID_JSON": "{\"zone\""}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "is_error": false,
                    "content": [{"type": "text", "text": "{\"sky\": \"blue\"}"}, picture]},
                {"type": "tool_result", "tool_use_id": "b", "is_error": true,
                    "content": [{"type": "text", "text": "bad arguments"}]},
                {"type": "text", "text": "hurry"}]},
        ],
    });
    assert_eq!(wire.body, expected);
}

#[test]
fn openai_is_sent_a_chat() {
    let wire = sent(Vendor::Openai, "http://h/v1", true);
    assert_eq!((wire.url.as_str(), wire.key_header), ("http://h/v1/chat/completions", ("authorization", "Bearer ")));
    let picture = json!({"type": "image_url", "image_url": {"url": SOURCE}});
    let expected = json!({
        "model": "m-1", "stream": true, "stream_options": {"include_usage": true}, "max_tokens": 100,
        "temperature": 0.5, "top_p": 0.9, "stop": ["END"], "seed": 4, "response_format": {"type": "json_object"},
        "tools": [{"type": "function",
            "function": {"name": "look", "description": "looks", "parameters": {"type": "object"}}}],
        "tool_choice": {"type": "function", "function": {"name": "look"}},
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "name": "ann", "content": [{"type": "text", "text": "look"}, picture]},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{\"at\":1}"}},
                {"id": "b", "type": "function", "function": {"name": "time", "arguments": "{\"zone\""}}]},
            {"role": "system", "content": "hurry"},
            {"role": "tool", "tool_call_id": "a", "content": "{\"sky\": \"blue\"}"},
            {"role": "user", "content": [picture]},
            {"role": "tool", "tool_call_id": "b", "content": "Error: bad arguments"},
        ],
    });
    assert_eq!(wire.body, expected);
    let original = sent(Vendor::Openai, "https://api.openai.com/v1", false).body;
    assert_eq!((&original["max_completion_tokens"], &original["max_tokens"]), (&json!(100), &Value::Null));
    for host in ["mine.openai.azure.com", "mine.cognitiveservices.azure.com"] {
        let azure = sent(Vendor::Openai, &format!("https://{host}/openai/v1"), false).body;
        assert_eq!((&azure["max_completion_tokens"], &azure["max_tokens"]), (&json!(100), &Value::Null), "{host}");
    }
    assert_eq!((&original["stream"], &original["stream_options"]), (&json!(false), &Value::Null));
}

#[test]
fn responses_is_sent_items() {
    let wire = sent(Vendor::OpenaiResponses, "https://api.openai.com/v1", true);
    assert_eq!(wire.url, "https://api.openai.com/v1/responses");
    let picture = json!({"type": "input_image", "image_url": SOURCE, "detail": "auto"});
    let expected = json!({
        "model": "m-1", "stream": true, "store": false, "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 100, "temperature": 0.5, "top_p": 0.9, "seed": 4,
        "text": {"format": {"type": "json_object"}},
        "tools": [{"type": "function", "name": "look", "description": "looks", "parameters": {"type": "object"},
            "strict": false}],
        "tool_choice": {"type": "function", "name": "look"},
        "input": [
            {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "be brief"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "look"}, picture]},
            {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{\"at\":1}"},
            {"type": "function_call", "call_id": "b", "name": "time", "arguments": "{\"zone\""},
            {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "hurry"}]},
            {"type": "function_call_output", "call_id": "a",
                "output": [{"type": "input_text", "text": "{\"sky\": \"blue\"}"}, picture]},
            {"type": "function_call_output", "call_id": "b", "output": "Error: bad arguments"},
        ],
    });
    assert_eq!(wire.body, expected);
}

/// What a model is sent that is to go on behind thoughts of `openai_responses`.
fn sent_thoughts(model: &str) -> Value {
    let thoughts = Reasoning {
        text: "hm".to_owned(),
        signature: Some("gAAAAABo".to_owned()),
        id: Some("rs_1".to_owned()),
        provider: Vendor::OpenaiResponses.as_str().to_owned(),
    };
    let said = vec![Part::Reasoning(thoughts), Part::text("A cat.")];
    let asked = ChatRequest {
        messages: vec![Message::new(Role::Assistant, said), Message::text(Role::User, "and now?")],
        model: Some(model.to_owned()),
        ..ChatRequest::default()
    };
    request(&endpoint(Vendor::OpenaiResponses, "https://api.openai.com/v1"), &asked, true).expect("a request").body
}

#[test]
fn models_that_do_not_think_are_neither_asked_for_thoughts_nor_sent_any() {
    let plain =
        ["gpt-4o", "gpt-4o-mini", "gpt-4.1-nano", "gpt-4", "gpt-3.5-turbo", "gpt-5-chat-latest", "openai/gpt-4o"];
    for model in plain.into_iter().chain(["chatgpt-4o-latest", "ft:gpt-4.1-mini-2025-04-14:mine::id"]) {
        let body = sent_thoughts(model);
        assert!(body.get("include").is_none(), "{model}: {body}");
        assert_eq!(body["input"][0]["type"], "message", "{model}: {body}");
    }
    for model in ["gpt-5", "gpt-5-mini", "gpt-5.1", "o1", "o3", "o4-mini", "openai/gpt-oss-120b", "my-deployment"] {
        let body = sent_thoughts(model);
        assert_eq!(body["include"], json!(["reasoning.encrypted_content"]), "{model}");
        assert_eq!(body["input"][0]["encrypted_content"], "gAAAAABo", "{model}: {body}");
    }
}

#[test]
fn gemini_is_sent_contents() {
    let wire = sent(Vendor::Gemini, "https://h/v1beta", true);
    assert_eq!(wire.url, "https://h/v1beta/models/m-1:streamGenerateContent?alt=sse");
    assert_eq!(sent(Vendor::Gemini, "https://h", false).url, "https://h/v1beta/models/m-1:generateContent");
    let picture = json!({"inlineData": {"mimeType": "image/png", "data": "aGk="}});
    let expected = json!({
        "systemInstruction": {"parts": [{"text": "be brief"}]}, "seed": 4, "model": "x",
        "generationConfig": {"maxOutputTokens": 100, "temperature": 0.5, "topP": 0.9, "stopSequences": ["END"],
            "responseMimeType": "application/json"},
        "tools": [{"functionDeclarations": [
            {"name": "look", "description": "looks", "parametersJsonSchema": {"type": "object"}}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look"]}},
        "contents": [
            {"role": "user", "parts": [{"text": "look"}, picture]},
            {"role": "model", "parts": [
                {"functionCall": {"id": "a", "name": "look", "args": {"at": 1}}},
                {"functionCall": {"id": "b", "name": "time", "args": {"INVALID_JSON": "{\"zone\""}}}]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "a", "name": "look", "response": {"sky": "blue"}}},
                {"functionResponse": {"id": "b", "name": "time", "response": {"error": "bad arguments"}}},
                picture, {"text": "hurry"}]},
        ],
    });
    let mut body = wire.body;
    // Pictures of a result stand behind it.
    let parts = body["contents"][2]["parts"].as_array_mut().expect("parts");
    parts.sort_by_key(|part| (part["functionResponse"].is_null(), part["text"].is_string()));
    body["model"] = "x".into();
    assert_eq!(body, expected);
}

/// A call of an earlier turn, whose provider had no ids, between what was said then and what is asked now.
fn resumed() -> ChatRequest {
    let made = domain::chat::made_id("t1.1", 0);
    let reply = vec![Part::text("I look."), Part::ToolCall(call(&made, "look", json!({})))];
    ChatRequest {
        messages: vec![
            Message::text(Role::System, "be brief"),
            Message::text(Role::User, "what is there?"),
            Message::new(Role::Assistant, reply),
            Message::new(Role::Tool, vec![Part::tool_result(made, "a cat", false)]),
            Message::text(Role::Assistant, "A cat."),
            Message::text(Role::User, "and now?"),
        ],
        tools: conversation().tools,
        ..ChatRequest::default()
    }
}

#[test]
fn calls_of_earlier_turns_are_sent_between_the_words_of_then_and_now() {
    let made = domain::chat::made_id("t1.1", 0);
    let body = |vendor| request(&endpoint(vendor, "https://h"), &resumed(), false).expect("a request").body;
    let text = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(
        body(Vendor::Anthropic)["messages"],
        json!([
            {"role": "user", "content": [text("what is there?")]},
            {"role": "assistant", "content": [text("I look."),
                {"type": "tool_use", "id": made, "name": "look", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": made, "is_error": false, "content": [text("a cat")]}]},
            {"role": "assistant", "content": [text("A cat.")]},
            {"role": "user", "content": [text("and now?")]},
        ])
    );
    assert_eq!(
        body(Vendor::Openai)["messages"],
        json!([
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "what is there?"},
            {"role": "assistant", "content": "I look.", "tool_calls": [
                {"id": made, "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": made, "content": "a cat"},
            {"role": "assistant", "content": "A cat."},
            {"role": "user", "content": "and now?"},
        ])
    );
    let items = body(Vendor::OpenaiResponses);
    let kinds: Vec<&Value> = items["input"].as_array().expect("items").iter().map(|item| &item["type"]).collect();
    assert_eq!(kinds, ["message", "message", "message", "function_call", "function_call_output", "message", "message"]);
    assert_eq!(items["input"][3]["call_id"], items["input"][4]["call_id"]);
    assert_eq!(
        body(Vendor::Gemini)["contents"],
        json!([
            {"role": "user", "parts": [{"text": "what is there?"}]},
            {"role": "model", "parts": [{"text": "I look."}, {"functionCall": {"name": "look", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"result": "a cat"}}}]},
            {"role": "model", "parts": [{"text": "A cat."}]},
            {"role": "user", "parts": [{"text": "and now?"}]},
        ])
    );
}

#[test]
fn nobody_sees_the_thoughts_of_another() {
    for vendor in Vendor::ALL {
        let body = sent(vendor, "https://h", true).body.to_string();
        assert!(!body.contains("secret thoughts"), "{}: {body}", vendor.as_str());
    }
}

#[test]
fn native_bodies_pass_as_they_are() {
    let body = json!({"anything": [1, {"at": "all"}], "model": "other", "stream": "?"});
    for vendor in Vendor::ALL {
        let native = NativeRequest { provider: vendor.as_str().to_owned(), body: body.clone() };
        let mut asked = ChatRequest { native: Some(native), ..conversation() };
        let wire = request(&endpoint(vendor, "https://h"), &asked, false).expect("a request");
        let mut expected = json!({"anything": [1, {"at": "all"}], "model": "m-1", "stream": false});
        if vendor == Vendor::Gemini {
            expected = json!({"anything": [1, {"at": "all"}]});
        }
        assert_eq!(wire.body, expected, "{}", vendor.as_str());
        asked.model = Some("m-2".to_owned());
        let wire = request(&endpoint(vendor, "https://h"), &asked, true).expect("a request");
        assert!(wire.body["model"] == "m-2" || wire.url.contains("/m-2:stream"), "{}", vendor.as_str());
        let other = NativeRequest { provider: "other".to_owned(), body: body.clone() };
        let refused = request(&endpoint(vendor, "https://h"), &ChatRequest { native: Some(other), ..asked }, true);
        let refused = refused.expect_err("another provider's");
        assert_eq!((refused.class, refused.sent), (Class::Invalid, false));
        assert!(refused.message.contains("\"other\"") && refused.message.contains(vendor.as_str()), "{refused:?}");
    }
}

#[test]
fn a_model_that_is_part_of_an_address_cannot_lead_elsewhere() {
    let of_profile =
        |name: &str| request(&Endpoint::new(Vendor::Gemini, name, "https://h", None), &conversation(), false);
    for name in ["../files", "a/b", "m:predict?x=", "models/models/m", "a b", "..", ""] {
        let of_request = ChatRequest { model: Some(name.to_owned()), ..conversation() };
        for refused in [of_profile(name), request(&endpoint(Vendor::Gemini, "https://h"), &of_request, false)] {
            let refused = refused.expect_err(name);
            assert_eq!((refused.class, refused.sent), (Class::Invalid, false), "{name}");
            assert!(refused.message.contains("is no name of a model"), "{refused:?}");
        }
        let elsewhere = request(&endpoint(Vendor::Openai, "https://h"), &of_request, false).expect("a request");
        assert_eq!(elsewhere.body["model"], name, "in a body it is a text like any other");
    }
    for name in ["models/gemini-2.5-flash", "gemini-2.5-flash"] {
        let wire = of_profile(name).expect("a request");
        assert_eq!(wire.url, "https://h/v1beta/models/gemini-2.5-flash:generateContent");
    }
}

#[test]
fn every_provider_has_its_own_shape() {
    let mut shapes = NativeRequest::PROVIDERS.map(Vendor::parse);
    shapes.sort();
    let mut vendors = Vendor::ALL.map(Some);
    vendors.sort();
    assert_eq!(shapes, vendors);
}

#[test]
fn extra_headers_are_sent_beside_the_body_and_no_others() {
    let native = |vendor: Vendor| NativeRequest { provider: vendor.as_str().to_owned(), body: json!({"a": 1}) };
    for vendor in Vendor::ALL {
        for native in [None, Some(native(vendor))] {
            let asked = ChatRequest { native, ..conversation() };
            let wire = request(&endpoint(vendor, "https://h"), &asked, false).expect("a request");
            assert_eq!(wire.headers.last(), Some(&("anthropic-beta", "beta-of-the-test".to_owned())));
            assert!(!wire.body.to_string().contains("beta"), "{}", wire.body);
        }
    }
    for (name, value) in [("authorization", "x"), ("host", "x"), ("content-type", "x"), ("openai-beta", "a\r\nb")] {
        let mut asked = conversation();
        asked.parameters.headers = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        let refused = request(&endpoint(Vendor::Openai, "https://h"), &asked, false).expect_err(name);
        assert_eq!((refused.class, refused.sent), (Class::Invalid, false), "{name}");
        assert!(refused.message.contains(name), "{refused:?}");
    }
}

/// A reply of a sample and the results of its calls, sent back to where it came from.
fn sent_back(name: &str) -> (ChatReply, Wire) {
    let sample = all().into_iter().find(|sample| sample.name == name).expect("a sample");
    let (reply, _) = play(sample.vendor, sample.original(), [sample.bytes.as_slice()]);
    let reply = reply.expect("a reply");
    let mut asked = ChatRequest::ask("", "go on");
    asked.messages.push(reply.message());
    let results = reply.tool_calls().map(|call| Part::tool_result(call.id.clone(), "done", false)).collect();
    asked.messages.push(Message::new(Role::Tool, results));
    let base_url = if sample.original() { "https://api.openai.com/v1" } else { "http://h/v1" };
    let wire = request(&endpoint(sample.vendor, base_url), &asked, true).expect("a request");
    (reply, wire)
}

#[test]
fn anthropics_blocks_go_back_as_they_came() {
    let (reply, wire) = sent_back("anthropic/tools");
    assert_eq!(wire.body["messages"][1]["content"], reply.raw["content"]);
    assert_eq!(wire.body["messages"][2]["content"][1]["tool_use_id"], "toolu_02");
    let (reply, wire) = sent_back("anthropic/search");
    let (sent, came) = (&wire.body["messages"][1]["content"], &reply.raw["content"]);
    assert_eq!((&sent[0], &sent[1]), (&came[0], &came[1]), "what only the provider understands");
}

#[test]
fn geminis_parts_go_back_with_their_signatures() {
    let (reply, wire) = sent_back("gemini/tools");
    let came: Vec<&Value> = reply.raw["candidates"][0]["content"]["parts"].as_array().expect("parts").iter().collect();
    let sent: Vec<&Value> = wire.body["contents"][1]["parts"].as_array().expect("parts").iter().collect();
    // Thoughts without a signature may stay away; ids that we made do.
    assert_eq!(sent, came[1..]);
    let answers = &wire.body["contents"][2]["parts"];
    let first = json!({"functionResponse": {"name": "get_weather", "response": {"result": "done"}}});
    assert_eq!((&answers[0], &answers[1]["functionResponse"]["id"]), (&first, &json!("fc-2")));
}

#[test]
fn openais_calls_and_thoughts_go_back() {
    let (reply, wire) = sent_back("openai/tools");
    let message = &reply.raw["choices"][0]["message"];
    assert_eq!(wire.body["messages"][1]["tool_calls"], message["tool_calls"]);
    assert_eq!(wire.body["messages"][3]["tool_call_id"], "call_b");
    let (_, wire) = sent_back("openai/local_tools");
    assert_eq!(wire.body["messages"][1]["reasoning_content"], "Both.", "servers that think want it");
    let (reply, wire) = sent_back("openai_responses/tools");
    let thoughts = &wire.body["input"][1];
    assert_eq!((&thoughts["id"], &thoughts["encrypted_content"]), (&json!("rs_1"), &json!("gAAAAABo")));
    let sent: Vec<&Value> = (2..4).map(|at| &wire.body["input"][at]["call_id"]).collect();
    assert_eq!(sent, [&reply.raw["output"][1]["call_id"], &reply.raw["output"][2]["call_id"]]);
}
