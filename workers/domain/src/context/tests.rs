//! Context as plain values. The suites are by subject.

use schemas::id::{ConversationId, MessageId};
use serde_json::{Value, json};

use super::*;
use crate::chat::{Message, Part, Role, ToolCall};

mod budgets;
mod histories;
mod prompts;
mod records;

/// A message of the conversation `c`, at the time that its number says.
pub fn stored(n: i64, new: NewMessage) -> ConversationMessage {
    let conversation = ConversationId::parse("c").expect("an id");
    new.complete(&conversation, MessageId::parse(&format!("m{n}")).expect("an id"), n * 1_000)
}

pub fn call(id: &str) -> Part {
    Part::ToolCall(ToolCall { id: id.into(), name: "look".into(), input: json!({}), invalid: None, signature: None })
}

/// `u` a user's message, `s` the system's, `a` an answer, `c` an answer with a call, `t` a result, `n`
/// a note for people. Texts are `<letter><number>`.
pub fn conversation(script: &str) -> Vec<ConversationMessage> {
    let message = |(n, letter): (usize, char)| {
        let text = format!("{letter}{n}");
        let new = match letter {
            'u' => NewMessage::user(text),
            's' => NewMessage::system(text),
            'a' => NewMessage::assistant(text),
            'c' => NewMessage::from(Message::new(Role::Assistant, vec![Part::text(text), call(&format!("k{n}"))])),
            't' => NewMessage::from(Message::new(
                Role::Tool,
                vec![Part::tool_result(format!("k{}", n.wrapping_sub(1)), text, false)],
            )),
            'n' => NewMessage { kind: MessageKind::Status, ..NewMessage::new(MessageRole::Other, text) },
            other => panic!("{other}"),
        };
        stored(n as i64, new)
    };
    script.chars().enumerate().map(message).collect()
}

/// The first text of each message, results included.
pub fn texts(messages: &[Message]) -> Vec<String> {
    let first = |message: &Message| match &message.content[0] {
        Part::ToolResult { content, .. } => content[0].as_text().unwrap_or_default().to_owned(),
        part => part.as_text().unwrap_or_default().to_owned(),
    };
    messages.iter().map(first).collect()
}

pub fn value_of<T: serde::Serialize>(value: &T) -> Value {
    serde_json::to_value(value).expect("json")
}
