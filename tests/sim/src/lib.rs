//! The whole fleet on one thread: real workers on fake ports, a paused clock, and seeded faults.
//! After each run an oracle checks the invariants of `domain::invariant`. A seed reproduces a run.

mod chaos;
mod clients;
mod drill;
mod fleet;
mod oracle;
mod ordering;
mod plan;
mod quiet;
mod run;
mod scene;
mod turn;
mod world;

pub use drill::drill_every;
pub use oracle::Finding;
pub use ordering::{Attack, attack};
pub use plan::Plan;
pub use run::{Failed, Passed, run_plan, run_seed};
pub use scene::{Scene, is_of, play};
pub use turn::{
    Drilled, Outlived, drill_cancelling, drill_compaction, drill_destroying, drill_guest, drill_steering, drill_turn,
    drill_verdicts, outlive,
};
pub use world::World;
