//! The question of one step as a call of a model like any other.

use schemas::definition::Budgets;
use serde_json::{Value, json};

use crate::chat::{
    CallContext, ChatCall, ChatFailure, ChatOutcome, ChatReply, ChatRequest, ModelTarget, Parameters, RequestClass,
};
use crate::converse::{self, Checks};
use crate::effect::{Asked, EffectCall, EffectFailure, ModelRequest};

/// Its id is the effect's key: the same after a crash.
pub fn call_of(call: &EffectCall, request: &ModelRequest, target: ModelTarget) -> ChatCall {
    let parameters = Parameters { max_tokens: Some(request.max_tokens), json: request.json, ..Parameters::default() };
    let conversation = request.conversation.as_ref().map(ToString::to_string);
    ChatCall {
        id: call.key.clone(),
        target,
        request: ChatRequest { parameters, ..ChatRequest::ask(&request.system, &request.prompt) },
        context: CallContext {
            // A session that takes part nowhere talks to itself.
            conversation_id: conversation.unwrap_or_else(|| call.session.session_id.to_string()),
            turn_id: call.key.clone(),
            agent: request.agent.to_string(),
            request_class: Some(RequestClass::Background),
            metadata: [("session_id".to_owned(), json!(call.session.session_id))].into_iter().collect(),
            ..CallContext::default()
        },
        once: false,
    }
}

/// What must hold for it to be made. `each`: what any session of the namespace may use.
pub fn checks(request: &ModelRequest, each: &Budgets) -> Checks {
    converse::checks_of_steps(&request.used, each, request.since_ms)
}

/// What came of it.
pub fn answered(outcome: ChatOutcome) -> Asked {
    let answer = outcome.result.as_ref().map(value_of).map_err(failure_of);
    Asked { answer, record: Some(outcome.record), over: None }
}

/// The outcome value of a step's question.
pub fn value_of(reply: &ChatReply) -> Value {
    let usage = reply.usage.clone().unwrap_or_default();
    let mut value = json!({
        "text": reply.text(),
        "provider": reply.provider,
        "model": reply.model,
        "finish": reply.finish.as_str(),
        "usage": {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "total_tokens": usage.total_tokens,
        },
    });
    let calls: Vec<Value> = reply
        .tool_calls()
        .map(|call| {
            let arguments = call.invalid.as_ref().map_or_else(|| call.input.clone(), |text| text.as_str().into());
            json!({"id": call.id, "name": call.name, "arguments": arguments})
        })
        .collect();
    if !calls.is_empty() {
        value["tool_calls"] = calls.into();
    }
    value
}

fn failure_of(failure: &ChatFailure) -> EffectFailure {
    EffectFailure {
        code: failure.code,
        message: failure.message.clone(),
        retriable: failure.retriable,
        may_have_happened: failure.may_have_happened,
    }
}
