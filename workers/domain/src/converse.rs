//! The conversation loop as the built-in moniker `converse` (SPEC 1.15): receive, assemble, ask the
//! model, run tools, respond, extract. Planning is pure and returns [`TurnDecision`]s; applying them
//! is separate (SPEC 1.26). Each active turn is a lane of its own, so one turn answers while another
//! waits; one reply of a model is one step, recorded before anything acts on it.

mod agents;
mod answers;
mod apply;
mod asking;
mod assembly;
mod budget;
mod compacting;
mod decision;
mod earlier;
mod guests;
mod guide;
mod history;
pub(crate) mod ids;
mod moniker;
mod open;
mod quoting;
mod reply;
mod results;
mod room;
mod seats;
mod settings;
mod shown;
mod start;
mod state;
mod summary;
#[cfg(test)]
mod tests;
mod transcript;
mod voices;

pub use agents::{unanswered, works_on};
pub(crate) use asking::held;
pub use assembly::{Assembly, Context, Gathered, Limits, Placed, Summariser, TurnSnapshot, assemble};
pub(crate) use budget::checks_of_steps;
pub use budget::{Bound, Checks, Found, Measure, Next, Over, Scope, Span};
pub use decision::TurnDecision;
pub use guide::OWN_FIELDS;
pub use ids::{is_reserved, message_id};
pub use moniker::CONVERSE;
pub use quoting::{IN_REPLY_TO, quote};
pub use reply::Reply;
pub use room::too_much_metadata;
pub use seats::{Seat, can_be_asked, seats};
pub use settings::{DEPTH_MAX, Settings};
pub use shown::{Due, SHOWN, Shown};
pub use start::CALL_FIELDS;
pub use state::{Lane, Stage, TalkState};
pub use summary::{Compacted, Compacting, Extent, Known, Summarised, Summary};
pub use transcript::{BESIDE, heard, move_id, seen};
