//! Pure decisions: no I/O, no clock, no randomness, no runtime. Modules in reading order.

pub mod action;
pub mod audit;
pub mod chat;
pub mod commit;
pub mod context;
pub mod conversation;
pub mod converse;
pub mod definition;
pub mod digest;
pub mod effect;
pub mod failure;
pub mod invariant;
pub mod moniker;
pub mod ports;
pub mod read;
pub mod retry;
pub mod session;
pub mod shard;
pub mod template;
pub mod talk;
pub mod time;
pub mod tool;
pub mod trace;
pub mod verify;
pub mod why;
