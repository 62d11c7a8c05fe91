//! Digests files, folders or pages on the command line, as the `digest` moniker does it:
//! `cargo run -p providers --example digest_folder -- [--each] [--glob '*.md'] [--sentences 3] <path>...`

use std::error::Error;

use domain::effect::EffectCall;
use domain::moniker::{self, Decision, StepInput};
use domain::ports::Effects;
use providers::{Performer, ProvidersConfig};
use schemas::frame::{FrameIn, FrameOut, StepToken};
use schemas::id::{AgentId, Epoch, Namespace, SessionId, SessionKey};
use schemas::json::Json;
use schemas::session::SessionSpec;
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (config, each) = arguments(std::env::args().skip(1))?;
    let performer = Performer::new(&ProvidersConfig { allow_private: true, ..ProvidersConfig::default() })?;
    let spec = SessionSpec {
        moniker: "digest".to_owned(),
        task: None,
        config: Json::of(&config),
        stop_on_done: true,
        max_steps: None,
        max_runtime_ms: None,
        loop_interval_ms: 0,
        conversation_id: None,
        parent: None,
    };
    let mut frame = FrameIn { step: StepToken::start(), state: json!({}), guidance: None };
    loop {
        let out = step(&performer, &spec, &frame).await?;
        if each && let Some(data) = &out.data {
            println!("== {} {}\n{}\n", data["document"], data["title"], out.text.as_deref().unwrap_or(""));
        }
        if out.done {
            println!("{}", out.text.unwrap_or_default());
            return Ok(());
        }
        frame = FrameIn { step: out.next_step, state: out.state, guidance: None };
    }
}

async fn step(performer: &Performer, spec: &SessionSpec, frame: &FrameIn) -> Result<FrameOut, Box<dyn Error>> {
    let digest = moniker::find("digest").ok_or("no digest moniker")?;
    let session = SessionKey::new(Namespace::default_ns(), SessionId::parse("s-1").expect("an id"));
    let agent = AgentId::parse("agent-1").expect("an id");
    let mut outcomes = Vec::new();
    loop {
        match digest.decide(&StepInput {
            session: &session,
            agent: &agent,
            frame,
            spec,
            arrival: None,
            answer: None,
            outcomes: &outcomes,
        }) {
            Decision::Finish { out, .. } => return Ok(out),
            Decision::Perform(effect) => {
                let (session, key) = (session.clone(), frame.step.to_string());
                let call = EffectCall { session, epoch: Epoch(1), key, effect };
                outcomes.push(performer.perform(&call).await);
            }
            Decision::Fail { message, .. } => return Err(message.into()),
            other => return Err(format!("the digest waits for nothing, and so not for {other:?}").into()),
        }
    }
}

fn arguments(mut given: impl Iterator<Item = String>) -> Result<(Value, bool), String> {
    let (mut config, mut each) = (json!({"paths": []}), false);
    while let Some(argument) = given.next() {
        let mut value = || given.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--each" => each = true,
            "--glob" => config["glob"] = value()?.into(),
            "--sentences" => {
                config["sentences"] = value()?.parse::<u64>().map_err(|error| format!("--sentences: {error}"))?.into();
            }
            path => config["paths"].as_array_mut().ok_or("paths is a list")?.push(path.into()),
        }
    }
    Ok((config, each))
}
