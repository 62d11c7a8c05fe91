//! One turn that waits for all that a turn can wait for: tools of two classes, work in the background, another
//! agent, a person. Its worker may crash at one call. Whatever the call, the transcript is the same, no model
//! is asked for a move that is recorded, and tools run as their class promises.

mod check;
mod history;
mod losses;
mod person;
mod place;
mod script;

use std::time::Duration;

use testkit::crash::Run;
use testkit::unreliable::CrashPoint;

use crate::quiet;
use crate::world::World;
use history::History;
pub use losses::{Outlived, outlive};
use place::Place;

/// How often it is looked whether all is settled, and how often at most.
const LOOK: Duration = Duration::from_millis(10);
const LOOKS_MAX: u32 = 6_000;
/// What comes late must be nothing.
const AFTERWARDS: Duration = Duration::from_secs(3);
/// Lines of the trace that a failure shows.
const TAIL: usize = 80;

/// What crashes led to, all that were tried together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drilled {
    /// Crashes that were tried.
    pub points: u64,
    /// Requests to models beyond the first of each move, made before its reply was recorded.
    pub asked_again: usize,
    /// Attempts of repeatable tools beyond the first of each call.
    pub run_again: usize,
    /// Calls of tools that run at most once, and were cut.
    pub in_doubt: usize,
}

/// One crash at every `stride`th call, before and after it.
///
/// # Errors
/// The first crash that changes history.
pub fn drill_turn(stride: usize) -> Result<Drilled, String> {
    let mut drilled = Drilled::default();
    let points = testkit::crash::at_every_call(stride, |crash| {
        let (run, repeats) = crate::run::runtime().block_on(turn(crash));
        drilled.asked_again += repeats.asked_again;
        drilled.run_again += repeats.run_again;
        drilled.in_doubt += repeats.in_doubt;
        run
    })?;
    Ok(Drilled { points, ..drilled })
}

/// Runs the turn with a crash at the given call of its worker.
async fn turn(crash: Option<CrashPoint>) -> (Run<History>, Drilled) {
    let at = format!("with a crash at {crash:?}");
    let place = Place::new().await;
    let person = tokio::spawn(person::say_yes(place.world.clone()));
    let first = place.start("first", crash);
    let survived = tokio::select! {
        biased;
        () = first.faults.crashed() => false,
        () = settled(&place.world, &at) => true,
    };
    let calls = first.faults.calls();
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
    person.abort();
    let repeats = check::check(&place, !survived, &at).await;
    (Run { calls, history: History::of(&place).await }, repeats)
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
