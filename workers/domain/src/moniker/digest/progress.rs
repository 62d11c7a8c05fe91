//! The state of a digest: the cursor, what was skipped, and the collection so far. Bounded.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::Collection;

/// Skipped documents that are kept by name; all are counted.
const NOTES_MAX: usize = 20;
/// Of these, named in the text per reason.
const NAMED_MAX: usize = 3;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Name of the last document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    #[serde(default)]
    pub skipped: u64,
    #[serde(default)]
    pub notes: Vec<Note>,
    #[serde(default)]
    pub collection: Collection,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Note {
    pub document: String,
    pub reason: String,
}

impl Progress {
    /// # Errors
    /// What is wrong with a state that is not ours.
    pub fn of(state: &Value) -> Result<Self, String> {
        match state {
            Value::Null => Ok(Self::default()),
            state => Self::deserialize(state).map_err(|error| format!("is not the state of a digest: {error}")),
        }
    }

    /// Documents behind us, read or skipped.
    pub fn read(&self) -> u64 {
        u64::from(self.collection.documents) + self.skipped
    }

    pub fn skip(&mut self, note: Note) {
        self.skipped += 1;
        if self.notes.len() < NOTES_MAX {
            self.notes.push(note);
        }
    }

    /// The skipped documents by reason, a few of each by name.
    pub fn skipped_in_words(&self) -> String {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for note in &self.notes {
            match reasons.iter_mut().find(|(reason, _)| *reason == note.reason) {
                Some((_, names)) => names.push(&note.document),
                None => reasons.push((&note.reason, vec![&note.document])),
            }
        }
        let one = |(reason, names): (&str, Vec<&str>)| {
            let shown: Vec<&str> = names.iter().take(NAMED_MAX).map(|name| last_part(name)).collect();
            let more = names.len() - shown.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{}{more} ({reason})", shown.join(", "))
        };
        let mut parts: Vec<String> = reasons.into_iter().map(one).collect();
        let unnamed = self.skipped.saturating_sub(self.notes.len() as u64);
        if unnamed > 0 {
            parts.push(format!("{unnamed} more"));
        }
        format!("{}.", parts.join("; "))
    }
}

fn last_part(name: &str) -> &str {
    name.rsplit('/').find(|part| !part.is_empty()).unwrap_or(name)
}

/// The folder that all names share, with its last slash; empty if there is none or one name only
/// stands for itself.
pub fn common_folder<'a>(names: &[&'a str]) -> &'a str {
    let Some((first, rest)) = names.split_first() else { return "" };
    let mut end = first.rfind('/').map_or(0, |at| at + 1);
    for name in rest {
        while end > 0 && !name.starts_with(&first[..end]) {
            end = first[..end - 1].rfind('/').map_or(0, |at| at + 1);
        }
    }
    // "https://" or "/" alone is no folder worth naming.
    let folder = &first[..end];
    if folder.len() < 2 || folder.ends_with("://") { "" } else { folder }
}
