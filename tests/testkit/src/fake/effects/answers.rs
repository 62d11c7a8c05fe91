//! Default answers: plausible for every kind of effect, and the same for the same key.

use std::sync::Arc;
use std::time::Duration;

use domain::chat::{CallContext, ProviderCallRecord, Usage};
use domain::effect::{Asked, Effect, EffectCall, EffectClass, EffectFailure, Outcome, TalkCall, TalkWork};
use schemas::problem::Code;
use serde_json::{Value, json};

use super::{Script, Scripted};
use crate::dice::Dice;

/// Documents of the make-believe corpus.
const DOCUMENTS: [&str; 3] = ["a.md", "b.md", "c.md"];

#[derive(Debug, Clone)]
pub struct EffectFaults {
    /// A call fails although it could be tried again.
    pub retriable: f64,
    /// A call fails for good.
    pub fatal: f64,
    /// Longest time to an answer.
    pub delay_ms_max: u64,
}

impl EffectFaults {
    pub const NONE: EffectFaults = EffectFaults { retriable: 0.0, fatal: 0.0, delay_ms_max: 1 };
}

pub fn seeded(dice: Dice, faults: EffectFaults) -> Script {
    Arc::new(move |call, _| {
        let delay = Duration::from_millis(dice.range(0..faults.delay_ms_max.max(1)));
        let retriable = dice.chance(faults.retriable);
        let outcome = if retriable || dice.chance(faults.fatal) {
            failure(&call.effect, retriable)
        } else {
            Outcome::Ok(answer(call))
        };
        Scripted { delay, outcome: recorded(call, outcome) }
    })
}

/// Models that are asked leave a record of it, whatever they answer.
fn recorded(call: &EffectCall, outcome: Outcome) -> Outcome {
    if !matches!(call.effect, Effect::Model(_)) {
        return outcome;
    }
    let mut record = ProviderCallRecord::open(&call.key, &CallContext::default(), "scripted", "scripted-1", false, 0);
    record.usage = Some(Usage { input_tokens: 1, output_tokens: 1, total_tokens: 2, ..Usage::default() });
    let answer = outcome.json().cloned();
    Asked { answer, record: Some(record), over: None }.into()
}

fn failure(effect: &Effect, retriable: bool) -> Outcome {
    let code = match effect {
        Effect::Model(_) => Code::ProviderFailed,
        Effect::HttpPost { .. } => Code::StepFailed,
        Effect::NextDocument { .. } => Code::ReadFailed,
        Effect::Talk(_) => Code::ProviderFailed,
    };
    Outcome::Failed(EffectFailure {
        code,
        message: "scripted failure".into(),
        retriable,
        may_have_happened: effect.class() == EffectClass::AtMostOnce,
    })
}

fn answer(call: &EffectCall) -> Value {
    match &call.effect {
        Effect::Model(request) => {
            let text = if request.json {
                json!({"step": "start", "next_step": "start", "state": {}, "text": call.key, "done": false}).to_string()
            } else {
                format!("answer to {}", call.key)
            };
            let usage = json!({"input_tokens": 1, "output_tokens": 1});
            json!({"text": text, "provider": "scripted", "model": "scripted-1", "usage": usage})
        }
        Effect::HttpPost { body, .. } => http_answer(call, body),
        Effect::NextDocument { after, .. } => document(after.as_deref()),
        Effect::Talk(talk) => talked(talk),
    }
}

/// An agent without tools that says which reply of which turn it is.
fn talked(talk: &TalkCall) -> Value {
    match &talk.what {
        TalkWork::Assemble { .. } => json!({
            "agent_name": talk.agent,
            "target": "default",
            "request": {"messages": [{"role": "user", "content": "hello"}]},
            "tools": [],
            "constraints": {},
            "limits": {"max_rounds": 20},
            "recent_turns": [],
        }),
        TalkWork::Chat { number, .. } => json!({
            "reply": {
                "parts": [{"type": "text", "text": format!("reply {number} of {}", talk.turn)}],
                "finish": "stop", "provider": "scripted", "model": "scripted-1", "raw": {},
            },
            "agent_name": talk.agent,
            "tools": [],
            "constraints": {},
        }),
        TalkWork::Compact { .. } => json!({"tokens": 1}),
        TalkWork::Extract => json!({"written": 0}),
    }
}

/// The remote step function: counts in its state and repeats guidance.
fn http_answer(call: &EffectCall, frame: &Value) -> Value {
    let n = frame["state"]["n"].as_u64().unwrap_or(0) + 1;
    let mut state = frame["state"].clone();
    state["n"] = json!(n);
    json!({
        "step": frame["step"],
        "next_step": format!("s{n}"),
        "state": state,
        "text": format!("{n} for {}", call.key),
        "done": frame["state"]["until"].as_u64().is_some_and(|until| n >= until),
    })
}

fn document(after: Option<&str>) -> Value {
    let index = DOCUMENTS.iter().position(|name| after.is_none_or(|after| *name > after));
    match index {
        None => json!({"done": true, "total": DOCUMENTS.len()}),
        Some(index) => {
            let text = format!("This is document {index}. It has two sentences.");
            json!({
                "done": false, "name": DOCUMENTS[index], "bytes": text.len(), "text": text,
                "index": index, "total": DOCUMENTS.len(), "truncated": false,
            })
        }
    }
}
