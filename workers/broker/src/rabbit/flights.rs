//! Batches on their way: which of their messages are not answered yet, and what became of the rest.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::failure::{Certainty, Failure};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// A message that is not confirmed within this time counts as lost.
pub(super) const CONFIRM_MAX: Duration = Duration::from_secs(10);

pub(super) type Reply = oneshot::Sender<Result<(), Failure>>;

struct Batch {
    count: usize,
    open: usize,
    since: Instant,
    failed: Vec<Failure>,
    reply: Reply,
}

/// Messages are numbered as they are sent; a batch has consecutive numbers.
#[derive(Default)]
pub(super) struct Flights {
    batches: BTreeMap<u64, Batch>,
    next: u64,
}

impl Flights {
    /// Returns the number of the first message.
    pub fn start(&mut self, count: usize, now: Instant, reply: Reply) -> u64 {
        let first = self.next;
        self.next += count as u64;
        self.batches.insert(first, Batch { count, open: count, since: now, failed: Vec::new(), reply });
        first
    }

    /// The broker has answered for one message.
    pub fn answered(&mut self, number: u64) {
        if let Some(batch) = self.batch(number) {
            batch.open -= 1;
        }
    }

    /// A message did not get where it should. Its answer is counted apart.
    pub fn failed(&mut self, number: u64, failure: Failure) {
        if let Some(batch) = self.batch(number) {
            batch.failed.push(failure);
        }
    }

    /// Tells those whose batch is complete. Called after all answers at hand are counted: a
    /// returned message may be reported along with the answer for another one.
    pub fn report(&mut self) {
        for (_, batch) in self.batches.extract_if(.., |_, batch| batch.open == 0) {
            let outcome = summary(batch.count, &batch.failed);
            // Nobody waits any more: the caller gave up.
            let _ = batch.reply.send(outcome);
        }
    }

    pub fn fail_all(&mut self, failure: &Failure) {
        for batch in std::mem::take(&mut self.batches).into_values() {
            let _ = batch.reply.send(Err(failure.clone()));
        }
    }

    /// When the oldest batch counts as lost.
    pub fn deadline(&self) -> Option<Instant> {
        self.batches.first_key_value().map(|(_, batch)| batch.since + CONFIRM_MAX)
    }

    fn batch(&mut self, number: u64) -> Option<&mut Batch> {
        let (first, batch) = self.batches.range_mut(..=number).next_back()?;
        (number < first + batch.count as u64).then_some(batch)
    }
}

fn summary(count: usize, failed: &[Failure]) -> Result<(), Failure> {
    let Some(first) = failed.first() else { return Ok(()) };
    let in_doubt = failed.iter().any(|failure| failure.certainty == Certainty::MayHaveHappened);
    let message = format!("{} of {count} messages are not on the queue: {}", failed.len(), first.message);
    Err(if in_doubt { Failure::in_doubt(message) } else { Failure::unavailable(message) })
}

#[cfg(test)]
mod tests {
    use super::*;

    type Answer = oneshot::Receiver<Result<(), Failure>>;

    fn start(flights: &mut Flights, count: usize) -> (u64, Answer) {
        let (reply, answer) = oneshot::channel();
        (flights.start(count, Instant::now(), reply), answer)
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_is_reported_once_all_its_messages_are_answered() {
        let mut flights = Flights::default();
        let (first, mut one) = start(&mut flights, 3);
        let (second, mut two) = start(&mut flights, 1);
        flights.answered(second);
        flights.answered(first + 2);
        flights.answered(first);
        flights.report();
        assert_eq!(two.try_recv().unwrap(), Ok(()));
        assert!(one.try_recv().is_err(), "one message is still open");
        flights.answered(first + 1);
        flights.report();
        assert_eq!(one.try_recv().unwrap(), Ok(()));
        assert_eq!(flights.deadline(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_return_that_comes_with_another_answer_hits_its_own_batch() {
        let mut flights = Flights::default();
        let (first, mut one) = start(&mut flights, 2);
        let (second, mut two) = start(&mut flights, 2);
        for number in first..second + 2 {
            flights.answered(number);
        }
        flights.failed(second + 1, Failure::unavailable("no such queue"));
        flights.report();
        assert_eq!(one.try_recv().unwrap(), Ok(()));
        let failure = two.try_recv().unwrap().unwrap_err();
        assert!(failure.message.starts_with("1 of 2 messages"), "{failure}");
        assert_eq!(failure.certainty, Certainty::DidNotHappen);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_after_the_end_of_a_batch_are_ignored() {
        let mut flights = Flights::default();
        let (first, mut one) = start(&mut flights, 2);
        assert_eq!(flights.deadline(), Some(Instant::now() + CONFIRM_MAX));
        flights.fail_all(&Failure::in_doubt("blocked"));
        assert!(one.try_recv().unwrap().is_err());
        flights.answered(first);
        flights.failed(first, Failure::unavailable("late"));
        flights.report();
    }
}
