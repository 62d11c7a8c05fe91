//! Turns that wait for all that a turn can wait for. Their worker may crash at one call. Whatever the call, the
//! transcript is the same, no model is asked for what is recorded, and tools run as their class promises. Each
//! scenario has a file, with its script and with what must come of it.

mod cancelled;
mod check;
mod compacted;
mod guests;
mod history;
mod losses;
mod person;
mod place;
mod script;
mod speaking;
mod steered;
mod verdicts;
mod work;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::Duration;

use testkit::crash::{Run, at_every_call};
use testkit::unreliable::CrashPoint;

use crate::quiet;
use crate::world::World;
pub use cancelled::{drill_cancelling, drill_destroying};
pub use compacted::drill_compaction;
pub use guests::drill_guest;
use history::History;
pub use losses::{Outlived, outlive};
use place::Place;
use script::Script;
pub use steered::drill_steering;
pub use verdicts::drill_verdicts;
pub use work::drill_turn;

/// How often it is looked whether all is settled, and how often at most.
const LOOK: Duration = Duration::from_millis(10);
const LOOKS_MAX: u32 = 6_000;
/// What comes late must be nothing.
const AFTERWARDS: Duration = Duration::from_secs(3);
/// Lines of the trace that a failure shows.
const TAIL: usize = 80;

/// What crashes led to, all that were tried together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drilled {
    /// Crashes that were tried.
    pub points: u64,
    /// Requests to models beyond the first of each move, made before its reply was recorded.
    pub asked_again: usize,
    /// Attempts of repeatable tools beyond the first of each call.
    pub run_again: usize,
    /// Calls of tools that run at most once, and were cut.
    pub in_doubt: usize,
    /// Runs that have the beginning of a reply which was cut short; the one without a crash is among them.
    pub cut_short: u64,
    /// Runs that have a reply which came before its model had heard of what was said meanwhile; likewise.
    pub overtaken: u64,
    /// How far the log had come when workers crashed: each number of records that its sessions had added by then.
    pub stages: BTreeSet<usize>,
}

/// A scenario that came to its end.
pub struct Ended {
    place: Place,
    /// Calls of the process that may have crashed.
    calls: u64,
    /// It crashed before all was over.
    crashed: bool,
    /// Records that sessions had added to the log by then, if it did.
    stage: Option<usize>,
    /// Which run it was, for what fails.
    at: String,
}

impl Ended {
    async fn run(&self) -> Run<History> {
        Run { calls: self.calls, history: History::of(&self.place).await }
    }
}

/// Plays a scenario with one crash at every `stride`th call, before and after it. The first crash that changes
/// history is an error.
fn every<H, F>(stride: usize, play: impl Fn(Option<CrashPoint>) -> F) -> Result<Drilled, String>
where
    H: PartialEq + Debug,
    F: Future<Output = (Run<H>, Drilled)>,
{
    let mut sum = Drilled::default();
    let points = at_every_call(stride, |crash| {
        let (run, one) = crate::run::runtime().block_on(play(crash));
        sum.asked_again += one.asked_again;
        sum.run_again += one.run_again;
        sum.in_doubt += one.in_doubt;
        sum.cut_short += one.cut_short;
        sum.overtaken += one.overtaken;
        sum.stages.extend(one.stages);
        run
    })?;
    Ok(Drilled { points, ..sum })
}

/// Plays a script to its end, with a crash at the given call of its worker. `people` act beside it.
async fn played<P>(script: &'static Script, crash: Option<CrashPoint>, people: impl FnOnce(Place) -> P) -> Ended
where
    P: Future<Output = ()> + Send + 'static,
{
    let at = format!("with a crash at {crash:?}");
    let place = Place::new(script).await;
    let people = tokio::spawn(people(place.clone()));
    let first = place.start("first", crash);
    let survived = tokio::select! {
        biased;
        () = first.faults.crashed() => false,
        () = settled(&place.world, &at) => true,
    };
    let calls = first.faults.calls();
    let stage = if survived { None } else { Some(place.told().await) };
    let last = if survived {
        first
    } else {
        place.end(first);
        let second = place.start("second", None);
        settled(&place.world, &at).await;
        second
    };
    tokio::time::sleep(AFTERWARDS).await;
    place.end(last);
    people.abort();
    let fell = people.await.is_err_and(|error| error.is_panic());
    assert!(!fell, "{at}: somebody beside the worker panicked");
    Ended { place, calls, crashed: !survived, stage, at }
}

/// Returns when no session has anything to do or to wait for but input.
async fn settled(world: &World, at: &str) {
    for _ in 0..LOOKS_MAX {
        tokio::time::sleep(LOOK).await;
        if quiet::unsettled(world).is_empty() {
            return;
        }
    }
    panic!("{at}: {:?}\n{}", quiet::unsettled(world), world.trace.tail(TAIL).join("\n"));
}
