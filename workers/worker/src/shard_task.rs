//! One shard: consumes its two lanes, keeps its live sessions, wakes the others in time, and asks
//! the ledger for what the queue lost.

mod foreign;
mod lanes;
mod scan;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use domain::ports::{Content, Delivery, Lease};
use host::trace::{self, Stage};
use schemas::action::{Action, Lane};
use schemas::id::SessionKey;
use schemas::limits::LEDGER_POLL_MS;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::actor::{self, Actor, Exit, Mail, ShardContext};
use crate::runner::Shared;
use crate::schedule::Schedule;
use foreign::{Done, Foreigners};
use lanes::Lanes;
use scan::Scan;

/// How the task of a shard ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Everything is committed; the shard can be given to another.
    HandedOver,
    /// A commit met the fence: another owns the shard.
    Lost,
}

pub(crate) struct ShardTask {
    context: Arc<ShardContext>,
    /// By key, so that a simulation repeats itself.
    actors: BTreeMap<SessionKey, mpsc::Sender<Mail>>,
    running: JoinSet<(SessionKey, Exit)>,
    schedule: Schedule,
    scan: Scan,
    control: Lanes,
    work: Lanes,
    foreigners: Foreigners,
    lost: bool,
}

impl ShardTask {
    /// `hand_over` is cancelled with `lost`.
    pub fn new(shared: Arc<Shared>, lease: Lease, hand_over: CancellationToken, lost: CancellationToken) -> Self {
        let context = Arc::new(ShardContext { shared, lease, hand_over, lost });
        Self {
            actors: BTreeMap::new(),
            running: JoinSet::new(),
            schedule: Schedule::default(),
            scan: Scan::default(),
            control: Lanes::new(context.clone(), Lane::Control),
            work: Lanes::new(context.clone(), Lane::Work),
            foreigners: Foreigners::new(context.clone()),
            lost: false,
            context,
        }
    }

    /// Runs until handed over or lost; returns when nothing of the shard runs any more.
    pub async fn run(mut self) -> End {
        let hand_over = self.context.hand_over.clone();
        tokio::select! {
            biased;
            () = hand_over.cancelled() => {}
            () = self.serve() => {}
        }
        let Self { actors, control, work, foreigners, scan, running, lost, .. } = self;
        // The channels are closed with everything unacked, never cancelled (DESIGN 4).
        drop((control, work, foreigners, scan));
        let end = wind_up(running, lost).await;
        // Not before: a session whose mailbox is closed tears its call off instead of giving it its grace.
        drop(actors);
        end
    }

    /// Ends only when the shard is lost. What is dropped with it is found again by the next owner.
    async fn serve(&mut self) {
        self.control.open();
        self.work.open();
        // Take-over: what the ledger and the timers hold, without waiting for the queue.
        self.scan.begin(&self.context, 0);
        let mut poll = tokio::time::interval(Duration::from_millis(self.context.shared.config.poll_ms));
        poll.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        poll.reset();
        while !self.lost {
            let due = self.until_due();
            tokio::select! {
                biased;
                delivery = self.control.next() => self.deliver(Lane::Control, delivery).await,
                Some(ended) = self.running.join_next() => self.on_exit(ended),
                done = self.foreigners.done() => self.settle(done).await,
                () = tokio::time::sleep(due) => self.wake_due(),
                found = self.scan.found() => self.take_up(found),
                _ = poll.tick() => {
                    for lane in [&mut self.control, &mut self.work] {
                        lane.open();
                        lane.bury_on().await;
                    }
                    self.scan.begin(&self.context, LEDGER_POLL_MS);
                }
                // Last, so that a flood of work starves nothing above.
                delivery = self.work.next() => self.deliver(Lane::Work, delivery).await,
            }
        }
    }

    fn lane(&mut self, lane: Lane) -> &mut Lanes {
        match lane {
            Lane::Control => &mut self.control,
            Lane::Work => &mut self.work,
        }
    }

    async fn deliver(&mut self, lane: Lane, delivery: Delivery) {
        let place = self.lane(lane).place(delivery.tag);
        match delivery.content {
            Content::Action(action) => {
                let worker = || [("stepfleet.worker_id", self.context.shared.config.worker.to_string())];
                trace::end(trace::begin(), Stage::Deliver, &action.namespace, &action.action_id, worker);
                self.route(action);
                // The ledger has the action: it needs no custody beyond this point.
                self.lane(lane).ack(place).await;
            }
            Content::Foreign(message) => {
                if let Err(reason) = self.foreigners.take(place, &message) {
                    foreign::tell_buried(&self.context, &reason);
                    self.lane(lane).bury(place, reason).await;
                }
            }
        }
    }

    /// Messages of others have gone through the ledger.
    async fn settle(&mut self, done: Done) {
        for (place, reason) in foreign::reasons(done) {
            match reason {
                None => self.lane(place.lane).ack(place).await,
                Some(reason) => {
                    foreign::tell_buried(&self.context, &reason);
                    self.lane(place.lane).bury(place, reason).await;
                }
            }
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
            Exit::Reload | Exit::Refused(_) => self.send(key, Mail::Nudge),
            Exit::Idle { wake_at_ms: Some(at) } => self.schedule.add(at, key),
            Exit::Fenced => self.lost = true,
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
}

/// Returns when no session runs any more. Those with a call under way take their grace, unless the
/// shard is lost: what still runs cannot commit then, so it must not go on acting either.
async fn wind_up(mut running: JoinSet<(SessionKey, Exit)>, mut lost: bool) -> End {
    while !lost {
        match running.join_next().await {
            Some(ended) => lost = matches!(ended, Ok((_, Exit::Fenced))),
            None => return End::HandedOver,
        }
    }
    running.shutdown().await;
    End::Lost
}
