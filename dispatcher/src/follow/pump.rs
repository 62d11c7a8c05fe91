//! The loop behind a stream of a conversation: read the log behind the cursor, then follow the news,
//! and read again whenever there is more, or something may have been missed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use domain::chat::ChatDelta;
use domain::conversation::{stream, transcript, view};
use domain::failure::Failure;
use domain::ports::{ConversationKey, Listening, LogQuery, Look, LookQuery, News};
use domain::retry;
use futures::FutureExt;
use schemas::conversation::{
    Conversation, ConversationFrame, ConversationStatus, EndFrame, FrameBody, LagFrame, LogRow, StatusFrame, Turn,
    TurnFrame, TurnStatus,
};
use schemas::id::{MessageId, TurnId};
use schemas::limits::{PAGE_BYTES_MAX, PAGE_MAX, STREAM_POLL_MS, STREAM_STALL_MS, TURNS_FOLLOWED_MAX};
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::SendTimeoutError;

use super::Line;
use super::pieces::{Piece, Pieces};
use crate::gateway::Gateway;

/// Bytes of one page: it is in memory, once per client.
const PAGE_BYTES: usize = PAGE_BYTES_MAX / 8;
/// Ended turns that one look at the log tells of: the newest. Of older ones the log itself tells.
const ENDED_TOLD_MAX: usize = 32;
/// How long a piece of a reply waits for a client that is slow, before pieces are left out.
const PIECE_PATIENCE: Duration = Duration::from_millis(100);

/// Why a pump stops before the end of its conversation.
enum Stop {
    /// The client left, or took nothing for too long. It comes back with its cursor.
    Client,
    Failed(Failure),
}

struct Pump {
    gateway: Gateway,
    key: ConversationKey,
    /// Offset of the last record that was sent, or that is not shown.
    cursor: u64,
    out: Sender<Line>,
    status: Option<ConversationStatus>,
    /// Active turns as they were told.
    turns: BTreeMap<TurnId, Turn>,
    pieces: Pieces,
    /// Pieces were left out, and the client does not know yet.
    lags: bool,
}

/// Sends what follows `cursor` until the conversation has ended, the client has left, or the process
/// stops.
pub async fn run(gateway: Gateway, key: ConversationKey, cursor: u64, out: Sender<Line>) {
    let stop = gateway.stop.clone();
    let closed = out.clone();
    let mut pump = Pump {
        gateway,
        key,
        cursor,
        out,
        status: None,
        turns: BTreeMap::new(),
        pieces: Pieces::default(),
        lags: false,
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = closed.closed() => {}
        end = pump.follow() => if let Err(Stop::Failed(failure)) = end {
            tracing::error!(
                conversation = %pump.key.conversation_id,
                error = %failure.message,
                "stream of a conversation broken off"
            );
        }
    }
}

impl Pump {
    async fn follow(&mut self) -> Result<(), Stop> {
        let mut failures = 0;
        loop {
            // Listened before reading: what is said in between is seen by one of the two.
            let mut live = self.gateway.live.listen(&self.key);
            match self.round(&mut live, &mut failures).await {
                Ok(true) => return Ok(()),
                // News were lost: pieces of replies may be among them.
                Ok(false) => self.missed(),
                Err(Stop::Failed(failure)) if failure.retriable => {
                    self.missed();
                    failures += 1;
                    let wait = retry::STORE.delay_ms(failures).unwrap_or(STREAM_POLL_MS);
                    tokio::time::sleep(Duration::from_millis(wait)).await;
                }
                Err(stop) => return Err(stop),
            }
        }
    }

    /// Reads and follows until the conversation has ended (`true`) or news were lost.
    async fn round(&mut self, live: &mut Box<dyn Listening>, failures: &mut u32) -> Result<bool, Stop> {
        let mut look = true;
        let mut next = None;
        loop {
            if look {
                if self.catch_up().await? {
                    return Ok(true);
                }
                (look, *failures) = (false, 0);
            }
            let poll = Duration::from_millis(STREAM_POLL_MS);
            let news = match next.take() {
                Some(news) => news,
                None => match tokio::time::timeout(poll, live.next()).await {
                    Ok(Some(news)) => news,
                    Ok(None) => return Ok(false),
                    // None for a while: they are only hints.
                    Err(_) => News::Logged,
                },
            };
            match news {
                News::Logged => {
                    look = true;
                    // Many commits at once are one look.
                    while next.is_none() {
                        match live.next().now_or_never() {
                            Some(Some(News::Logged)) => {}
                            Some(Some(other)) => next = Some(other),
                            Some(None) => return Ok(false),
                            None => break,
                        }
                    }
                }
                News::Delta { turn_id, message_id, attempt, index, delta } => {
                    self.piece(&turn_id, &message_id, (attempt, index), delta).await?;
                }
                News::Retract { turn_id, message_id, attempt } => {
                    if self.pieces.retract(&message_id, attempt) {
                        self.send_piece(stream::retract(&turn_id, &message_id, attempt)).await?;
                    }
                }
            }
        }
    }

    /// Sends all that is committed. Returns whether the conversation has ended and everything was sent.
    async fn catch_up(&mut self) -> Result<bool, Stop> {
        let mut touched = Vec::new();
        loop {
            let Some(Look { active, conversation, page, ended }) = self.look(&touched).await? else { return Ok(true) };
            if self.status.is_none() {
                self.tell_status(&conversation, &active).await?;
            }
            self.send_page(&page, &mut touched).await?;
            if page.is_empty() {
                // What is left is not for streams.
                self.cursor = self.cursor.max(conversation.last_offset);
            }
            if self.cursor < conversation.last_offset {
                continue;
            }
            self.tell_turns(active.as_slice(), ended).await?;
            self.tell_status(&conversation, &active).await?;
            let closed = matches!(conversation.status, ConversationStatus::Completed | ConversationStatus::Failed);
            if !(closed && active.is_empty()) {
                return Ok(false);
            }
            self.send(FrameBody::End(EndFrame { cursor: self.cursor })).await?;
            return Ok(true);
        }
    }

    /// Reads how the conversation stands, with the next page of its log. `touched`: turns of the pages before.
    async fn look(&self, touched: &[TurnId]) -> Result<Option<Look>, Stop> {
        let log = LogQuery {
            namespace: self.key.namespace.clone(),
            conversation_id: self.key.conversation_id.clone(),
            kinds: transcript::EVERYTHING.to_vec(),
            turn_id: None,
            after: self.cursor,
            before: None,
            since_ms: None,
            descending: false,
            limit: PAGE_MAX,
            bytes: PAGE_BYTES,
        };
        let followed: BTreeSet<TurnId> = self.turns.keys().chain(touched).cloned().collect();
        let query = LookQuery {
            log,
            active_max: TURNS_FOLLOWED_MAX,
            ended_max: ENDED_TOLD_MAX.max(self.turns.len()),
            followed: followed.into_iter().collect(),
        };
        self.gateway.conversations.look(&query).await.map_err(Stop::Failed)
    }

    /// Sends a page of the log, and notes which turns it tells of.
    async fn send_page(&mut self, page: &[LogRow], touched: &mut Vec<TurnId>) -> Result<(), Stop> {
        for row in page {
            if let Some(frame) = stream::committed(&self.key.conversation_id, row) {
                if let FrameBody::Message(said) = &frame.body {
                    self.pieces.committed(&said.message.message_id);
                }
                self.send_frame(&frame).await?;
            }
            self.cursor = row.offset;
            if let Some(turn_id) = &row.record.turn_id {
                touch(touched, turn_id);
            }
        }
        Ok(())
    }

    /// Tells how turns stand: those that have ended since the last look, and those that have changed.
    async fn tell_turns(&mut self, active: &[Turn], ended: Vec<Turn>) -> Result<(), Stop> {
        // A look tells of the newest. Whoever was told that a turn began is told of its end, however old it is.
        let left_out = self.turns.keys().filter(|id| !is_among(active, id) && !is_among(&ended, id));
        let left_out: Vec<TurnId> = left_out.cloned().collect();
        let mut older = Vec::new();
        for id in left_out {
            let turn = self.gateway.conversations.turn(&self.key.namespace, &id).await.map_err(Stop::Failed)?;
            older.extend(turn.filter(|turn| turn.status != TurnStatus::Active));
        }
        self.turns.retain(|id, _| is_among(active, id));
        for turn in older.into_iter().chain(ended) {
            self.tell_turn(turn).await?;
        }
        for turn in active {
            if self.turns.get(&turn.turn_id) != Some(turn) {
                self.tell_turn(turn.clone()).await?;
            }
        }
        Ok(())
    }

    async fn tell_turn(&mut self, turn: Turn) -> Result<(), Stop> {
        self.send(FrameBody::Turn(TurnFrame { turn: view::turn(&turn) })).await?;
        if turn.status == TurnStatus::Active {
            self.turns.insert(turn.turn_id.clone(), turn);
        }
        Ok(())
    }

    async fn tell_status(&mut self, row: &Conversation, active: &[Turn]) -> Result<(), Stop> {
        let status = view::status(row.status, active);
        if self.status == Some(status) {
            return Ok(());
        }
        self.send(FrameBody::Status(StatusFrame { status, last_offset: row.last_offset })).await?;
        self.status = Some(status);
        Ok(())
    }

    async fn piece(
        &mut self,
        turn: &TurnId,
        message: &MessageId,
        (attempt, index): (u32, u64),
        delta: ChatDelta,
    ) -> Result<(), Stop> {
        match self.pieces.place(message, attempt, index) {
            Piece::Stale => return Ok(()),
            Piece::AfterGap => self.lags = true,
            Piece::Anew { dead } => self.send_piece(stream::retract(turn, message, dead)).await?,
            Piece::Next => {}
        }
        match stream::token(turn, message, (attempt, index), delta) {
            Some(body) => self.send_piece(body).await,
            None => Ok(()),
        }
    }

    /// News were lost. Who has seen pieces of replies is to forget them.
    fn missed(&mut self) {
        if self.pieces.forget() {
            self.lags = true;
        }
    }

    /// Sends what may be left out: a slow client gets what is committed, and is told of the gap.
    async fn send_piece(&mut self, body: FrameBody) -> Result<(), Stop> {
        if self.lags {
            match self.out.try_send(self.lag()) {
                Ok(()) => self.lags = false,
                Err(_) => return Ok(()),
            }
        }
        let line = Line::of(&stream::ephemeral(&self.key.conversation_id, body));
        match self.out.send_timeout(line, PIECE_PATIENCE).await {
            Ok(()) => Ok(()),
            Err(SendTimeoutError::Timeout(_)) => {
                self.lags = true;
                Ok(())
            }
            Err(SendTimeoutError::Closed(_)) => Err(Stop::Client),
        }
    }

    fn lag(&self) -> Line {
        let body = FrameBody::Lag(LagFrame { cursor: self.cursor });
        Line::of(&stream::ephemeral(&self.key.conversation_id, body))
    }

    async fn send(&mut self, body: FrameBody) -> Result<(), Stop> {
        self.send_frame(&stream::ephemeral(&self.key.conversation_id, body)).await
    }

    /// Sends what must not be left out.
    async fn send_frame(&mut self, frame: &ConversationFrame) -> Result<(), Stop> {
        if std::mem::take(&mut self.lags) {
            let lag = self.lag();
            self.send_line(lag).await?;
        }
        self.send_line(Line::of(frame)).await
    }

    async fn send_line(&mut self, line: Line) -> Result<(), Stop> {
        let patience = Duration::from_millis(STREAM_STALL_MS);
        self.out.send_timeout(line, patience).await.map_err(|_| Stop::Client)
    }
}

fn is_among(turns: &[Turn], id: &TurnId) -> bool {
    turns.iter().any(|turn| turn.turn_id == *id)
}

/// Notes the turn that was told of last; older ones than a look may tell of are left out.
fn touch(touched: &mut Vec<TurnId>, turn: &TurnId) {
    if touched.last() == Some(turn) {
        return;
    }
    touched.retain(|id| id != turn);
    touched.push(turn.clone());
    if touched.len() > ENDED_TOLD_MAX {
        touched.remove(0);
    }
}
