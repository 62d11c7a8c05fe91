//! The acceptance scenarios of the specification, each a test named by its id.

mod control;
mod fleet;
mod frames;
mod reads;
mod requests;
mod tokens;
