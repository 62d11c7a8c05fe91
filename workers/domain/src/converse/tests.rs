//! The loop with plain values: what is asked of the world is looked at, what comes back is made up.

mod about;
mod bench;
mod billed;
mod bounds;
mod budgets;
mod calls;
mod compactions;
mod contexts;
mod control;
mod crowd;
mod cuts;
mod delegates;
mod earlier;
mod guests;
mod joins;
mod per_call;
mod quotes;
mod results;
mod room;
mod steered;
mod turns;
mod voices;
