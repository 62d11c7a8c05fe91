//! How many tokens a text is, about: good enough for budgets, without asking anybody (SPEC A-CMP-02).

use std::io::{self, Write};

use serde::Serialize;

use crate::chat::{ChatRequest, Message, Part};

const CHARS_PER_TOKEN: u64 = 4;
/// What the providers count for an image of ordinary size. Its base64 text would say far too much.
pub const IMAGE_TOKENS: u64 = 1_600;

/// A token for every four characters begun: `ceil(chars / 4)`.
pub fn estimate_tokens(text: &str) -> u64 {
    estimate_chars(chars(text))
}

/// All that a message carries: texts, calls with their arguments, results, thoughts. Its texts are
/// counted as one, so cutting a text into parts does not make it longer.
pub fn estimate_message(message: &Message) -> u64 {
    let mut size = Size { chars: message.name.as_deref().map_or(0, chars), images: 0 };
    message.content.iter().for_each(|part| size.add(part));
    estimate_chars(size.chars) + size.images * IMAGE_TOKENS
}

pub fn estimate_messages(messages: &[Message]) -> u64 {
    messages.iter().map(estimate_message).sum()
}

/// All that a request carries: its messages, and the tools that it offers.
pub fn estimate_request(request: &ChatRequest) -> u64 {
    let tools = request.tools.iter().map(|tool| estimate_chars(Counted::of(tool).chars));
    estimate_messages(&request.messages) + tools.sum::<u64>()
}

/// Counts the characters of what is written, and keeps none.
#[derive(Default)]
struct Counted {
    chars: u64,
}

impl Counted {
    /// Of a value as JSON.
    fn of(value: &impl Serialize) -> Self {
        let mut counted = Self::default();
        serde_json::to_writer(&mut counted, value).expect("maps have keys of text, and counting does not fail");
        counted
    }
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // What continues a character of UTF-8 begins none.
        self.chars += bytes.iter().filter(|byte| **byte & 0b1100_0000 != 0b1000_0000).count() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Of a text that has so many characters.
pub fn estimate_chars(chars: u64) -> u64 {
    chars.div_ceil(CHARS_PER_TOKEN)
}

fn chars(text: &str) -> u64 {
    text.chars().count() as u64
}

struct Size {
    chars: u64,
    images: u64,
}

impl Size {
    fn add(&mut self, part: &Part) {
        match part {
            Part::Text { text, .. } => self.chars += chars(text),
            Part::Image { .. } => self.images += 1,
            Part::ToolCall(call) => {
                let arguments = call.invalid.clone().unwrap_or_else(|| call.input.to_string());
                self.chars += chars(&call.name) + chars(&arguments);
            }
            Part::ToolResult { content, .. } => content.iter().for_each(|part| self.add(part)),
            Part::Reasoning(thoughts) => {
                self.chars += chars(&thoughts.text) + thoughts.signature.as_deref().map_or(0, chars);
            }
            Part::Opaque { value, .. } => self.chars += chars(&value.to_string()),
        }
    }
}
