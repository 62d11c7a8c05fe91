//! The handlers, one file per subject. Each file lists its routes.

pub mod actions;
pub mod agents;
pub mod control;
pub mod conversations;
pub mod dead;
pub mod definitions;
pub mod events;
pub mod fleet;
pub mod health;
pub mod memories;
pub mod operations;
pub mod pools;
pub mod sessions;
pub mod socket;
pub mod spending;
pub mod steps;
pub mod turns;
