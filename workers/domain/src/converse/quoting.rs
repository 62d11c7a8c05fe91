//! What a message replies to, in short: a model may not have it in sight, however new the reply is (SPEC W-TRN-07).

use schemas::conversation::Message;
use serde_json::Value;

/// Field of guidance that is a posted message, and of the note that it becomes: the words it replies to.
pub const IN_REPLY_TO: &str = "in_reply_to";
/// Of what is replied to, so much is quoted.
const QUOTE_CHARS_MAX: usize = 500;

/// The beginning of what somebody said, in words or else as data; pictures have no words.
pub fn quote(message: &Message) -> Option<String> {
    let text = message.text.as_deref().filter(|text| !text.trim().is_empty());
    let data = || message.data.as_ref().filter(|data| !data.is_null()).map(|data| short(&data.to_string()));
    text.map(short).or_else(data)
}

/// The quote that guidance, or the note of it, brings along.
pub(super) fn quoted(told: &Value) -> Option<String> {
    told.get(IN_REPLY_TO).and_then(Value::as_str).map(short)
}

/// How a model is told of it, before the words of the reply. On one line and without brackets: nothing in a quote ends
/// it, so what somebody said does not become the words of whoever replies.
pub(super) fn heading(quote: &str) -> String {
    let harmless = |char: char| match char {
        '[' => '(',
        ']' => ')',
        '\u{2028}' | '\u{2029}' => ' ',
        char if char.is_control() => ' ',
        char => char,
    };
    let quote: String = quote.chars().map(harmless).collect();
    format!("[In reply to: {quote}]\n")
}

fn short(text: &str) -> String {
    text.chars().take(QUOTE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn quote_of(said: &Value) -> Option<String> {
        let mut message = json!({"message_id": "m1", "sender_type": "user", "role": "user", "event_type": "utterance"});
        message.as_object_mut().unwrap().extend(said.as_object().unwrap().clone());
        quote(&serde_json::from_value(message).unwrap())
    }

    #[test]
    fn words_are_quoted_and_else_data_both_within_bounds() {
        assert_eq!(quote_of(&json!({"text": "the plan", "data": [1]})).as_deref(), Some("the plan"));
        assert_eq!(quote_of(&json!({"text": " ", "data": {"n": 7}})).as_deref(), Some("{\"n\":7}"));
        assert_eq!(quote_of(&json!({"data": null, "content": [{"type": "image"}]})), None);
        let long = "ü".repeat(QUOTE_CHARS_MAX + 1);
        for said in [json!({ "text": long }), json!({ "data": long })] {
            assert_eq!(quote_of(&said).map(|quote| quote.chars().count()), Some(QUOTE_CHARS_MAX));
        }
    }
}
