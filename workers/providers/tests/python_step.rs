//! The step function in Python of `examples/`, checked by itself and driven by the `http` moniker.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use domain::effect::EffectCall;
use domain::moniker::{self, Arrival, ArrivalKind, Decision, StepInput};
use domain::ports::Effects;
use providers::{Performer, ProvidersConfig};
use schemas::frame::{FrameIn, FrameOut, StepToken};
use schemas::id::{ActionId, AgentId, Epoch, Namespace, SessionId, SessionKey};
use schemas::json::Json;
use schemas::problem::Code;
use schemas::session::SessionSpec;
use serde_json::{Value, json};

fn script() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/python_step.py")
}

/// The running example; ends with the test.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start() -> Self {
        let mut child = Command::new("python3")
            .arg(script())
            .args(["--port", "0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("python3 is needed for this test");
        let mut line = String::new();
        let out = child.stdout.take().expect("piped");
        BufReader::new(out).read_line(&mut line).expect("the server says where it is");
        let url = line.trim().rsplit(' ').next().unwrap_or_default().to_owned();
        Self { child, url }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to stop.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn step(
    performer: &Performer,
    url: &str,
    frame: &FrameIn,
    input: Option<Value>,
) -> Result<FrameOut, (Code, String)> {
    let http = moniker::find("http").expect("the http moniker");
    let session = SessionKey::new(Namespace::default_ns(), SessionId::parse("s-1").expect("an id"));
    let agent = AgentId::parse("agent-1").expect("an id");
    let spec = SessionSpec {
        moniker: "http".to_owned(),
        task: None,
        config: Json::of(&json!({ "url": url })),
        stop_on_done: true,
        max_steps: None,
        max_runtime_ms: None,
        loop_interval_ms: 0,
        conversation_id: None,
        parent: None,
    };
    let arrival = input.map(|payload| Arrival {
        action_id: ActionId::parse("a-1").expect("an id"),
        kind: ArrivalKind::Input,
        payload,
        accepted_at_ms: 1,
    });
    let mut outcomes = Vec::new();
    loop {
        match http.decide(&StepInput {
            session: &session,
            agent: &agent,
            frame,
            spec: &spec,
            arrival: arrival.as_ref(),
            answer: None,
            outcomes: &outcomes,
        }) {
            Decision::Finish { out, took_arrival } => {
                assert_eq!(took_arrival, arrival.is_some());
                return Ok(out);
            }
            Decision::Perform(effect) => {
                let (session, key) = (session.clone(), "default:s-1:0:0".to_owned());
                let call = EffectCall { session, epoch: Epoch(1), key, effect };
                outcomes.push(performer.perform(&call).await);
            }
            Decision::Fail { code, message } => return Err((code, message)),
            other => panic!("http waits for nothing, and so not for {other:?}"),
        }
    }
}

fn after(out: FrameOut) -> FrameIn {
    FrameIn { step: out.next_step, state: out.state, guidance: None }
}

#[test]
fn the_example_checks_itself() {
    let output =
        Command::new("python3").arg(script()).arg("--check").output().expect("python3 is needed for this test");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.trim() == "ok", "{said}{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn the_example_runs_as_a_moniker() {
    let server = Server::start();
    let performer =
        Performer::new(&ProvidersConfig { allow_private: true, ..ProvidersConfig::default() }).expect("valid");
    let start = FrameIn { step: StepToken::start(), state: json!({"until": 3}), guidance: None };
    let first =
        step(&performer, &server.url, &start, Some(json!({"text": "to be or not to be"}))).await.expect("a step");
    assert_eq!((first.next_step.as_str(), &first.state["words"]), ("listen/1", &json!(6)));
    let second = step(&performer, &server.url, &after(first), None).await.expect("a step");
    let third = step(&performer, &server.url, &after(second), None).await.expect("a step");
    assert!(third.done && third.text.is_some_and(|text| text.contains("6 words so far")));

    let wrong = FrameIn { step: StepToken::start(), state: json!([1]), guidance: None };
    let (code, message) = step(&performer, &server.url, &wrong, None).await.expect_err("a bad state");
    assert_eq!(code, Code::StepFailed);
    assert!(message.contains("status 422"), "{message}");
    let (_, message) =
        step(&performer, &server.url.replace("/step", "/other"), &start, None).await.expect_err("a bad path");
    assert!(message.contains("POST frames to /step"), "{message}");
}
