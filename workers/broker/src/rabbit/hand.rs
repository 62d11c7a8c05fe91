//! What a lane's task has in hand: deliveries that are open, by the queue and by express.

use domain::ports::{Content, Delivery};
use schemas::action::Action;

use super::acks::Acks;
use super::consumer::Order;
use super::express::{Came, Early, Line};
use super::message;

pub(super) struct Hand {
    pub acks: Acks,
    early: Early,
    line: Option<Line>,
}

impl Hand {
    pub fn new(line: Option<Line>) -> Self {
        Self { acks: Acks::default(), early: Early::default(), line }
    }

    /// What came by express: a delivery to hand on, or one that is not wanted. Cancel safe.
    pub async fn copy(&mut self) -> Option<Delivery> {
        let Some(line) = &mut self.line else { return std::future::pending().await };
        let copy = line.next().await;
        // Only the fleet itself sends copies; whatever else comes this way is dropped.
        let Ok(Content::Action(action)) = message::read(&copy.properties, &copy.body) else { return None };
        let tag = self.early.copy(&action, copy)?;
        Some(Delivery { tag, content: Content::Action(action) })
    }

    /// Whether an action that came by the queue is to be handed on. If not, its copy was.
    pub fn is_first(&mut self, tag: u64, action: &Action) -> bool {
        let Some(line) = &self.line else { return true };
        match line.settled(|settled| self.early.queued(tag, action, settled)) {
            Came::First => true,
            Came::Again => false,
            Came::Settled => {
                self.acks.settle(tag);
                false
            }
        }
    }

    pub fn carry_out(&mut self, order: Order) {
        match order {
            Order::Ack(tag) => {
                if let Some(tag) = self.of_queue(tag) {
                    self.acks.settle(tag);
                }
            }
            Order::Show(tag, show) => {
                let held = if Early::is_copy(tag) { self.early.held(tag) } else { self.acks.held(tag) };
                // Nobody waits any more: the delivery stays open.
                let _ = show.send(held);
            }
        }
    }

    /// The message that an acknowledgement stands for, if it has come.
    fn of_queue(&mut self, tag: u64) -> Option<u64> {
        match &self.line {
            Some(line) if Early::is_copy(tag) => line.settled(|settled| self.early.settle(tag, settled)),
            _ => Some(tag),
        }
    }
}
