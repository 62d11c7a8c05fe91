//! Which queues dead letters can go back to. What is sent to one that is gone comes back, and with it ends the channel
//! that everything else is published on.

use std::collections::HashMap;

use domain::failure::Failure;

use super::super::link::Link;
use super::super::{fault, topology};

pub struct Homes {
    link: Link,
    known: HashMap<String, bool>,
}

impl Homes {
    /// The fleet's own queues count as there: whoever publishes declares them anew.
    pub fn new(link: Link, shards: u16) -> Self {
        let known = topology::queues(shards).into_iter().map(|(name, _)| (name, true)).collect();
        Self { link, known }
    }

    pub async fn has(&mut self, queue: &str) -> Result<bool, Failure> {
        if let Some(known) = self.known.get(queue) {
            return Ok(*known);
        }
        let opened = self.link.now()?.connection.create_channel().await;
        let channel = opened.map_err(|error| fault::failure("cannot open a channel", &error))?;
        let found = topology::waiting(&channel, queue).await?.is_some();
        if found {
            // It was asked all there was to ask.
            let _ = channel.close(200, "OK".into()).await;
        }
        self.known.insert(queue.to_owned(), found);
        Ok(found)
    }
}
