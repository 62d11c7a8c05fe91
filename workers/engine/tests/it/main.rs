//! The engine from outside, with a provider that says what it is told to, and with the real ones.

mod agents;
mod cancels;
mod fakes;
mod failures;
mod hooks;
mod lifecycle;
mod models;
mod restarts;
mod stores;
mod summaries;
mod turns;
