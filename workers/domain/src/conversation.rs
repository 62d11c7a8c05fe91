//! Conversations, decided purely: what a request for one means, who answers a message and how, and
//! how the log is shown. One file per verb; ids and times come in from the edge.

pub mod address;
pub mod approval;
pub mod branch;
pub mod cancel;
pub mod change;
pub mod create;
pub mod deliver;
pub mod ids;
pub mod join;
pub mod kept;
pub mod moves;
pub mod post;
pub mod seat;
pub mod stream;
pub mod transcript;
pub mod view;

mod parts;

#[cfg(test)]
mod tests;

/// The moniker of agents that talk, unless a request names another one.
pub const CONVERSE: &str = "converse";
