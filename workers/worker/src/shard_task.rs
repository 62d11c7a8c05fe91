//! One shard: consumes its two lanes, keeps its live sessions, wakes the others in time, and asks
//! the ledger for what the queue lost.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use domain::ports::{Content, Deliveries, Delivery, Lease};
use schemas::action::{Action, Lane};
use schemas::id::SessionKey;
use schemas::limits::LEDGER_POLL_MS;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::actor::{self, Actor, Exit, Mail, ShardContext};
use crate::runner::Shared;
use crate::schedule::Schedule;

/// Rows of one page of a scan, and pages of one tick.
const SCAN_PAGE: usize = 256;
const SCAN_PAGES_MAX: usize = 16;

pub(crate) struct ShardTask {
    context: Arc<ShardContext>,
    actors: HashMap<SessionKey, mpsc::Sender<Mail>>,
    running: JoinSet<(SessionKey, Exit)>,
    schedule: Schedule,
}

impl ShardTask {
    pub fn new(shared: Arc<Shared>, lease: Lease, hand_over: CancellationToken) -> Self {
        Self {
            context: Arc::new(ShardContext { shared, lease, hand_over }),
            actors: HashMap::new(),
            running: JoinSet::new(),
            schedule: Schedule::default(),
        }
    }

    /// Runs until handed over; returns when nothing of the shard runs any more.
    pub async fn run(mut self) {
        let mut control = Lanes::new(self.context.clone(), Lane::Control);
        let mut work = Lanes::new(self.context.clone(), Lane::Work);
        control.open().await;
        work.open().await;
        // Take-over: what the ledger and the timers hold, without waiting for the queue.
        self.scan(0).await;
        let mut poll = tokio::time::interval(Duration::from_millis(self.context.shared.config.poll_ms));
        poll.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        poll.reset();
        let hand_over = self.context.hand_over.clone();
        loop {
            let due = self.until_due();
            tokio::select! {
                biased;
                () = hand_over.cancelled() => break,
                Some(delivery) = control.next() => self.deliver(&mut control, delivery).await,
                Some(ended) = self.running.join_next() => self.on_exit(ended),
                () = tokio::time::sleep(due) => self.wake_due(),
                _ = poll.tick() => {
                    control.open().await;
                    work.open().await;
                    self.scan(LEDGER_POLL_MS).await;
                }
                // Last, so that a flood of work starves nothing above.
                Some(delivery) = work.next() => self.deliver(&mut work, delivery).await,
            }
        }
        // The channels are closed with everything unacked, never cancelled (DESIGN 4).
        drop((control, work));
        self.actors.clear();
        while self.running.join_next().await.is_some() {}
    }

    async fn deliver(&mut self, lanes: &mut Lanes, delivery: Delivery) {
        let Delivery { tag, content } = delivery;
        match content {
            Content::Action(action) => {
                self.route(action);
                // The ledger has the action: it needs no custody beyond this point.
                lanes.ack(tag).await;
            }
            Content::Foreign(_) => lanes.bury(tag, "not published by the fleet").await,
        }
    }

    fn route(&mut self, action: Action) {
        if action.shard != self.context.lease.shard {
            tracing::warn!(shard = %action.shard, "an action came to the wrong shard; its owner finds it in the ledger");
            return;
        }
        let key = action.key();
        self.send(key, Mail::Action(Box::new(action)));
    }

    /// Hands mail to the session, bringing it into memory if need be. Mail that does not fit is
    /// dropped: a full mailbox makes the session read the ledger.
    fn send(&mut self, key: SessionKey, mail: Mail) {
        let mail = match self.actors.get(&key) {
            None => mail,
            Some(mailbox) => match mailbox.try_send(mail) {
                Ok(()) | Err(mpsc::error::TrySendError::Full(_)) => return,
                Err(mpsc::error::TrySendError::Closed(mail)) => mail,
            },
        };
        if let Some(mailbox) = self.start(key) {
            // A fresh mailbox has room.
            let _ = mailbox.try_send(mail);
        }
    }

    /// `None` when too many sessions are in memory: the next scan tries again.
    fn start(&mut self, key: SessionKey) -> Option<mpsc::Sender<Mail>> {
        let permit = self.context.shared.live.clone().try_acquire_owned().ok()?;
        let (tx, rx) = mpsc::channel(actor::MAILBOX_MAX);
        let actor = Actor::new(self.context.clone(), key.clone(), rx);
        let name = key.clone();
        self.running.spawn(async move {
            let exit = actor.run().await;
            drop(permit);
            (name, exit)
        });
        self.actors.insert(key, tx.clone());
        Some(tx)
    }

    fn on_exit(&mut self, ended: Result<(SessionKey, Exit), tokio::task::JoinError>) {
        let Ok((key, exit)) = ended else {
            tracing::error!(shard = %self.context.lease.shard, "a session's task panicked; it resumes from its last commit");
            self.actors.retain(|_, mailbox| !mailbox.is_closed());
            return;
        };
        // A successor may have been started already, for mail that came to the closed mailbox.
        if self.actors.get(&key).is_some_and(mpsc::Sender::is_closed) {
            self.actors.remove(&key);
        }
        match exit {
            Exit::Reload => self.send(key, Mail::Nudge),
            Exit::Idle { wake_at_ms: Some(at) } => self.schedule.add(at, key),
            Exit::Idle { wake_at_ms: None } | Exit::HandedOver | Exit::Gone => {}
        }
    }

    fn until_due(&self) -> Duration {
        let now = self.context.now_ms();
        let ms = self.schedule.next_ms().map_or(3_600_000, |at| at.saturating_sub(now).clamp(0, 3_600_000));
        Duration::from_millis(ms.unsigned_abs())
    }

    fn wake_due(&mut self) {
        let now = self.context.now_ms();
        while let Some(key) = self.schedule.pop_due(now) {
            if !self.actors.contains_key(&key) {
                self.send(key, Mail::Nudge);
            }
        }
    }

    /// Finds sessions that have something to do and are not in memory.
    async fn scan(&mut self, older_than_ms: u64) {
        if let Err(failure) = self.scan_pending(older_than_ms).await {
            tracing::debug!(%failure, "cannot scan the ledger");
            return;
        }
        if let Err(failure) = self.scan_due().await {
            tracing::debug!(%failure, "cannot scan the timers");
        }
    }

    async fn scan_pending(&mut self, older_than_ms: u64) -> Result<(), domain::failure::Failure> {
        let context = self.context.clone();
        let ledger = &context.shared.deps.ledger;
        let mut after = None;
        for _ in 0..SCAN_PAGES_MAX {
            let page = ledger.sessions_with_pending(context.lease.shard, older_than_ms, after, SCAN_PAGE).await?;
            let is_last = page.len() < SCAN_PAGE;
            after = page.last().map(|key| (key.namespace.clone(), key.session_id.clone()));
            for key in page {
                self.send(key, Mail::Nudge);
            }
            if is_last {
                break;
            }
        }
        Ok(())
    }

    async fn scan_due(&mut self) -> Result<(), domain::failure::Failure> {
        let context = self.context.clone();
        let sessions = &context.shared.deps.sessions;
        let horizon = context.now_ms() + 2 * context.shared.config.poll_ms as i64;
        let mut after = None;
        // The scan sees everything up to its horizon, so it replaces what was known.
        self.schedule.clear();
        for _ in 0..SCAN_PAGES_MAX {
            let page = sessions.due(context.lease.shard, horizon, after, SCAN_PAGE).await?;
            let is_last = page.len() < SCAN_PAGE;
            after = page.last().cloned();
            for (at, key) in page {
                if !self.actors.contains_key(&key) {
                    self.schedule.add(at, key);
                }
            }
            if is_last {
                break;
            }
        }
        self.wake_due();
        Ok(())
    }
}

/// One lane's deliveries, opened anew whenever they end.
struct Lanes {
    context: Arc<ShardContext>,
    lane: Lane,
    deliveries: Option<Box<dyn Deliveries>>,
}

impl Lanes {
    fn new(context: Arc<ShardContext>, lane: Lane) -> Self {
        Self { context, lane, deliveries: None }
    }

    async fn open(&mut self) {
        if self.deliveries.is_some() {
            return;
        }
        match self.context.shared.deps.queue.consume(self.context.lease.shard, self.lane).await {
            Ok(deliveries) => self.deliveries = Some(deliveries),
            Err(failure) => tracing::debug!(%failure, "cannot consume; the ledger is polled meanwhile"),
        }
    }

    /// The next delivery; pends while the lane is closed. Cancel safe.
    async fn next(&mut self) -> Option<Delivery> {
        match &mut self.deliveries {
            Some(deliveries) => match deliveries.next().await {
                Some(delivery) => Some(delivery),
                None => {
                    self.deliveries = None;
                    std::future::pending().await
                }
            },
            None => std::future::pending().await,
        }
    }

    async fn ack(&mut self, tag: u64) {
        if let Some(deliveries) = &mut self.deliveries
            && deliveries.ack(tag).await.is_err()
        {
            self.deliveries = None;
        }
    }

    async fn bury(&mut self, tag: u64, reason: &str) {
        if let Some(deliveries) = &mut self.deliveries
            && let Err(failure) = deliveries.bury(tag, reason).await
        {
            tracing::warn!(%failure, lane = self.lane.as_str(), "cannot bury a message; it comes again");
            self.deliveries = None;
        }
    }
}
