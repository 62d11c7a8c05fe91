//! The acceptance scenarios of the specification, each a test named by its id.

pub mod control;
pub mod fleet;
mod frames;
mod reads;
mod requests;
mod tokens;
