//! Frames that come from outside: from a model or from a step function of another program.
//! Every check names the field, so that the author of the other side sees what to change.

use schemas::frame::{FrameOut, StepToken};
use schemas::limits::{DATA_BYTES_MAX, STATE_BYTES_MAX, TEXT_BYTES_MAX};
use serde_json::{Map, Value};

use super::settings::{brief, kind_of};

/// Reads an answer to the step `asked`. `step` may be left out, `next_step` when `done`.
///
/// # Errors
/// What is wrong, in words, naming the field.
pub fn read_frame(asked: &StepToken, answer: Value) -> Result<FrameOut, String> {
    let Value::Object(mut map) = answer else {
        return Err(format!("the frame must be an object, not {}", kind_of(&answer)));
    };
    if let Some(step) = text_field(&mut map, "step")?
        && step != asked.as_str()
    {
        return Err(format!("step is {step:?}, but the step that was asked for is {:?}", asked.as_str()));
    }
    let done = match map.remove("done") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(done)) => done,
        Some(other) => return Err(format!("done must be true or false, not {}", brief(&other))),
    };
    let next_step = match text_field(&mut map, "next_step")? {
        Some(token) => StepToken::parse(&token).map_err(|problem| format!("next_step: {problem}"))?,
        None if done => asked.clone(),
        None => return Err("next_step is missing; it may be left out only when done is true".to_owned()),
    };
    let Some(state) = map.remove("state") else {
        return Err("state is missing; send the whole new state".to_owned());
    };
    let text = text_field(&mut map, "text")?;
    let data = map.remove("data").filter(|data| !data.is_null());
    let notes = text_field(&mut map, "notes")?;
    bounded("state", bytes_of(&state), STATE_BYTES_MAX)?;
    bounded("text", text.as_deref().map_or(0, str::len), TEXT_BYTES_MAX)?;
    bounded("data", data.as_ref().map_or(0, bytes_of), DATA_BYTES_MAX)?;
    Ok(FrameOut { step: asked.clone(), next_step, state, text, data, done, notes })
}

fn text_field(map: &mut Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match map.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(format!("{key} must be a text, not {}", brief(&other))),
    }
}

fn bounded(field: &str, bytes: usize, max: usize) -> Result<(), String> {
    if bytes > max {
        return Err(format!("{field} has {bytes} bytes; at most {max} are allowed"));
    }
    Ok(())
}

fn bytes_of(value: &Value) -> usize {
    value.to_string().len()
}

/// The token after `token` for an answer that names none: its number plus one, as in
/// `review/1` → `review/2`; without a number `step/1`.
pub fn following(token: &StepToken) -> StepToken {
    let text = token.as_str();
    let next = text.rsplit_once('/').and_then(|(stem, number)| {
        let number: u64 = number.parse().ok()?;
        StepToken::parse(&format!("{stem}/{}", number.checked_add(1)?)).ok()
    });
    next.or_else(|| StepToken::parse("step/1").ok()).unwrap_or_else(StepToken::start)
}

/// The JSON object in a model's answer: alone, in a code fence, or behind some prose. The first
/// object that looks like a frame wins, else the first object.
pub fn find_object(text: &str) -> Option<Value> {
    if let Ok(value @ Value::Object(_)) = serde_json::from_str(text.trim()) {
        return Some(value);
    }
    let mut first = None;
    let mut rest = text;
    for _ in 0..OBJECT_TRIES_MAX {
        let Some(at) = rest.find('{') else { break };
        let mut values = serde_json::Deserializer::from_str(&rest[at..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(object @ Value::Object(_))) => {
                if FRAME_KEYS.iter().any(|key| object.get(key).is_some()) {
                    return Some(object);
                }
                rest = &rest[at + values.byte_offset()..];
                first = first.or(Some(object));
            }
            _ => rest = &rest[at + 1..],
        }
    }
    first
}

/// How many opening braces of an answer are tried: prose has few, and each try costs time.
const OBJECT_TRIES_MAX: usize = 64;
const FRAME_KEYS: [&str; 5] = ["next_step", "state", "text", "data", "done"];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(answer: Value) -> Result<FrameOut, String> {
        read_frame(&StepToken::start(), answer)
    }

    #[test]
    fn a_whole_frame_is_taken_verbatim() {
        let out = read(json!({"step": "start", "next_step": "review/1", "state": {"a": 1}, "text": "t",
            "data": [1], "done": true, "notes": "n", "other": 1}))
        .expect("valid");
        assert_eq!((out.next_step.as_str(), out.done, out.notes.as_deref()), ("review/1", true, Some("n")));
    }

    #[test]
    fn problems_name_the_field() {
        let wrong = [
            (json!([]), "the frame must be an object"),
            (json!({"step": "x", "next_step": "y", "state": 1}), "step is \"x\""),
            (json!({"state": 1}), "next_step is missing"),
            (json!({"next_step": "", "state": 1}), "next_step: "),
            (json!({"next_step": 5, "state": 1}), "next_step must be a text, not 5"),
            (json!({"next_step": "y"}), "state is missing"),
            (json!({"next_step": "y", "state": 1, "text": {}}), "text must be a text, not an object"),
            (json!({"next_step": "y", "state": 1, "done": "no"}), "done must be true or false"),
        ];
        for (answer, part) in wrong {
            let problem = read(answer.clone()).expect_err("refused");
            assert!(problem.contains(part), "{answer}: {problem}");
        }
        let big = read(json!({"next_step": "y", "state": 1, "text": "x".repeat(TEXT_BYTES_MAX + 1)}));
        assert!(big.is_err_and(|problem| problem.starts_with("text has ")));
    }

    #[test]
    fn a_last_step_needs_no_next() {
        let out = read(json!({"state": null, "done": true})).expect("valid");
        assert_eq!((out.next_step.as_str(), out.done), ("start", true));
    }

    #[test]
    fn tokens_go_on_counting() {
        let next = |text: &str| following(&StepToken::parse(text).expect("a token")).to_string();
        assert_eq!(next("start"), "step/1");
        assert_eq!(next("step/1"), "step/2");
        assert_eq!(next("a/b/9"), "a/b/10");
        assert_eq!(next("4.2"), "step/1");
        assert_eq!(next(&format!("x/{}", u64::MAX)), "step/1");
    }

    #[test]
    fn objects_are_found_in_fences_and_prose() {
        let frame = json!({"state": {"a": "}"}, "text": "x"});
        for text in [
            format!("{frame}"),
            format!("```json\n{frame}\n```"),
            format!("Sure! Here {{is}} the frame: {frame}\nAnything else?"),
            format!("First {{\"thought\": 1}} then {frame}"),
        ] {
            assert_eq!(find_object(&text), Some(frame.clone()), "{text}");
        }
        assert_eq!(find_object("I cannot do that."), None);
        assert_eq!(find_object("[1, {\"state\": 1"), None);
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_search(text in "[{}\"a:, \\[\\]\\\\]{0,80}") {
            let found = find_object(&text);
            prop_assert!(found.is_none_or(|value| value.is_object()));
        }
    }
}
