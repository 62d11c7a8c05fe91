//! What happens to each session: how it is created, and what its client does with it.

use rand::Rng;
use rand::rngs::StdRng;
use serde::Serialize;

use super::Shape;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Counts evenly for the whole run: its steps show when a worker's sessions move again.
    Pulse,
    /// Takes many ordered inputs.
    Ordered,
    /// Counts up to a number.
    Count {
        until: u64,
    },
    /// Counts until it is destroyed.
    Endless,
    Echo,
    Digest {
        set: u64,
    },
    Model {
        task: &'static str,
    },
    Http {
        once: bool,
    },
}

/// What a client does. Inputs and guidance carry a text of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    Input,
    Guide {
        set: Option<i64>,
        now: bool,
    },
    Pause,
    Resume,
    Destroy,
    /// Sends what was sent last once more: it is answered alike and acts once.
    Again,
    /// Uses the id of what was sent last for something else: it is refused.
    Conflict,
}

#[derive(Debug, Clone, Serialize)]
pub struct Deed {
    pub after_ms: u64,
    pub act: Act,
}

#[derive(Debug, Clone, Serialize)]
pub struct Story {
    pub id: String,
    pub agent: String,
    pub kind: Kind,
    pub start_ms: u64,
    pub interval_ms: u64,
    /// Whether its actions go over AMQP.
    pub amqp: bool,
    /// Whether a live follower watches it.
    pub followed: bool,
    pub deeds: Vec<Deed>,
}

const PULSES: usize = 24;
const PULSE_MS: u64 = 200;
/// Groups of endless sessions that are paused and resumed as one.
pub const GROUPS: u64 = 4;
/// Of the run, in which sessions are created.
const CREATING: f64 = 0.85;
const TASKS: [&str; 4] = ["task-slow", "task-plain", "task-flaky", "task-auth"];
pub const DIGEST_SETS: u64 = 4;

pub fn draw(shape: &Shape) -> Vec<Story> {
    let mut dice = shape.dice(2);
    let mut stories = Vec::new();
    for n in 0..PULSES {
        stories.push(pulse(n));
    }
    // The attack on order, smaller in a short run.
    let (ordered, inputs) = if shape.sessions >= 1_000 { (50, 200) } else { (20, 60) };
    for n in 0..ordered {
        stories.push(ordered_story(n, inputs, shape, &mut dice));
    }
    let creating = (shape.seconds as f64 * CREATING * 1_000.0) as u64;
    for n in stories.len()..shape.sessions.max(stories.len()) {
        let start_ms = dice.random_range(0..creating.max(1));
        stories.push(mixed(n, start_ms, &mut dice));
    }
    stories
}

fn pulse(n: usize) -> Story {
    Story {
        id: format!("pulse-{n:02}"),
        agent: "pulse".into(),
        kind: Kind::Pulse,
        start_ms: 0,
        interval_ms: PULSE_MS,
        amqp: false,
        followed: true,
        deeds: Vec::new(),
    }
}

fn ordered_story(n: usize, inputs: u64, shape: &Shape, dice: &mut StdRng) -> Story {
    let mean = (shape.seconds * 700 / inputs).max(4);
    let mut deeds = Vec::new();
    for k in 0..inputs {
        // Now in a rush, now with a pause.
        let after_ms = if k % 20 == 0 { mean * 10 } else { dice.random_range(0..mean) };
        deeds.push(Deed { after_ms, act: Act::Input });
        if dice.random_bool(0.05) {
            deeds.push(Deed { after_ms: 0, act: Act::Again });
        }
    }
    Story {
        id: format!("order-{n:02}"),
        agent: "order".into(),
        kind: Kind::Ordered,
        start_ms: dice.random_range(0..1_500),
        interval_ms: 0,
        amqp: false,
        followed: n.is_multiple_of(5),
        deeds,
    }
}

fn mixed(n: usize, start_ms: u64, dice: &mut StdRng) -> Story {
    let kind = match dice.random_range(0..100) {
        0..22 => Kind::Count { until: dice.random_range(3..80) },
        22..36 => Kind::Endless,
        36..56 => Kind::Echo,
        56..66 => Kind::Digest { set: dice.random_range(0..DIGEST_SETS) },
        66..80 => Kind::Model { task: TASKS[dice.random_range(0..TASKS.len())] },
        _ => Kind::Http { once: dice.random_bool(0.5) },
    };
    let agent = match kind {
        Kind::Endless => format!("bulk-{}", n as u64 % GROUPS),
        _ => format!("agent-{}", n % 40),
    };
    let interval_ms = match kind {
        Kind::Endless => dice.random_range(100..800),
        Kind::Http { .. } => dice.random_range(0..600),
        _ => dice.random_range(0..250),
    };
    let deeds = deeds(kind, dice);
    let amqp = matches!(kind, Kind::Echo | Kind::Endless | Kind::Count { .. }) && dice.random_bool(0.2);
    Story { id: format!("s-{n:05}"), agent, kind, start_ms, interval_ms, amqp, followed: n.is_multiple_of(97), deeds }
}

fn deeds(kind: Kind, dice: &mut StdRng) -> Vec<Deed> {
    let many = match kind {
        Kind::Echo => dice.random_range(3..20),
        Kind::Digest { .. } => 0,
        _ => dice.random_range(0..8),
    };
    let mut deeds: Vec<Deed> = Vec::new();
    let mut paused = false;
    for k in 0..many {
        let guide = Act::Guide { set: Some(k as i64 * 1_000 + dice.random_range(0..999)), now: dice.random_bool(0.2) };
        let act = match dice.random_range(0..100) {
            0..8 if k > 0 => Act::Again,
            8..12 if k > 0 => Act::Conflict,
            12..24 if !paused => Act::Pause,
            _ if paused && dice.random_bool(0.5) => Act::Resume,
            _ if kind == Kind::Echo => Act::Input,
            _ if matches!(kind, Kind::Count { .. }) => Act::Guide { set: None, now: dice.random_bool(0.2) },
            _ => guide,
        };
        paused = if act == Act::Pause { true } else { paused && act != Act::Resume };
        deeds.push(Deed { after_ms: dice.random_range(0..3_000), act });
    }
    if paused {
        deeds.push(Deed { after_ms: dice.random_range(0..3_000), act: Act::Resume });
    }
    if matches!(kind, Kind::Endless | Kind::Echo | Kind::Http { .. } | Kind::Model { .. }) && dice.random_bool(0.7) {
        deeds.push(Deed { after_ms: dice.random_range(2_000..10_000), act: Act::Destroy });
    }
    deeds
}
