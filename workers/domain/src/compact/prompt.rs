//! What the model that summarises is shown.

use schemas::limits::COMPACT_MESSAGE_CHARS_MAX;

use super::Entry;
use crate::chat::{Message, Part};
use crate::time::rfc3339;

/// With places for persona, existing summary and messages.
pub const PROMPT: &str = "\
{persona}

Summarise the following part of a conversation that you take part in, so that you can go on without
having the messages before you. Keep what was decided, what was promised, facts, names, numbers,
identifiers and open questions. Leave out greetings and repetitions. Carry over what still matters of
the summary so far. Answer with the new summary alone.

Summary so far:
{existing_summary}

Messages:
{messages}";

const NO_SUMMARY: &str = "(no prior summary)";

/// Fills the places in. What is put in is not looked at again: a message may say `{persona}`.
pub fn fill(template: &str, persona: &str, existing_summary: &str, messages: &str) -> String {
    let existing = if existing_summary.trim().is_empty() { NO_SUMMARY } else { existing_summary };
    let places = [("{persona}", persona), ("{existing_summary}", existing), ("{messages}", messages)];
    let (mut text, mut rest) = (String::new(), template);
    while let Some((at, (place, value))) =
        places.iter().filter_map(|place| Some((rest.find(place.0)?, place))).min_by_key(|(at, _)| *at)
    {
        text.push_str(&rest[..at]);
        text.push_str(value);
        rest = &rest[at + place.len()..];
    }
    text.push_str(rest);
    text
}

/// Messages as lines, each with its time and who says it.
pub fn transcript<'e>(entries: impl Iterator<Item = &'e Entry>) -> String {
    let lines: Vec<String> = entries
        .map(|entry| {
            let Message { role, name, .. } = &entry.message;
            let who = name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
            let said = shortened(&said(&entry.message.content));
            format!("[{}] {}{who}: {said}", rfc3339(entry.at_ms), role.as_str())
        })
        .collect();
    lines.join("\n")
}

/// Texts, tool calls and their results. Thoughts and what only one provider understands are left out.
fn said(parts: &[Part]) -> String {
    let said: Vec<String> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { text, .. } => Some(text.clone()),
            Part::Image { .. } => Some("(an image)".to_owned()),
            Part::ToolCall(call) => Some(format!("(calls {} with {})", call.name, call.input)),
            Part::ToolResult { content, is_error, .. } => {
                let what = if *is_error { "error" } else { "result" };
                Some(format!("({what}: {})", said(content)))
            }
            Part::Reasoning(_) | Part::Opaque { .. } => None,
        })
        .collect();
    said.join("\n")
}

/// The beginning and the end of what is too long: that is where results say what they are.
fn shortened(text: &str) -> String {
    let chars = text.chars().count();
    if chars <= COMPACT_MESSAGE_CHARS_MAX {
        return text.to_owned();
    }
    let half = COMPACT_MESSAGE_CHARS_MAX / 2;
    let start: String = text.chars().take(half).collect();
    let end: String = text.chars().skip(chars - half).collect();
    format!("{start}\n(… {} characters left out …)\n{end}", chars - 2 * half)
}
