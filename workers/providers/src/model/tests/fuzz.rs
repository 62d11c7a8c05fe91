//! Streams as no provider sends them: whatever comes, there is no panic, and nothing that lacks its
//! end is a reply.

use proptest::prelude::*;
use proptest::sample::Index;

use super::samples::{Sample, all, play};
use super::*;

/// What happens to a stream on its way.
#[derive(Debug, Clone)]
enum Harm {
    /// Ends early.
    Cut(Index),
    /// An event comes again, at another place.
    Repeat(Index, Index),
    Lose(Index),
    Swap(Index, Index),
    /// A byte is another one.
    Flip(Index, u8),
    /// A value somewhere in the JSON of an event is another one.
    Replace(Index, Index, u8),
}

fn harm() -> impl Strategy<Value = Harm> {
    prop_oneof![
        any::<Index>().prop_map(Harm::Cut),
        any::<(Index, Index)>().prop_map(|(a, b)| Harm::Repeat(a, b)),
        any::<Index>().prop_map(Harm::Lose),
        any::<(Index, Index)>().prop_map(|(a, b)| Harm::Swap(a, b)),
        any::<(Index, u8)>().prop_map(|(a, b)| Harm::Flip(a, b)),
        any::<(Index, Index, u8)>().prop_map(|(a, b, c)| Harm::Replace(a, b, c)),
    ]
}

/// Events as texts, with the blank line that ends each.
fn events(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n");
    text.split_inclusive("\n\n").map(str::to_owned).collect()
}

fn apply(harm: &Harm, events: &mut Vec<String>) {
    if events.is_empty() {
        return;
    }
    let count = events.len();
    match harm {
        Harm::Cut(at) => {
            let mut bytes = events.concat().into_bytes();
            bytes.truncate(at.index(bytes.len() + 1));
            *events = vec![String::from_utf8_lossy(&bytes).into_owned()];
        }
        Harm::Repeat(from, to) => events.insert(to.index(count + 1), events[from.index(count)].clone()),
        Harm::Lose(at) => drop(events.remove(at.index(count))),
        Harm::Swap(a, b) => events.swap(a.index(count), b.index(count)),
        Harm::Flip(at, byte) => {
            let mut bytes = events.concat().into_bytes();
            let at = at.index(bytes.len().max(1));
            if let Some(known) = bytes.get_mut(at) {
                *known = *byte;
            }
            *events = vec![String::from_utf8_lossy(&bytes).into_owned()];
        }
        Harm::Replace(at, field, what) => {
            let event = &mut events[at.index(count)];
            let Some((head, data)) = event.split_once("data: ") else { return };
            let Ok(mut value) = serde_json::from_str::<Value>(data.trim()) else { return };
            let leaves = leaves(&mut value);
            let place = field.index(leaves.max(1));
            replace(&mut value, &mut place.clone(), *what);
            *event = format!("{head}data: {value}\n\n");
        }
    }
}

/// Counts the values in a value, itself included.
fn leaves(value: &mut Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter_mut().map(leaves).sum(),
        Value::Object(map) => map.values_mut().map(leaves).sum(),
        _ => 0,
    }
}

fn replace(value: &mut Value, place: &mut usize, what: u8) -> bool {
    if *place == 0 {
        *value = match what % 8 {
            0 => Value::Null,
            1 => json!([]),
            2 => json!({}),
            3 => json!(""),
            4 => json!(-1),
            5 => json!(u64::MAX),
            6 => json!([[{"text": 1}], null]),
            _ => json!({"type": 7, "index": "x", "content": 1}),
        };
        return true;
    }
    *place -= 1;
    match value {
        Value::Array(list) => list.iter_mut().any(|item| replace(item, place, what)),
        Value::Object(map) => map.values_mut().any(|item| replace(item, place, what)),
        _ => false,
    }
}

/// The end mark is nowhere in it.
fn lacks_its_end(sample: &Sample, text: &str) -> bool {
    let marks: &[&str] = match sample.vendor {
        Vendor::Anthropic => &["message_stop"],
        Vendor::Openai if sample.original() => &["[DONE]"],
        Vendor::Openai => &["finish_reason\":\""],
        Vendor::OpenaiResponses => &["response.completed", "response.incomplete"],
        Vendor::Gemini => &["finishReason"],
    };
    !marks.iter().any(|mark| text.contains(mark))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn harmed_streams_neither_panic_nor_count_without_their_end(
        pick: Index,
        harms in prop::collection::vec(harm(), 1..6),
    ) {
        let samples = all_once();
        let sample = &samples[pick.index(samples.len())];
        let mut events = events(&sample.bytes);
        for harm in &harms {
            apply(harm, &mut events);
        }
        let text = events.concat();
        let (result, _) = play(sample.vendor, sample.original(), [text.as_bytes()]);
        if lacks_its_end(sample, &text) {
            prop_assert!(result.is_err(), "{} is taken for whole: {text}", sample.name);
        }
    }

    #[test]
    fn noise_is_never_a_reply(bytes: Vec<u8>, pick in 0..Vendor::ALL.len()) {
        let (result, deltas) = play(Vendor::ALL[pick], true, [bytes.as_slice()]);
        prop_assert!(result.is_err() && deltas.is_empty());
    }

    #[test]
    fn noise_in_json_is_read_without_panic(text in "\\PC{0,40}", number: i64, pick in 0..Vendor::ALL.len()) {
        let values = [json!(text), json!(number), json!([text, number]), json!({"content": text, "choices": [number]}),
            json!({"output": [{"type": "message", "content": text}, number]}), json!({"candidates": [{"content": number}]}),
            json!({"content": [number, {"type": "tool_use", "input": text}], "stop_reason": number}),
            json!({"choices": [{"message": {"tool_calls": [text, {"function": number}], "content": [number]}}]}),
            json!({"error": text}), json!({"error": {"code": number, "details": [{"violations": text}]}})];
        for value in values {
            let whole = read(Vendor::ALL[pick], value.clone());
            if value["error"].is_null() {
                continue;
            }
            prop_assert!(whole.is_err());
        }
    }
}

fn all_once() -> &'static [Sample] {
    static SAMPLES: std::sync::OnceLock<Vec<Sample>> = std::sync::OnceLock::new();
    SAMPLES.get_or_init(all)
}
