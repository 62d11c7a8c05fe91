//! The prompt of a model step. The scripted provider reads the frame back out of it, so that its
//! replies can follow the state: [`build`] and [`frame_of`] are two halves of one format.

use schemas::frame::FrameIn;
use serde_json::Value;

use crate::moniker::settings::clip;

/// The same for every task, so that providers can cache it.
pub const SYSTEM: &str = "\
You carry out one step of a long-running job. The job is a loop: each step gets a frame, does one \
sensible piece of work, and answers with the frame for the next step. You keep nothing between \
steps, so whatever a later step needs must be in the state you answer with.

The frame you get has:
- step: the name of this step.
- state: what earlier steps left for you.
- guidance (sometimes): a wish of the user. It comes once. Follow it now, and write into the state \
whatever must hold from now on. Under \"input\" it holds a message that the user sent.

Answer with exactly one JSON object and nothing else, no code fence and no comment:
{
  \"next_step\": a short name for the next step, as in \"draft/2\",
  \"state\": the whole new state, an object (keep it small; what you leave out is gone),
  \"text\": what this step has to say to the user, plain text,
  \"data\": structured results of this step, if any,
  \"done\": true when the whole job is finished, else false,
  \"notes\": a remark for the operator, if any
}";

const FRAME_MARK: &str = "\n\n# Frame\n";
const PROBLEM_MARK: &str = "\n\n# Problem with your last answer\n";
/// How much of a rejected answer the model is shown.
const REJECTED_CHARS_MAX: usize = 2_000;

/// The question of one step. `rejected` is what was wrong with an earlier answer, and that answer.
pub fn build(preset: Option<&str>, task: Option<&str>, frame: &FrameIn, rejected: Option<(&str, &str)>) -> String {
    let mut prompt = String::from("# Task\n");
    prompt.push_str(preset.or(task).unwrap_or_default().trim());
    if let (Some(_), Some(task)) = (preset, task) {
        prompt.push_str("\n\n# Wishes of the user for this job\n");
        prompt.push_str(task.trim());
    }
    prompt.push_str(FRAME_MARK);
    // A frame holds JSON values and texts only; it always serialises.
    prompt.push_str(&serde_json::to_string(frame).unwrap_or_default());
    if let Some((problem, answer)) = rejected {
        prompt.push_str(PROBLEM_MARK);
        prompt.push_str(problem);
        prompt.push_str("\nThe answer was:\n");
        prompt.push_str(&clip(answer.trim(), REJECTED_CHARS_MAX));
        prompt.push_str("\nAnswer again, with one valid JSON object.");
    }
    prompt
}

/// The frame inside a prompt made by [`build`]; `None` for any other text.
pub fn frame_of(prompt: &str) -> Option<Value> {
    // Compact JSON has no line break, so the last mark is ours even if the task holds one too.
    let (_, after) = prompt.split(PROBLEM_MARK).next()?.rsplit_once(FRAME_MARK)?;
    serde_json::from_str(after.lines().next()?).ok()
}
