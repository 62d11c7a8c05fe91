//! `Effect::Model`, one answer to one prompt, as a call like any other.

use domain::chat::{CallContext, ChatCall, ChatFailure, ChatReply, ChatRequest, ModelTarget, Parameters};
use domain::effect::{EffectCall, EffectFailure, ModelRequest};
use serde_json::{Value, json};

/// The call that a step's request stands for. Its id is the effect's key: the same after a crash.
pub fn call_of(call: &EffectCall, request: &ModelRequest) -> ChatCall {
    let parameters = Parameters { max_tokens: Some(request.max_tokens), json: request.json, ..Parameters::default() };
    ChatCall {
        id: call.key.clone(),
        target: request.profile.clone().map_or(ModelTarget::Default, ModelTarget::Named),
        request: ChatRequest { parameters, ..ChatRequest::ask(&request.system, &request.prompt) },
        context: CallContext {
            conversation_id: call.session.session_id.to_string(),
            turn_id: call.key.clone(),
            ..CallContext::default()
        },
    }
}

/// The outcome value of `Effect::Model`.
pub fn outcome_of(reply: &ChatReply) -> Value {
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

pub fn failure_of(failure: ChatFailure) -> EffectFailure {
    EffectFailure {
        code: failure.code,
        message: failure.message,
        retriable: failure.retriable,
        may_have_happened: failure.may_have_happened,
    }
}
