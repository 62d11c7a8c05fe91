//! Conversations from outside: turns with and without tools, beside one another, over crashes, and as
//! streams. The model is a script.

mod compaction;
pub mod desk;
mod kills;
mod scenarios;
mod tools;
mod turns;
