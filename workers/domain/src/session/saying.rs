//! What a step says in the conversation of its session (SPEC Q-CNV-14, K-43).

use schemas::conversation::{EventType, LogKind, LogRecord, Message, MessageRole, SenderType, Talk};
use schemas::json::Json;
use schemas::record::StepRecord;
use serde_json::Value;

use super::Session;
use crate::converse::ids;

impl Session {
    /// A finished step with words or data is one message, which goes with the commit of the step. Sessions whose
    /// moniker talks say by themselves what is to be said. `data`: that of the step, as a value.
    pub(super) fn say(&mut self, step: &StepRecord, data: Option<Value>) {
        if self.spec.conversation_id.is_none() || self.moniker.talks() {
            return;
        }
        let text = step.text.clone().filter(|text| !text.trim().is_empty());
        let data = data.filter(|data| !data.is_null());
        if text.is_none() && data.is_none() {
            return;
        }
        let message = self.message(step, text, data);
        let record = LogRecord {
            kind: LogKind::Message,
            id: message.message_id.to_string(),
            turn_id: step.turn_id.clone(),
            agent_id: Some(self.agent_id.clone()),
            session_id: Some(self.key.session_id.clone()),
            at_ms: step.created_at_ms,
            body: Json::of(&message),
        };
        self.unsaved.talk(Talk { log: vec![record], ..Talk::default() }, Vec::new());
    }

    fn message(&self, step: &StepRecord, text: Option<String>, data: Option<Value>) -> Message {
        Message {
            // The same whoever runs the step again, so that it is said once.
            message_id: ids::iteration_message_id(&self.key.session_id, step.iteration),
            turn_id: step.turn_id.clone(),
            sender_type: SenderType::Agent,
            role: MessageRole::Assistant,
            user_id: None,
            agent_id: Some(self.agent_id.clone()),
            session_id: Some(self.key.session_id.clone()),
            name: None,
            text,
            content: None,
            data,
            event_type: EventType::Utterance,
            reply_to_message_id: None,
            provider_message_id: None,
            metadata: None,
            iteration: Some(step.iteration),
            step_token: Some(step.step_token.to_string()),
            next_step_token: Some(step.next_step_token.to_string()),
            status: Some(step.status),
            notes: step.notes.clone(),
        }
    }
}
