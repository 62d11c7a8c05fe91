//! The queue between those who accept actions and those who own their shards, and the way of live
//! notices back.

mod embedded;
mod live;

pub use embedded::EmbeddedQueue;
pub use live::EmbeddedLive;
