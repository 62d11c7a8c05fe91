//! The express way: a copy of an action, transient and unconfirmed, straight to the process that
//! consumes its lane. The message on the quorum queue waits for a disk and comes later; it is
//! acknowledged then, without being handed on again. A copy may be lost at any point: the queue has
//! the action, and so has the ledger.

mod early;
mod hear;
mod lines;
mod send;

use lapin::BasicProperties;
use lapin::types::ShortString;
use tokio::sync::mpsc;

use super::link::Link;
use super::message::Message;
use super::troubles::Troubles;
pub(super) use early::{Came, Early, OPEN_MAX};
pub(super) use lines::{Line, Lines};

/// A larger batch is a backlog: what matters then is the number of actions, not the time of one.
const BATCH_MAX: usize = 16;
/// A larger action takes its time anyway.
const BODY_BYTES_MAX: usize = 64 << 10;
/// Delivery mode of what need not outlive the broker.
const TRANSIENT: u8 = 1;
/// Copies that wait to be sent; what does not fit is dropped.
const WAITING_MAX: usize = 256;

/// A copy on its way. The routing key is the name of the lane's queue.
struct Parcel {
    key: ShortString,
    properties: BasicProperties,
    body: Vec<u8>,
}

pub(super) struct Express {
    parcels: mpsc::Sender<Parcel>,
    lines: Lines,
}

impl Express {
    pub fn start(publishing: Link, consuming: Link, troubles: Troubles) -> Self {
        let (parcels, waiting) = mpsc::channel(WAITING_MAX);
        let lines = Lines::default();
        tokio::spawn(send::run(publishing, waiting));
        tokio::spawn(hear::run(consuming, lines.watch(), troubles));
        Self { parcels, lines }
    }

    /// Where the consumers of this process wait for copies.
    pub fn lines(&self) -> Lines {
        self.lines.clone()
    }

    /// Sends copies ahead. Never waits, and never fails in a way that matters.
    pub fn send(&self, messages: &[Message]) {
        if messages.len() > BATCH_MAX {
            return;
        }
        for message in messages.iter().filter(|message| message.body.len() <= BODY_BYTES_MAX) {
            let properties = message.properties.clone().with_delivery_mode(TRANSIENT);
            let _ = self.parcels.try_send(Parcel { key: message.key.clone(), properties, body: message.body.clone() });
        }
    }
}
