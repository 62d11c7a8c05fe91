//! What the state of a conversing session has room for. It is kept whole at each step, and a step whose state is too
//! large fails, however often it is tried: so what would make it so is refused, or left out, before (invariant Q1).

use schemas::limits::{
    METADATA_BYTES_MAX, SESSION_APPROVED_BYTES_MAX, SESSION_CALLS_MAX, SESSION_METADATA_BYTES_MAX,
    SESSION_NOTES_BYTES_MAX, SESSION_TURNS_HELD_MAX,
};
use schemas::problem::Code;
use serde_json::Value;

use super::state::{Approved, TalkState};
use crate::action::hash;
use crate::compact::shortened;

/// Notes that wait for the next turn; of more, the oldest are dropped.
const NOTES_MAX: usize = 32;
/// Of one of them, so much is kept: it fits, whatever it consists of.
const NOTE_CHARS_MAX: usize = 32_768;
const _: () = assert!(6 * NOTE_CHARS_MAX + 1_024 <= SESSION_NOTES_BYTES_MAX);

/// What is left for calls of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    /// How many more may be open.
    pub calls: usize,
    /// Bytes of what is done once a person has said yes.
    pub approved: usize,
}

/// What is wrong with the `metadata` of an input, if anything is: its turn has it until it ends.
pub fn too_much_metadata(input: &Value) -> Option<String> {
    let bytes = metadata_of(input);
    let problem = || format!("payload.metadata has {bytes} bytes; at most {METADATA_BYTES_MAX} are allowed");
    (bytes > METADATA_BYTES_MAX).then(problem)
}

fn metadata_of(input: &Value) -> usize {
    input.get("metadata").map_or(0, hash::size)
}

impl TalkState {
    /// Why an input does not become a turn.
    pub(super) fn object_to_input(&self, input: &Value) -> Option<(Code, String)> {
        if let Some(problem) = too_much_metadata(input) {
            return Some((Code::InvalidRequest, problem));
        }
        let message = "too many turns of this session have not ended; send it again later";
        // What was posted is answered in any case, and has its metadata: without room its turn does without.
        let is_posted = input.get("message_id").is_some_and(Value::is_string);
        let metadata = if is_posted { 0 } else { metadata_of(input) };
        (!self.has_room(metadata)).then(|| (Code::TooManyRequests, message.to_owned()))
    }

    /// Whether one more turn can begin, with so much metadata.
    pub(super) fn has_room(&self, metadata: usize) -> bool {
        let held = || self.lanes.iter().filter_map(|lane| lane.turn.metadata.as_ref()).map(hash::size).sum::<usize>();
        self.lanes.len() < SESSION_TURNS_HELD_MAX && (metadata == 0 || held() + metadata <= SESSION_METADATA_BYTES_MAX)
    }

    pub(super) fn room(&self) -> Room {
        let open = || self.lanes.iter().flat_map(|lane| &lane.open);
        let approved: usize = open().filter_map(|open| open.approved.as_ref()).map(Approved::bytes).sum();
        Room {
            calls: SESSION_CALLS_MAX.saturating_sub(open().count()),
            approved: SESSION_APPROVED_BYTES_MAX.saturating_sub(approved),
        }
    }

    /// Keeps a note for the next turn.
    pub(super) fn keep_note(&mut self, text: &str) {
        self.notes.push(shortened(text, NOTE_CHARS_MAX));
        let mut left = SESSION_NOTES_BYTES_MAX;
        let fitting = self.notes.iter().rev().take(NOTES_MAX).take_while(|note| {
            let bytes = serde_json::to_string(note).map_or(usize::MAX, |text| text.len());
            let fits = bytes <= left;
            left = left.saturating_sub(bytes);
            fits
        });
        let excess = self.notes.len() - fitting.count();
        self.notes.drain(..excess);
    }
}

impl Approved {
    /// What it takes of the state, but for a little.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Task { operation } => operation.request.as_str().len(),
            Self::Agent { call } => hash::size(&call.input),
            Self::Answer | Self::Budget { .. } => 0,
        }
    }
}
