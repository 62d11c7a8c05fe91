//! The loop with plain values: what is asked of the world is looked at, what comes back is made up.

mod bench;
mod calls;
mod compactions;
mod contexts;
mod control;
mod delegates;
mod results;
mod steered;
mod turns;
