//! The loop with plain values: what is asked of the world is looked at, what comes back is made up.

mod about;
mod bench;
mod billed;
mod calls;
mod compactions;
mod contexts;
mod control;
mod delegates;
mod earlier;
mod joins;
mod per_call;
mod results;
mod steered;
mod turns;
