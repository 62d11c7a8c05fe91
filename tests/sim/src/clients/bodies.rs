//! Random bodies of actions. Session ids repeat across namespaces on purpose.

use schemas::id::Namespace;
use serde_json::{Value, json};
use testkit::dice::Dice;

pub struct Bodies {
    dice: Dice,
    client: usize,
    sessions: u64,
}

const NAMESPACES: [&str; 2] = ["default", "other"];
/// A conversation that several sessions speak in, and one of each namespace.
const ROOM: &str = "room";
const VERBS: [&str; 13] = [
    "create",
    "create",
    "create",
    "input",
    "input",
    "input",
    "input",
    "interrupt",
    "interrupt",
    "interrupt",
    "pause",
    "resume",
    "destroy",
];

impl Bodies {
    pub fn new(dice: Dice, client: usize, sessions: u64) -> Self {
        Self { dice, client, sessions }
    }

    /// The `n`th action of this client: its namespace and body.
    pub fn next(&self, n: u64) -> (Namespace, Value) {
        let dice = &self.dice;
        let namespace = Namespace::parse(NAMESPACES[usize::from(dice.chance(0.3))]).expect("an id");
        let number = dice.range(0..self.sessions);
        let verb = if n == 0 { "create" } else { *dice.pick(&VERBS) };
        let mark = format!("{namespace}.s{number}.{}.{n}", self.client);
        let body = match verb {
            "create" => create(dice, number),
            "input" => at(dice, number, json!({"type": "input", "payload": {"text": format!("in:{mark}")}})),
            "interrupt" => at(dice, number, interrupt(dice, &mark)),
            "pause" => at(dice, number, json!({"type": "pause", "payload": {"reason": mark}})),
            "resume" => at(dice, number, json!({"type": "resume"})),
            _ if dice.chance(0.5) => at(dice, number, json!({"type": "destroy"})),
            _ => at(dice, number, json!({"type": "resume"})),
        };
        (namespace, body)
    }
}

/// The moniker of a session is a matter of its number, so that a repeated create is the same one.
fn create(dice: &Dice, number: u64) -> Value {
    let until = 1 + dice.range(0..30);
    let payload = match number % 7 {
        0 => json!({"moniker": "echo", "conversation_id": ROOM}),
        3 => json!({"moniker": "echo"}),
        1 => json!({"moniker": "tell_a_joke", "loop_interval_ms": 400, "max_steps": 40}),
        2 => json!({"moniker": "count", "loop_interval_ms": 700, "max_runtime_s": 40}),
        4 => json!({"moniker": "count", "config": {"until": until}, "conversation_id": ROOM}),
        5 => json!({
            "moniker": "http", "state": {"until": 6}, "loop_interval_ms": 200,
            "config": {"url": "http://step.example/", "effect": "at_most_once"},
        }),
        _ => json!({"moniker": "count", "config": {"until": 300}}),
    };
    json!({"type": "create", "session_id": format!("s{number}"), "agent_id": format!("a{}", number % 3), "payload": payload})
}

fn interrupt(dice: &Dice, mark: &str) -> Value {
    let mut payload = json!({"guidance": {"mark": format!("g:{mark}"), "subject": "dogs"}});
    if dice.chance(0.3) {
        payload["mode"] = json!("now");
    }
    json!({"type": "interrupt", "payload": payload})
}

/// Addresses a body to a session, or now and then to its agent.
fn at(dice: &Dice, number: u64, mut body: Value) -> Value {
    if dice.chance(0.1) {
        body["agent_id"] = json!(format!("a{}", number % 3));
    } else {
        body["session_id"] = json!(format!("s{number}"));
    }
    body
}
