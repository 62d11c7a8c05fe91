//! Tells that the archive does not answer while the archivist still waits for it: a request to a storage that hangs
//! fails only after a minute or more.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use domain::outage::Outage;
use domain::ports::Archive;
use tokio::sync::watch;
use tokio::time::Instant;

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A turn of the archivist that takes longer is a reason to ask the archive.
const LATE: Duration = Duration::from_secs(2);
/// It is away if it has not answered by then: batches take long, a ping does not.
const PATIENCE: Duration = Duration::from_secs(3);

pub struct Vigil {
    archive: Arc<dyn Archive>,
    /// Since when the archivist is at work; `None` while it rests.
    turn: watch::Receiver<Option<Instant>>,
    outage: Outage,
    begun: Instant,
}

impl Vigil {
    pub fn new(archive: Arc<dyn Archive>, turn: watch::Receiver<Option<Instant>>) -> Self {
        Self { archive, turn, outage: Outage::default(), begun: Instant::now() }
    }

    /// Looks for as long as the archivist works.
    pub async fn keep(mut self) -> Infallible {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            self.look().await;
        }
    }

    /// One look: asks the archive if a turn is late, and for as long as an outage is not told to be over.
    /// `Some`: a line was due, which said whether it is away.
    async fn look(&mut self) -> Option<bool> {
        let is_late = self.turn.borrow().is_some_and(|since| since.elapsed() >= LATE);
        if !is_late && self.outage.is_over() {
            return None;
        }
        let why = match tokio::time::timeout(PATIENCE, self.archive.ping()).await {
            Ok(Ok(())) => None,
            Ok(Err(failure)) => Some(failure.to_string()),
            Err(_) => Some(format!("no answer within {} s", PATIENCE.as_secs())),
        };
        let left_out = self.outage.see(why.is_some(), self.begun.elapsed())?;
        match &why {
            Some(why) => tracing::warn!(
                error = %why,
                left_out,
                "the history does not answer; its storage is away or hangs; the journal keeps what is committed"
            ),
            None => tracing::info!(left_out, "the history answers again"),
        }
        Some(why.is_some())
    }
}

#[cfg(test)]
mod tests {
    use testkit::fake::MemArchive;
    use testkit::unreliable::{Faults, Unreliable};

    use super::*;

    type Turns = watch::Sender<Option<Instant>>;

    /// The lines of so many looks, with the time of each.
    async fn lines(vigil: &mut Vigil, looks: usize, turns: Option<&Turns>) -> Vec<(u64, bool)> {
        let mut lines = Vec::new();
        for _ in 0..looks {
            tokio::time::sleep(LOOK_EVERY).await;
            if let Some(turns) = turns {
                turns.send_replace(Some(Instant::now()));
            }
            let told = vigil.look().await;
            lines.extend(told.map(|is_away| (vigil.begun.elapsed().as_secs(), is_away)));
        }
        lines
    }

    #[tokio::test(start_paused = true)]
    async fn an_archive_that_hangs_is_told_within_seconds_and_so_is_its_end() {
        let faults = Faults::none("archivist");
        let archive = Arc::new(Unreliable::new(Arc::new(MemArchive::default()), faults.clone()));
        let (turns, turn) = watch::channel(Some(Instant::now()));
        let mut vigil = Vigil::new(archive, turn);
        faults.freeze(Duration::from_secs(60));
        let told = lines(&mut vigil, 30, None).await;
        let is_prompt = |(at, _): &&(u64, bool)| *at <= 6;
        assert_eq!(told.iter().filter(is_prompt).count(), 1, "{told:?}");
        let said: Vec<bool> = told.iter().map(|(_, is_away)| *is_away).collect();
        assert_eq!(said, [true, false], "each once: {told:?}");
        assert!(told.iter().all(|(at, is_away)| *is_away || *at >= 60), "not while it hangs: {told:?}");
        assert!(lines(&mut vigil, 100, Some(&turns)).await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_turn_is_no_outage_and_turns_in_time_ask_nothing() {
        let faults = Faults::none("archivist");
        let archive = Arc::new(Unreliable::new(Arc::new(MemArchive::default()), faults.clone()));
        let (turns, turn) = watch::channel(Some(Instant::now()));
        let mut vigil = Vigil::new(archive, turn);
        assert!(lines(&mut vigil, 100, Some(&turns)).await.is_empty());
        turns.send_replace(None);
        assert!(lines(&mut vigil, 100, None).await.is_empty());
        assert_eq!(faults.calls(), 0, "neither while it rests");
        turns.send_replace(Some(Instant::now()));
        assert!(lines(&mut vigil, 100, None).await.is_empty());
        assert!(faults.calls() > 90, "it was asked");
    }
}
