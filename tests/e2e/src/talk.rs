//! Conversations from outside: turns with and without tools, beside one another, over crashes, and as
//! streams. The model is a script.

mod approvals;
mod asking;
mod billing;
mod budgets;
mod by_hand;
mod client;
mod compaction;
mod crowd;
pub mod desk;
mod earlier;
mod joins;
mod kills;
mod loops;
mod memories;
mod scenarios;
mod sockets;
mod stepwise;
mod tools;
mod transcript;
mod turns;
