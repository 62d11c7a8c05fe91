//! The queue between those who accept actions and those who own their shards, and the way of live
//! notices back: within one process, and over RabbitMQ.

mod embedded;
mod rabbit;
#[cfg(test)]
mod samples;

pub use embedded::{EmbeddedLive, EmbeddedQueue};
pub use rabbit::{Rabbit, Survey};
