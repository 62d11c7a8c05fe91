//! Contracts only: ids, actions, frames, records, events, API bodies, topology, limits and
//! telemetry names. Nothing outside this crate is serialised to a queue, a table or a socket.

pub mod action;
pub mod api;
pub mod conversation;
pub mod definition;
pub mod event;
pub mod frame;
pub mod hint;
pub mod id;
pub mod json;
pub mod limits;
pub mod memory;
pub mod problem;
pub mod record;
pub mod request;
pub mod session;
pub mod telemetry;
pub mod topology;
