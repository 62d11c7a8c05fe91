//! The loop behind a stream: read what follows the cursor, then follow the live notices, and read
//! again whenever one may have been missed.

use std::sync::Arc;
use std::time::Duration;

use domain::failure::Failure;
use domain::ports::Notice;
use domain::read::{self, StreamItem, merge, view};
use domain::retry;
use domain::time::rfc3339;
use schemas::api::{StreamEvent, StreamEventType};
use schemas::id::{SessionKey, Shard};
use schemas::limits::{PAGE_MAX, STREAM_POLL_MS, STREAM_STALL_MS};
use schemas::record::{Entry, JournalRow};
use schemas::session::Head;
use tokio::sync::mpsc::Sender;

use super::Frame;
use crate::gateway::Gateway;

/// Events read at a time. Journal rows are read whole, each with many steps, so small pages would
/// read the same rows again and again.
const PAGE: usize = PAGE_MAX;

/// Why a pump stops before the end of its session.
enum Stop {
    /// The client left, or took nothing for too long. It comes back with its cursor.
    Client,
    Failed(Failure),
}

struct Pump {
    gateway: Gateway,
    key: SessionKey,
    /// Offset of the last event that was sent; below `u64::MAX`, so that one more is a number too.
    cursor: u64,
    out: Sender<Frame>,
}

/// Sends what follows `cursor` until the session has ended, the client has left, or the process stops.
pub async fn run(gateway: Gateway, key: SessionKey, cursor: u64, out: Sender<Frame>) {
    let stop = gateway.stop.clone();
    let closed = out.clone();
    let mut pump = Pump { gateway, key, cursor, out };
    tokio::select! {
        () = stop.cancelled() => {}
        () = closed.closed() => {}
        end = pump.follow() => if let Err(Stop::Failed(failure)) = end {
            tracing::error!(session.id = %pump.key.session_id, error = %failure.message, "stream broken off");
        }
    }
}

impl Pump {
    async fn follow(&mut self) -> Result<(), Stop> {
        let mut failures = 0;
        loop {
            // Subscribed before reading: what is committed in between is seen by one of the two.
            let mut live = self.gateway.live.subscribe(&self.key);
            match self.catch_up().await {
                Ok(true) => return Ok(()),
                Ok(false) => failures = 0,
                Err(Stop::Failed(failure)) if failure.retriable => {
                    failures += 1;
                    let wait = retry::STORE.delay_ms(failures).unwrap_or(STREAM_POLL_MS);
                    tokio::time::sleep(Duration::from_millis(wait)).await;
                    continue;
                }
                Err(stop) => return Err(stop),
            }
            loop {
                let poll = Duration::from_millis(STREAM_POLL_MS);
                match tokio::time::timeout(poll, live.next()).await {
                    Ok(Some(notice)) => match self.relay(notice).await? {
                        Relayed::Ended => return Ok(()),
                        Relayed::All => {}
                        Relayed::Missed => break,
                    },
                    // Lost notices, or none for a while: a notice is only a hint.
                    Ok(None) | Err(_) => break,
                }
            }
        }
    }

    /// Sends all that is committed. Returns whether the session has ended and everything was sent.
    async fn catch_up(&mut self) -> Result<bool, Stop> {
        loop {
            // The head first: if it is final, all that the stream will ever have is readable.
            let row = self.gateway.sessions.session(&self.key).await.map_err(Stop::Failed)?;
            let Some(row) = row else { return Ok(true) };
            if self.cursor + 1 >= row.head.next_offset {
                return self.end_if_final(&row.head).await;
            }
            self.read_pages(row.head.next_offset).await?;
        }
    }

    async fn read_pages(&mut self, next_offset: u64) -> Result<(), Stop> {
        while self.cursor + 1 < next_offset {
            let (journal, archive) = (&*self.gateway.journal, &*self.gateway.archive);
            let page = read::events(journal, archive, &self.key, self.cursor, PAGE).await.map_err(Stop::Failed)?;
            if page.items.is_empty() {
                let what = format!("offset {} of {} is committed and not readable yet", self.cursor + 1, self.key);
                return Err(Stop::Failed(Failure::unavailable(what)));
            }
            self.send_items(page.items).await?;
        }
        Ok(())
    }

    /// Sends what a notice carries, if it follows what was sent.
    async fn relay(&mut self, notice: Notice) -> Result<Relayed, Stop> {
        let Some(entry) = notice.entry else {
            // A hint from another process: what it tells of is read, unless it is sent already.
            return Ok(if notice.last_offset > self.cursor { Relayed::Missed } else { Relayed::All });
        };
        let head = entry.head.clone();
        if head.next_offset <= self.cursor + 1 {
            return Ok(if self.end_if_final(&head).await? { Relayed::Ended } else { Relayed::All });
        }
        let row = JournalRow {
            shard: Shard(0),
            seq: 0,
            key: notice.key,
            committed_at_ms: head.updated_at_ms,
            entry: Arc::<Entry>::unwrap_or_clone(entry),
        };
        let (items, _) = merge::union_items(self.cursor, usize::MAX, merge::items_of(row));
        self.send_items(items).await?;
        if self.cursor + 1 < head.next_offset {
            return Ok(Relayed::Missed);
        }
        Ok(if self.end_if_final(&head).await? { Relayed::Ended } else { Relayed::All })
    }

    async fn send_items(&mut self, items: Vec<StreamItem>) -> Result<(), Stop> {
        for item in items {
            let event = view::stream_event(&item);
            self.send(Frame::of(&event)).await?;
            self.cursor = event.offset;
        }
        Ok(())
    }

    async fn end_if_final(&mut self, head: &Head) -> Result<bool, Stop> {
        if !head.status.is_final() {
            return Ok(false);
        }
        let end = StreamEvent {
            // The same cursor: a client that asks again is told again.
            offset: self.cursor,
            kind: StreamEventType::End,
            session_id: self.key.session_id.clone(),
            at: rfc3339(head.updated_at_ms),
            step: None,
            data: None,
        };
        self.send(Frame::of(&end)).await?;
        Ok(true)
    }

    async fn send(&self, frame: Frame) -> Result<(), Stop> {
        let patience = Duration::from_millis(STREAM_STALL_MS);
        match tokio::time::timeout(patience, self.out.send(frame)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Stop::Client),
        }
    }
}

enum Relayed {
    /// Everything up to the notice's head is sent.
    All,
    /// Something before it was missed: read.
    Missed,
    Ended,
}
