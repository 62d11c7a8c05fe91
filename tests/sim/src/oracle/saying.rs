//! S3 for what steps say: in a conversation, each step with words or data is one message, in the order of the steps,
//! and nothing else is. Who works in turns says by itself what is to be said.

use domain::invariant::Invariant;
use domain::moniker;
use schemas::conversation::{LogKind, LogRow};
use schemas::record::{StepRecord, StepStatus};
use serde_json::{Value, json};

use super::Findings;
use super::story::{Stories, Story};
use crate::world::World;

pub fn check(world: &World, stories: &Stories, findings: &mut Findings) {
    let has_turns = |story: &Story| moniker::find(&story.row.spec.moniker).is_none_or(|moniker| moniker.talks());
    for story in stories.0.iter().filter(|story| !has_turns(story)) {
        let (key, said) = (&story.row.key, said(world, story));
        let in_conversation = story.row.spec.conversation_id.is_some();
        let to_say: Vec<Value> = story.steps().filter(|_| in_conversation).filter_map(to_say).collect();
        findings
            .expect(Invariant::S3, said == to_say, || format!("{key} has said {said:?}, and its steps are {to_say:?}"));
    }
}

/// What the conversation of a session has of it: iteration, words and data, message by message.
pub fn said(world: &World, story: &Story) -> Vec<Value> {
    let key = &story.row.key;
    let Some(conversation) = &story.row.spec.conversation_id else { return Vec::new() };
    let log = world.store.whole_log(&key.namespace, conversation);
    let is_its = |row: &&LogRow| row.record.session_id.as_ref() == Some(&key.session_id);
    let messages = log.iter().filter(is_its).filter(|row| row.record.kind == LogKind::Message);
    let bodies = messages.map(|row| row.record.body.to_value());
    bodies.map(|body| json!([body["iteration"], body["text"], body["data"]])).collect()
}

fn to_say(step: &StepRecord) -> Option<Value> {
    let text = step.text.as_ref().filter(|text| !text.trim().is_empty());
    let data = step.data.as_ref().map(|data| data.to_value()).filter(|data| !data.is_null());
    let is_said = step.status == StepStatus::Ok && (text.is_some() || data.is_some());
    is_said.then(|| json!([step.iteration, text, data]))
}
