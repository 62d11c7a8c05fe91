//! Every sample in every piece size: the same reply, or the same failure, and pieces that add up. Answers that
//! were recorded whole lead to what is wanted, too.

use std::path::PathBuf;

use domain::chat::Part;
use proptest::prelude::*;

use super::*;
use crate::sse::Reader;

/// A stream, or an answer that came whole, and what it must lead to.
pub struct Sample {
    pub name: String,
    pub vendor: Vendor,
    pub bytes: Vec<u8>,
    pub want: Value,
}

impl Sample {
    /// Servers of their own make leave out the end mark.
    pub fn original(&self) -> bool {
        !self.name.contains("local")
    }

    /// Where the event begins without which the stream is not complete.
    pub fn mark(&self) -> usize {
        let text = std::str::from_utf8(&self.bytes).expect("utf-8");
        let find = |part: &str| text.find(part).unwrap_or_else(|| panic!("{}: no {part}", self.name));
        match self.vendor {
            Vendor::Anthropic => find("event: message_stop"),
            Vendor::Openai if self.original() => find("data: [DONE]"),
            Vendor::Openai => find("\"finish_reason\":\"stop\""),
            // Not every server names its events.
            Vendor::OpenaiResponses => text.find("response.completed").unwrap_or_else(|| find("response.incomplete")),
            Vendor::Gemini => find("\"finishReason\""),
        }
    }
}

/// The streams.
pub fn all() -> Vec<Sample> {
    let samples = ending(".sse");
    assert!(samples.len() > 40, "the samples are there");
    samples
}

/// The samples whose files end so.
fn ending(end: &str) -> Vec<Sample> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("samples");
    let mut samples = Vec::new();
    for vendor in Vendor::ALL {
        for entry in std::fs::read_dir(root.join(vendor.as_str())).expect("a folder of samples") {
            let path = entry.expect("an entry").path();
            if path.to_str().is_some_and(|path| path.ends_with(end)) {
                let want = std::fs::read(path.with_extension("want.json")).expect("what is wanted");
                samples.push(Sample {
                    name: format!("{}/{}", vendor.as_str(), path.file_stem().expect("a name").display()),
                    vendor,
                    bytes: std::fs::read(&path).expect("a sample"),
                    want: serde_json::from_slice(&want).expect("json"),
                });
            }
        }
    }
    samples.sort_by(|a, b| a.name.cmp(&b.name));
    samples
}

pub type Played = (Result<ChatReply, CallError>, Vec<ChatDelta>);

/// Reads pieces as an attempt does.
pub fn play<'a>(vendor: Vendor, original: bool, pieces: impl IntoIterator<Item = &'a [u8]>) -> Played {
    let (mut reader, mut reply) = (Reader::default(), stream(vendor, Reading { original, ..reading() }));
    let (mut events, mut deltas) = (Vec::new(), Vec::new());
    for piece in pieces {
        reader.feed(piece, &mut events).expect("small enough");
        for event in events.drain(..) {
            if let Err(error) = reply.event(&event, &mut deltas) {
                return (Err(error), deltas);
            }
        }
        if reply.is_complete() {
            break;
        }
    }
    (reply.finish(), deltas)
}

fn whole(sample: &Sample) -> Played {
    play(sample.vendor, sample.original(), [sample.bytes.as_slice()])
}

fn check(sample: &Sample, result: &Result<ChatReply, CallError>) {
    let (name, want) = (&sample.name, &sample.want);
    let reply = match result {
        Ok(reply) => reply,
        Err(error) => {
            assert_eq!(want["error"], error.class.as_str(), "{name}: {error:?}");
            assert_eq!(want["word"].as_str(), error.word.as_deref(), "{name}");
            assert_eq!(want["retry_after_ms"].as_u64(), error.retry_after_ms, "{name}");
            return;
        }
    };
    let mut parts = json!(reply.parts);
    for part in parts.as_array_mut().expect("parts") {
        if part["id"].as_str().is_some_and(domain::chat::is_made_id) {
            part["id"] = "made".into();
        }
        if part["type"] == "tool_result" {
            panic!("{name}: a reply has no results");
        }
    }
    assert_eq!(parts, want["parts"], "{name}");
    assert_eq!(reply.finish.as_str(), want["finish"], "{name}");
    assert_eq!(
        (json!(reply.model), json!(reply.message_id)),
        (want["model"].clone(), want["message_id"].clone()),
        "{name}"
    );
    let tokens = reply.usage.as_ref().map(|usage| {
        assert_eq!(usage.total_tokens.max(usage.input_tokens + usage.output_tokens), usage.total_tokens, "{name}");
        json!([usage.input_tokens, usage.output_tokens, usage.cached_input_tokens, usage.reasoning_tokens])
    });
    assert_eq!(tokens.unwrap_or(Value::Null), want["tokens"], "{name}");
}

/// The pieces of each part, put together, are the part.
fn add_up(sample: &Sample, reply: &ChatReply, deltas: &[ChatDelta]) {
    let mut told: Vec<String> = vec![String::new(); reply.parts.len()];
    let mut last_usage = None;
    for delta in deltas {
        match delta {
            ChatDelta::Text { part, text } | ChatDelta::Reasoning { part, text } => told[*part].push_str(text),
            ChatDelta::ToolCall { part, id, name, arguments } => {
                let call = reply.parts[*part].as_tool_call().expect("a tool call");
                assert!(id.as_ref().is_none_or(|id| *id == call.id), "{}: {id:?}", sample.name);
                assert!(name.as_ref().is_none_or(|name| *name == call.name), "{}: {name:?}", sample.name);
                told[*part].push_str(arguments);
            }
            ChatDelta::Usage { usage } => last_usage = Some(usage.clone()),
        }
    }
    for (part, told) in reply.parts.iter().zip(told) {
        match part {
            Part::Text { text, .. } => assert_eq!(told, *text, "{}", sample.name),
            Part::Reasoning(thoughts) => assert_eq!(told, thoughts.text, "{}", sample.name),
            Part::ToolCall(call) => match (&call.invalid, told.is_empty()) {
                (Some(text), _) => assert_eq!(told, *text, "{}", sample.name),
                (None, true) => assert_eq!(call.input, json!({}), "{}", sample.name),
                (None, false) => {
                    let told: Value = serde_json::from_str(&told).expect("json");
                    assert_eq!(told, call.input, "{}", sample.name);
                }
            },
            _ => assert!(told.is_empty(), "{}", sample.name),
        }
    }
    assert_eq!(last_usage, reply.usage, "{}", sample.name);
}

#[test]
fn every_sample_leads_to_what_is_wanted() {
    for sample in all() {
        let (result, deltas) = whole(&sample);
        check(&sample, &result);
        if let Ok(reply) = &result {
            add_up(&sample, reply, &deltas);
            // The message that was put together reads like one that came whole.
            let again = reply_of_raw(&sample, reply);
            assert_eq!(again.parts, reply.parts, "{}", sample.name);
            assert_eq!((again.finish, &again.usage), (reply.finish, &reply.usage), "{}", sample.name);
        }
    }
}

#[test]
fn every_whole_answer_leads_to_what_is_wanted() {
    let answers = ending(".whole.json");
    assert!(answers.len() > 10, "the answers are there");
    for answer in answers {
        let body = serde_json::from_slice(&answer.bytes).expect("json");
        check(&answer, &read(answer.vendor, body));
    }
}

/// What a server streams and what it answers whole is one reply, but for the ids that it makes up for each.
#[test]
fn recorded_answers_say_the_same_whole_and_streamed() {
    for answer in ending(".whole.json") {
        let name = answer.name.trim_end_matches(".whole");
        let streamed = all().into_iter().find(|sample| sample.name == name).expect("its stream");
        let whole = read(answer.vendor, serde_json::from_slice(&answer.bytes).expect("json")).expect("a reply");
        let (streamed, _) = play(streamed.vendor, streamed.original(), [streamed.bytes.as_slice()]);
        let streamed = streamed.expect("a reply");
        assert_eq!((streamed.text(), streamed.finish), (whole.text(), whole.finish), "{name}");
        let calls = |reply: &ChatReply| -> Vec<(String, Value)> {
            reply.tool_calls().map(|call| (call.name.clone(), call.input.clone())).collect()
        };
        assert_eq!(calls(&streamed), calls(&whole), "{name}");
    }
}

fn reply_of_raw(sample: &Sample, reply: &ChatReply) -> ChatReply {
    // Arguments that are no JSON have no place in an Anthropic message.
    if sample.name == "anthropic/length" {
        return reply.clone();
    }
    read(sample.vendor, reply.raw.clone()).expect("a reply")
}

#[test]
fn it_does_not_matter_where_pieces_end() {
    for sample in all() {
        let expected = whole(&sample);
        for at in 0..=sample.bytes.len() {
            let (head, tail) = sample.bytes.split_at(at);
            assert_eq!(play(sample.vendor, sample.original(), [head, tail]), expected, "{} at {at}", sample.name);
        }
        let bytes = sample.bytes.chunks(1);
        assert_eq!(play(sample.vendor, sample.original(), bytes), expected, "{} byte by byte", sample.name);
    }
}

#[test]
fn a_stream_that_is_cut_is_never_a_reply() {
    for sample in all() {
        let (expected, _) = whole(&sample);
        let Ok(expected) = expected else {
            // The failure is the end of these; before it they are cut like any other.
            for at in 0..sample.bytes.len() {
                let (result, _) = play(sample.vendor, sample.original(), [&sample.bytes[..at]]);
                result.expect_err(&sample.name);
            }
            continue;
        };
        for at in 0..=sample.bytes.len() {
            match play(sample.vendor, sample.original(), [&sample.bytes[..at]]).0 {
                Err(error) => {
                    assert_eq!(error.class, Class::Cut, "{} at {at}: {error:?}", sample.name);
                    assert!(error.is_retriable(), "{} at {at}", sample.name);
                }
                Ok(reply) => {
                    assert!(at > sample.mark(), "{} cut at {at} is taken for whole", sample.name);
                    let partial = sample.vendor == Vendor::Gemini || !sample.original();
                    assert!(partial || reply == expected, "{} at {at}", sample.name);
                }
            }
        }
    }
}

#[test]
fn the_providers_own_service_must_send_its_end_mark() {
    let local = all().into_iter().find(|sample| sample.name == "openai/local_thoughts").expect("a sample");
    assert!(play(Vendor::Openai, false, [local.bytes.as_slice()]).0.is_ok());
    let error = play(Vendor::Openai, true, [local.bytes.as_slice()]).0.expect_err("no end mark");
    assert_eq!(error.class, Class::Cut);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn pieces_of_any_size_lead_to_the_same(pick: prop::sample::Index, cuts: Vec<prop::sample::Index>) {
        let samples = all();
        let sample = &samples[pick.index(samples.len())];
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.index(sample.bytes.len() + 1)).collect();
        cuts.extend([0, sample.bytes.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| &sample.bytes[pair[0]..pair[1]]);
        prop_assert_eq!(play(sample.vendor, sample.original(), pieces), whole(sample));
    }
}
