//! The scripted provider: replies from a file (or from the built-in script), the same ones every
//! time. For tests, demonstrations and drills; `docs/scripted-provider.md` describes the file.

mod asked;
mod record;
mod reply;
mod script;
mod template;

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::chat::ChatReply;
use serde_json::Value;

pub(crate) use asked::Asked;
pub use record::Request;

use crate::call::{CallError, Class};
use crate::chat::Emission;
use record::Recorder;
use reply::Reply;
use script::Script;
use template::Facts;

/// What the script calls its model when nobody asks for another.
pub(crate) const MODEL_NAME: &str = "script";
const BUILT_IN: &str = include_str!("scripted/builtin.json");

/// Answers model requests by rule.
#[derive(Debug)]
pub struct Scripted {
    script: Script,
    uses: Mutex<Vec<Use>>,
    recorder: Recorder,
}

/// How often a rule met a request that fits, and how often it answered.
#[derive(Debug, Clone, Copy, Default)]
struct Use {
    met: u64,
    answered: u64,
}

impl Scripted {
    /// The replies for the built-in monikers, and what a conversation is told without a model.
    ///
    /// # Errors
    /// When the record file cannot be opened.
    pub fn built_in(record: Option<&Path>) -> Result<Self, String> {
        let script = Script::parse(BUILT_IN).map_err(|problem| format!("built-in script: {problem}"))?;
        Self::new(script, record)
    }

    /// Reads a script file.
    ///
    /// # Errors
    /// What is wrong with the file, with line and column or the path of the field.
    pub fn load(path: &Path, record: Option<&Path>) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let script = Script::parse(&text).map_err(|problem| format!("{}: {problem}", path.display()))?;
        let own = script.record.as_ref().map(|name| path.parent().unwrap_or(Path::new("")).join(name));
        Self::new(script, record.or(own.as_deref()))
    }

    fn new(script: Script, record: Option<&Path>) -> Result<Self, String> {
        let uses = Mutex::new(vec![Use::default(); script.rules.len()]);
        Ok(Self { recorder: Recorder::new(record)?, script, uses })
    }

    /// The latest requests, oldest first. Each attempt is one.
    pub fn requests(&self) -> Vec<Request> {
        self.recorder.requests()
    }

    /// One attempt at an answer, piece by piece.
    ///
    /// # Errors
    /// The scripted failure, or no rule fits.
    pub(crate) async fn attempt(&self, asked: &Asked, mut emission: Emission<'_>) -> Result<ChatReply, CallError> {
        let facts = Facts::new(asked);
        let found = self.find(asked, &facts);
        self.recorder.record(asked, found.map(|(rule, _)| rule));
        let Some((_, reply)) = found else {
            let error = CallError::new(Class::Invalid, "scripted: no rule of the script fits this request");
            emission.fail(&error);
            return Err(error);
        };
        wait(reply.delay_ms).await;
        let answer = reply.answer(asked, &facts);
        let (pieces, error) = reply.course(&answer);
        for (number, piece) in pieces.into_iter().enumerate() {
            if number > 0 {
                wait(reply.delta_ms).await;
            }
            emission.tell(piece);
        }
        match error {
            Some(error) => {
                emission.fail(&error);
                Err(error)
            }
            None => {
                emission.complete();
                Ok(answer)
            }
        }
    }

    /// The first rule that fits and is not used up, and its reply for this step.
    fn find(&self, asked: &Asked, facts: &Facts) -> Option<(Option<usize>, &Reply)> {
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        for (number, rule) in self.script.rules.iter().enumerate() {
            if !rule.when.fits(asked, facts) {
                continue;
            }
            let used = &mut uses[number];
            used.met += 1;
            let its_turn = rule.when.call.is_none_or(|call| call == used.met);
            if its_turn && rule.times.is_none_or(|times| used.answered < times) {
                used.answered += 1;
                return rule.reply_for(facts.n).map(|reply| (Some(number), reply));
            }
        }
        self.script.otherwise.as_ref().map(|reply| (None, reply))
    }
}

async fn wait(ms: u64) {
    if ms > 0 {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

/// The frame a prompt carries, for conditions and placeholders.
fn token_of(frame: Option<&Value>) -> &str {
    frame.and_then(|frame| frame.get("step")).and_then(Value::as_str).unwrap_or("")
}

#[cfg(test)]
mod tests;
