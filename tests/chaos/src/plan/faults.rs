//! The faults of a run: a shuffled deck of all kinds, so that each has its turn, then several at a
//! time, with room to recover in between. A brief run has each kind once.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use serde::Serialize;

use super::{ARCHIVIST, CLOCKS, EXECUTOR, History, Shape};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Service {
    Postgres,
    Rabbitmq,
    /// Where the history is, if that is a bucket.
    Bucket,
}

impl Service {
    pub const ALL: [Self; 3] = [Self::Postgres, Self::Rabbitmq, Self::Bucket];

    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Rabbitmq => "rabbitmq",
            Self::Bucket => "s3",
        }
    }
}

/// What a network does to the connections of one process with one service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Everything passes.
    Open,
    /// Everything is late by about so many milliseconds.
    Delay(u64),
    /// Connections are reset, and new ones refused.
    Cut,
    /// Nothing passes, and nobody is told; it goes on where it stopped.
    Stall,
    /// New connections are taken and nothing is answered; what was open stays dead for good.
    HalfOpen,
    /// All connections are reset once; new ones work.
    Reset,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// SIGKILL, and a new start after the time.
    Kill(String),
    /// SIGSTOP, and SIGCONT after the time.
    Freeze(String),
    /// Not the bucket: what it holds is in the memory of its server.
    KillService(Service),
    FreezeService(Service),
    Net {
        process: String,
        service: Service,
        mode: Mode,
    },
    /// RabbitMQ takes no more messages.
    MemoryAlarm,
    /// The clock of one process jumps, and back after the time.
    ClockStep {
        process: String,
        seconds: i64,
    },
    DiskFull,
    RollingRestart,
    /// A further worker comes and goes.
    Guest {
        cycles: u32,
        kill: bool,
    },
    /// By the operator's command; then another one takes its place.
    Drain(String),
    /// Messages on the shards' queues are taken, shuffled, doubled and lost.
    Meddle {
        seed: u64,
    },
}

/// All kinds of faults.
pub const KINDS: [&str; 21] = [
    "kill worker",
    "freeze worker",
    "kill dispatcher",
    "freeze dispatcher",
    "kill archivist",
    "freeze archivist",
    "kill executor",
    "freeze executor",
    "kill rabbitmq",
    "freeze rabbitmq",
    "kill postgres",
    "freeze postgres",
    "net",
    "memory alarm",
    "rolling restart",
    "guest",
    "drain",
    "meddle",
    DISK,
    CLOCK_WORKER,
    CLOCK_DISPATCHER,
];
const CLOCK_WORKER: &str = "clock step worker";
const CLOCK_DISPATCHER: &str = "clock step dispatcher";
const DISK: &str = "disk full";
const BUCKET: &str = "freeze s3";
/// A brief run begins with these, one at a time: how accepting and taking over go on is measured with
/// nothing else broken.
const ALONE: [&str; 4] = ["kill rabbitmq", "freeze rabbitmq", "kill worker", "freeze worker"];
/// Faults of one phase of a brief run, otherwise.
const TOGETHER: usize = 3;

/// A fault, and when in its phase.
#[derive(Debug, Clone, Serialize)]
pub struct Planned {
    pub fault: Fault,
    pub after_ms: u64,
    pub lasts_ms: u64,
}

/// Faults that overlap, and a time without any.
#[derive(Debug, Clone, Serialize)]
pub struct Phase {
    pub faults: Vec<Planned>,
    pub recovery_ms: u64,
}

impl Fault {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Kill(name) if name.starts_with("worker") => "kill worker",
            Self::Kill(name) if name.starts_with("dispatcher") => "kill dispatcher",
            Self::Kill(name) if name == EXECUTOR => "kill executor",
            Self::Kill(_) => "kill archivist",
            Self::Freeze(name) if name.starts_with("worker") => "freeze worker",
            Self::Freeze(name) if name.starts_with("dispatcher") => "freeze dispatcher",
            Self::Freeze(name) if name == EXECUTOR => "freeze executor",
            Self::Freeze(_) => "freeze archivist",
            Self::KillService(Service::Rabbitmq) => "kill rabbitmq",
            Self::KillService(Service::Postgres) => "kill postgres",
            Self::KillService(Service::Bucket) => "kill s3",
            Self::FreezeService(Service::Rabbitmq) => "freeze rabbitmq",
            Self::FreezeService(Service::Postgres) => "freeze postgres",
            Self::FreezeService(Service::Bucket) => BUCKET,
            Self::Net { .. } => "net",
            Self::MemoryAlarm => "memory alarm",
            Self::ClockStep { process, .. } if process.starts_with("dispatcher") => CLOCK_DISPATCHER,
            Self::ClockStep { .. } => CLOCK_WORKER,
            Self::DiskFull => DISK,
            Self::RollingRestart => "rolling restart",
            Self::Guest { .. } => "guest",
            Self::Drain(_) => "drain",
            Self::Meddle { .. } => "meddle",
        }
    }

    /// What it happens to, for people.
    pub fn target(&self) -> String {
        match self {
            Self::Kill(name) | Self::Freeze(name) | Self::Drain(name) => name.clone(),
            Self::KillService(service) | Self::FreezeService(service) => service.name().into(),
            Self::Net { process, service, mode } => format!("{process} to {}: {mode:?}", service.name()),
            Self::ClockStep { process, seconds } => format!("{process} by {seconds} s"),
            Self::MemoryAlarm => "rabbitmq".into(),
            Self::DiskFull => "history".into(),
            Self::RollingRestart => "all workers and dispatchers".into(),
            Self::Guest { cycles, kill } => {
                format!("{cycles} times, each ended by {}", if *kill { "SIGKILL" } else { "SIGTERM" })
            }
            Self::Meddle { .. } => "shard queues".into(),
        }
    }

    /// Processes and services that no other fault may touch meanwhile.
    pub fn subjects(&self, shape: &Shape) -> Vec<String> {
        match self {
            Self::Kill(name) | Self::Freeze(name) | Self::Drain(name) => vec![name.clone()],
            Self::Net { process, .. } | Self::ClockStep { process, .. } => vec![process.clone()],
            Self::KillService(service) | Self::FreezeService(service) => vec![service.name().into()],
            Self::MemoryAlarm | Self::Meddle { .. } => vec![Service::Rabbitmq.name().into()],
            Self::DiskFull => vec!["history".into()],
            Self::Guest { .. } => vec!["guest".into()],
            Self::RollingRestart => [shape.workers(), shape.dispatchers()].concat(),
        }
    }
}

/// The kinds that a fleet can have. A bucket is on no disk that could be full; its server freezes instead.
pub fn kinds(history: History) -> impl Iterator<Item = &'static str> {
    KINDS.into_iter().map(move |kind| if kind == DISK && history == History::S3 { BUCKET } else { kind })
}

/// Phases for the whole time, and some more; of a brief run, as many as it takes.
pub fn draw(shape: &Shape) -> Vec<Phase> {
    let mut dice = shape.dice(1);
    let wanted = |kind: &&str| shape.only.is_empty() || shape.only.iter().any(|only| only == kind);
    let kinds: Vec<&str> = kinds(shape.history).filter(wanted).collect();
    let mut phases = Vec::new();
    if shape.brief {
        return brief(&kinds, shape, &mut dice);
    }
    if kinds.is_empty() {
        return phases;
    }
    let mut deck: Vec<&str> = Vec::new();
    for number in 0..shape.seconds / 5 + 20 {
        let mut faults: Vec<Planned> = Vec::new();
        for n in 0..if number % 2 == 0 { 1 } else { dice.random_range(2..=3) } {
            if deck.is_empty() {
                deck.extend(&kinds);
                deck.shuffle(&mut dice);
            }
            let kind = if n == 0 { deck.pop() } else { kinds.choose(&mut dice).copied() };
            let Some(kind) = kind else { continue };
            let fault = one(kind, shape, &mut dice);
            let free = is_free(&fault, &faults, shape);
            let (after_ms, lasts_ms) = (dice.random_range(0..2_000) * n, lasts(kind, &mut dice));
            if free {
                faults.push(Planned { fault, after_ms, lasts_ms });
            }
        }
        phases.push(Phase { faults, recovery_ms: dice.random_range(3_000..9_000) });
    }
    phases
}

/// Whether nothing that it happens to has another fault already.
fn is_free(fault: &Fault, among: &[Planned], shape: &Shape) -> bool {
    let taken: Vec<String> = among.iter().flat_map(|planned| planned.fault.subjects(shape)).collect();
    !fault.subjects(shape).iter().any(|subject| taken.contains(subject))
}

/// Every kind once: some alone, the others in as few phases as there is room for.
fn brief(kinds: &[&str], shape: &Shape, dice: &mut StdRng) -> Vec<Phase> {
    let mut phases: Vec<Phase> = Vec::new();
    for kind in ALONE.into_iter().filter(|kind| kinds.contains(kind)) {
        // The next one is measured against the time before it.
        let (faults, recovery_ms) = (vec![shortly(kind, shape, dice)], dice.random_range(4_500..5_000));
        phases.push(Phase { faults, recovery_ms });
    }
    let mut deck: Vec<&str> = kinds.iter().copied().filter(|kind| !ALONE.contains(kind)).collect();
    deck.shuffle(dice);
    let mut together: Vec<Phase> = Vec::new();
    for kind in deck {
        let mut planned = shortly(kind, shape, dice);
        let has_room =
            |phase: &&mut Phase| phase.faults.len() < TOGETHER && is_free(&planned.fault, &phase.faults, shape);
        match together.iter_mut().find(has_room) {
            Some(phase) => {
                planned.after_ms = dice.random_range(0..800);
                phase.faults.push(planned);
            }
            None => together.push(Phase { faults: vec![planned], recovery_ms: dice.random_range(1_500..2_500) }),
        }
    }
    phases.extend(together);
    phases
}

/// As short as still says something: a frozen worker loses its lease, a clock is read once a second.
fn shortly(kind: &str, shape: &Shape, dice: &mut StdRng) -> Planned {
    let fault = match one(kind, shape, dice) {
        Fault::Guest { kill, .. } => Fault::Guest { cycles: 1, kill },
        other => other,
    };
    let range = match kind {
        "freeze worker" => 7_000..8_000,
        "kill rabbitmq" | "freeze rabbitmq" | CLOCK_WORKER | CLOCK_DISPATCHER => 3_000..4_000,
        "guest" => 1_000..2_000,
        _ => 1_500..3_000,
    };
    Planned { fault, after_ms: 0, lasts_ms: dice.random_range(range) }
}

/// Long enough for leases to run out now and then, and short enough for many in a run.
fn lasts(kind: &str, dice: &mut StdRng) -> u64 {
    let range = match kind {
        "kill worker" | "kill dispatcher" | "kill archivist" | "kill executor" => 200..6_000,
        "freeze worker" => 5_000..16_000,
        "kill rabbitmq" | "kill postgres" => 500..5_000,
        "freeze postgres" => 2_000..9_000,
        "guest" => 2_000..4_000,
        _ => 4_000..12_000,
    };
    dice.random_range(range)
}

fn one(kind: &str, shape: &Shape, dice: &mut StdRng) -> Fault {
    let worker = format!("worker-{}", dice.random_range(1..=shape.workers.max(1)));
    let dispatcher = format!("dispatcher-{}", dice.random_range(1..=shape.dispatchers.max(1)));
    match kind {
        "kill worker" => Fault::Kill(worker),
        "freeze worker" => Fault::Freeze(worker),
        "kill dispatcher" => Fault::Kill(dispatcher),
        "freeze dispatcher" => Fault::Freeze(dispatcher),
        "kill archivist" => Fault::Kill(ARCHIVIST.into()),
        "freeze archivist" => Fault::Freeze(ARCHIVIST.into()),
        "kill executor" => Fault::Kill(EXECUTOR.into()),
        "freeze executor" => Fault::Freeze(EXECUTOR.into()),
        "kill rabbitmq" => Fault::KillService(Service::Rabbitmq),
        "freeze rabbitmq" => Fault::FreezeService(Service::Rabbitmq),
        "kill postgres" => Fault::KillService(Service::Postgres),
        "freeze postgres" => Fault::FreezeService(Service::Postgres),
        "memory alarm" => Fault::MemoryAlarm,
        "rolling restart" => Fault::RollingRestart,
        "guest" => Fault::Guest { cycles: dice.random_range(2..5), kill: dice.random_bool(0.5) },
        "drain" => Fault::Drain(worker),
        "meddle" => Fault::Meddle { seed: dice.random() },
        DISK => Fault::DiskFull,
        BUCKET => Fault::FreezeService(Service::Bucket),
        CLOCK_WORKER | CLOCK_DISPATCHER => {
            let seconds = dice.random_range(5..900) * if dice.random_bool(0.5) { 1 } else { -1 };
            let [worker, dispatcher] = CLOCKS;
            let process = if kind == CLOCK_WORKER { worker } else { dispatcher };
            Fault::ClockStep { process: process.into(), seconds }
        }
        _ => {
            let process = match dice.random_range(0..10) {
                0..6 => worker,
                6..8 => dispatcher,
                _ if dice.random_bool(0.8) => ARCHIVIST.into(),
                _ => EXECUTOR.into(),
            };
            let service = other_end(&process, shape.history, dice.random());
            let modes = [Mode::Delay(dice.random_range(20..400)), Mode::Cut, Mode::Stall, Mode::HalfOpen, Mode::Reset];
            let mode = modes.choose(dice).copied().unwrap_or(Mode::Cut);
            Fault::Net { process, service, mode }
        }
    }
}

/// With which service the connections of a process fail. One roll, whatever there is: a seed means the same with and
/// without a bucket. Who archives needs it most.
fn other_end(process: &str, history: History, roll: f64) -> Service {
    let bucket = match history {
        History::Directory => 0.0,
        History::S3 if process == ARCHIVIST => 0.6,
        History::S3 => 0.3,
    };
    match (roll - bucket) / (1.0 - bucket) {
        rest if rest < 0.0 => Service::Bucket,
        rest if rest < 0.6 => Service::Postgres,
        _ => Service::Rabbitmq,
    }
}
