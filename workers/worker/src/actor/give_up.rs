//! What a session does cannot be stored: it starts over from its last commit, and its run ends there.

use std::time::Duration;

use domain::failure::Failure;

use super::calls::Calls;
use super::commit::InFlight;
use super::contexts::Contexts;
use super::{Exit, Flow, Live, Mail, load};

/// Wait before another try when not even that can be stored.
const AGAIN: Duration = Duration::from_secs(30);

impl Live {
    /// Ends the run in `error`. Nothing that was accepted is lost: what only the refused commit settled
    /// is in the ledger, and waits for a resume.
    pub(super) async fn give_up(mut self, failure: Failure) -> Exit {
        tracing::error!(%failure, session.id = %self.session.key, "the store refuses what a session did; its run ends");
        let hand_over = self.context.hand_over.clone();
        tokio::select! {
            biased;
            () = hand_over.cancelled() => Exit::HandedOver,
            exit = self.end_in_error(failure) => exit,
        }
    }

    async fn end_in_error(&mut self, failure: Failure) -> Exit {
        match self.try_end(failure).await {
            Ok(true) => return Exit::Reload,
            Ok(false) => {}
            Err(Exit::Refused(_)) => {
                tracing::error!(session.id = %self.session.key, "its end cannot be stored either; will try again");
            }
            Err(exit) => return exit,
        }
        tokio::time::sleep(AGAIN).await;
        Exit::Reload
    }

    /// Whether there was anything to store: a session that is paused or at rest cannot fail.
    async fn try_end(&mut self, failure: Failure) -> Flow<bool> {
        let (session, _) = load::load(&self.context, &self.session.key, None).await?;
        (self.session, self.in_flight, self.calls) = (session, InFlight::new(), Calls::default());
        self.contexts = Contexts::default();
        // Who creates, resumes or ends a session is heard; a step is not tried.
        self.admit(Mail::Nudge);
        self.read_ledger().await;
        let now = self.context.now_ms();
        self.session.boundary(now);
        let message = format!("the store does not take what the step came to: {}", failure.message);
        self.session.fail(failure.code, message, now);
        let is_news = self.session.has_unsaved();
        self.save_all().await?;
        Ok(is_news)
    }
}
