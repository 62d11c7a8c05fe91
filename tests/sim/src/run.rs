//! One run: chaos while the clients act, then peace, then the oracle.

use std::fmt;
use std::time::Duration;

use domain::invariant::{Broken, Invariant};

use crate::chaos;
use crate::clients::{Book, Client};
use crate::fleet::Machine;
use crate::oracle;
use crate::plan::Plan;
use crate::quiet;
use crate::world::World;

/// Longest that clients may take for all their actions.
const CLIENTS_MAX: Duration = Duration::from_secs(600);
/// Longest that a drain may take once nothing fails any more.
const DRAIN_MAX: Duration = Duration::from_secs(60);
/// Lines of the trace in a report; `SIM_TAIL` asks for more.
const TAIL: usize = 60;

/// What a run that kept every invariant did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Passed {
    pub commits: u64,
    pub steps: u64,
    pub actions: u64,
    pub claims: u64,
    pub effects: u64,
    pub fenced: u64,
    pub conflicts: u64,
    /// Equal for equal runs.
    pub digest: u64,
}

/// A run that broke an invariant.
#[derive(Debug, Clone)]
pub struct Failed {
    pub seed: u64,
    pub broken: Vec<Broken>,
    pub tail: Vec<String>,
}

pub fn run_seed(seed: u64) -> Result<Passed, Failed> {
    run_plan(Plan::of(seed))
}

pub fn run_plan(plan: Plan) -> Result<Passed, Failed> {
    runtime().block_on(run(plan))
}

/// One thread, and a clock that moves when everybody waits.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().expect("a runtime without I/O needs nothing of the machine")
}

async fn run(plan: Plan) -> Result<Passed, Failed> {
    let seed = plan.seed;
    let world = World::new(plan);
    let book = Book::default();
    let mut machines: Vec<Machine> =
        (0..world.plan.workers).map(|n| Machine::start(&world, format!("w{n}"), false)).collect();
    machines.push(Machine::start(&world, "archivist".into(), true));
    let mut broken = act(&world, &book, &machines).await;
    world.trace.note(&"world".into(), "peace");
    world.heal();
    for machine in &machines {
        machine.heal();
    }
    broken.extend(quiet::settle(&world, &book).await);
    for machine in machines {
        let name = machine.name().to_owned();
        if !machine.end(DRAIN_MAX).await {
            broken.push(Broken { invariant: Invariant::Q1, evidence: format!("{name} does not drain") });
        }
    }
    broken.extend(oracle::check(&world, &book));
    if broken.is_empty() {
        Ok(summary(&world))
    } else {
        Err(Failed { seed, broken, tail: world.trace.tail(tail_length()) })
    }
}

/// Clients act under blows of fate, until all have said what they wanted to say.
async fn act(world: &World, book: &Book, machines: &[Machine]) -> Vec<Broken> {
    let clients: Vec<_> = (0..world.plan.clients)
        .map(|n| {
            let (mut client, world) = (Client::new(world, n, book.clone()), world.clone());
            tokio::spawn(async move { client.act(&world).await })
        })
        .collect();
    let all = async {
        tokio::time::sleep(Duration::from_millis(world.plan.chaos_for_ms)).await;
        for client in clients {
            client.await.expect("clients do not panic");
        }
    };
    tokio::select! {
        biased;
        () = all => Vec::new(),
        () = chaos::strike(world, machines) => Vec::new(),
        () = chaos::churn(world, machines) => Vec::new(),
        () = tokio::time::sleep(CLIENTS_MAX) => {
            vec![Broken { invariant: Invariant::A1, evidence: "a client never got an answer".into() }]
        }
    }
}

fn tail_length() -> usize {
    std::env::var("SIM_TAIL").ok().and_then(|text| text.parse().ok()).unwrap_or(TAIL)
}

fn summary(world: &World) -> Passed {
    let log = world.store.commit_log();
    let (fenced, conflicts) = world.store.refused_commits();
    Passed {
        fenced,
        conflicts,
        commits: log.len() as u64,
        steps: log.iter().map(|commit| commit.entry.steps.len() as u64).sum(),
        actions: world.store.all_actions().len() as u64,
        claims: world.store.claim_log().len() as u64,
        effects: world.effects.performed().len() as u64,
        digest: world.trace.digest(),
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {} breaks {} invariants; run it alone with SIM_SEED={}",
            self.seed,
            self.broken.len(),
            self.seed
        )?;
        for broken in self.broken.iter().take(12) {
            writeln!(f, "  {broken}")?;
        }
        writeln!(f, "the last {} events:", self.tail.len())?;
        for line in &self.tail {
            writeln!(f, "  {line}")?;
        }
        Ok(())
    }
}
