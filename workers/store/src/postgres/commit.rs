//! The single commit point: fence, guard, journal, settlement and outbox in one transaction over
//! many sessions.

mod columns;
mod speak;
mod sql;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use domain::commit::{Commit, CommitResult};
use domain::failure::{Certainty, Failure};
use domain::ports::Commits;
use domain::spending::Spent;
use futures::future::join_all;
use schemas::action::NewAction;
use schemas::id::{Epoch, Shard, WorkerId};
use sqlx::PgConnection;
use sqlx::postgres::PgRow;

use super::accept::{accept, lock_sessions};
use super::rows::{count, get, id, shard};
use super::talk;
use super::time::Time;
use super::writer::{Trouble, Unit, Writer, begin, commit};
use super::{COMMIT_WRITERS, PostgresStore};
use crate::accepting::{Wanted, refused_calls, under_way};
use crate::batch::Running;
pub(super) use crate::committing::Call;
use crate::committing::{Prepared, prepare};
use crate::judge::{Aside, Seat};
use crate::talking::{Forum, Place, Words};
use speak::Speech;
#[cfg(test)]
pub(super) use sql::SQL;

#[async_trait]
impl Commits for PostgresStore {
    async fn commit(&self, owner: &WorkerId, commits: Vec<Commit>) -> Result<Vec<CommitResult>, Failure> {
        let mut parts: [(Vec<usize>, Vec<Prepared>); COMMIT_WRITERS] = Default::default();
        let total = commits.len();
        for (index, one) in prepare(owner, commits)?.into_iter().enumerate() {
            let part = &mut parts[usize::from(one.commit.shard.0) % COMMIT_WRITERS];
            part.0.push(index);
            part.1.push(one);
        }
        let calls = parts.into_iter().zip(&self.0.commits).filter(|((indexes, _), _)| !indexes.is_empty());
        let done = join_all(
            calls.map(|((indexes, part), writer)| async move { (indexes, writer.call(Call::new(part)).await) }),
        );
        merge(total, done.await)
    }
}

type Part = (Vec<usize>, Result<Vec<CommitResult>, Failure>);

/// The results in the order of the commits.
fn merge(total: usize, parts: Vec<Part>) -> Result<Vec<CommitResult>, Failure> {
    let has_happened = parts.iter().any(|(_, result)| result.is_ok());
    let mut results = vec![CommitResult::Fenced; total];
    for (indexes, part) in parts {
        let part = part.map_err(|failure| match has_happened {
            true => Failure { certainty: Certainty::MayHaveHappened, ..failure },
            false => failure,
        })?;
        for (index, result) in indexes.into_iter().zip(part) {
            results[index] = result;
        }
    }
    Ok(results)
}

/// Runs a batch of calls as one transaction.
pub(super) fn runner(
    writer: Arc<Writer>,
    shards: u16,
    time: Arc<Time>,
) -> impl Fn(Arc<[Call]>, Range<usize>) -> Running<Vec<CommitResult>> + Send + Sync + 'static {
    move |calls, range| {
        let (writer, time) = (writer.clone(), time.clone());
        Box::pin(async move {
            let calls = &calls[range];
            let commits = calls.iter().flat_map(|call| &call.commits).collect();
            let batch = Batch { shards, commits, time: &time };
            let mut results = writer.run(&batch).await?.into_iter();
            Ok(calls.iter().map(|call| results.by_ref().take(call.commits.len()).collect()).collect())
        })
    }
}

struct Batch<'b> {
    shards: u16,
    commits: Vec<&'b Prepared>,
    time: &'b Time,
}

#[async_trait]
impl Unit<Vec<CommitResult>> for Batch<'_> {
    async fn run(&self, connection: &mut PgConnection) -> Result<Vec<CommitResult>, Trouble> {
        if let Some(results) = self.at_once(connection).await? {
            return Ok(results);
        }
        begin(connection).await?;
        let forums = self.lock(connection).await?;
        let query = columns::bind(sqlx::query(sql::COMMIT), &self.commits);
        let mut results = self.results(&query.fetch_all(&mut *connection).await?)?;
        // Before the outbox: what it sends may be about what was just said.
        let done = results.iter().zip(&self.commits).filter(|(result, _)| matches!(result, CommitResult::Done { .. }));
        let done: Vec<&Commit> = done.map(|(_, one)| &one.commit).collect();
        if let Some(now_ms) = talk::write_words(connection, &done, forums).await? {
            self.time.told(now_ms);
        }
        self.follow_up(connection, &mut results).await?;
        commit(connection).await?;
        Ok(results)
    }
}

impl Batch<'_> {
    /// In one statement, which is a transaction by itself. `None`: it takes several, and nothing has happened.
    async fn at_once(&self, connection: &mut PgConnection) -> Result<Option<Vec<CommitResult>>, Trouble> {
        let is_plain = |commit: &Commit| {
            commit.follow_ups.is_empty() && commit.talk.is_empty() && Spent::of_steps(&commit.entry).next().is_none()
        };
        let query = if self.commits.iter().all(|one| is_plain(&one.commit)) {
            columns::bind(sqlx::query(sql::COMMIT), &self.commits)
        } else {
            let Some(speech) = Speech::of(&self.commits, self.time.now_ms()) else { return Ok(None) };
            speech.bind(columns::bind(sqlx::query(sql::SPEAK), &self.commits))
        };
        let rows = query.fetch_all(connection).await.map_err(Trouble::Committing)?;
        for row in &rows {
            if get::<Option<i64>>(row, "place")? == Some(sql::HOMELESS) {
                return Ok(None);
            }
        }
        Ok(Some(self.results(&rows)?))
    }

    /// What became of each commit, with its place in the journal.
    fn results(&self, rows: &[PgRow]) -> Result<Vec<CommitResult>, Failure> {
        let mut results = vec![CommitResult::Fenced; self.commits.len()];
        let mut held: HashMap<Shard, (WorkerId, Epoch)> = HashMap::new();
        for row in rows {
            let Some(place) = get::<Option<i64>>(row, "place")? else {
                held.insert(shard(row)?, (id(row, "owner")?, Epoch(get(row, "epoch")?)));
                continue;
            };
            let result = usize::try_from(place).ok().and_then(|place| results.get_mut(place));
            let result = result.ok_or_else(|| Failure::internal("the database answered for an unknown commit"))?;
            *result = CommitResult::Done { seq: count(row, "seq")?, follow_ups: Vec::new() };
        }
        for (result, one) in results.iter_mut().zip(&self.commits) {
            let is_held = held
                .get(&one.commit.shard)
                .is_some_and(|(owner, epoch)| *owner == one.owner && *epoch == one.commit.epoch);
            if is_held && matches!(result, CommitResult::Fenced) {
                *result = CommitResult::Conflict;
            }
        }
        Ok(results)
    }

    fn follow_ups(&self) -> impl Iterator<Item = (usize, &NewAction)> {
        let all = self.commits.iter().enumerate();
        all.flat_map(|(index, one)| one.commit.follow_ups.iter().map(move |new| (index, new)))
    }

    /// First the shards, then all sessions, conversations and operations, each in order: those of the
    /// outbox are among those of the commits, as far as they are named. Gives the conversations.
    async fn lock(&self, connection: &mut PgConnection) -> Result<HashMap<Place, Forum>, Trouble> {
        let shards: Vec<i32> = self.commits.iter().map(|one| i32::from(one.commit.shard.0)).collect();
        let sent: Vec<&NewAction> = self.follow_ups().map(|(_, new)| new).collect();
        let aside = Aside::of(&sent);
        let mut operations = aside.operations(&sent);
        let waiting = talk::works(connection, &operations).await?;
        let guests = Aside::guests(&sent);
        let seats = talk::seats(connection, &guests).await?;
        let named = Wanted::of(&sent).sessions;
        let own =
            self.commits.iter().map(|one| (one.commit.key.namespace.as_str(), one.commit.key.session_id.as_str()));
        let theirs = waiting.iter().map(|((namespace, _), work)| (namespace.as_str(), work.session_id.as_str()));
        let seated = seats.iter().map(Seat::session);
        let sessions: Vec<(&str, &str)> = own.chain(named).chain(theirs).chain(seated).collect();
        sqlx::query(sql::LOCK_SHARDS).bind(shards).execute(&mut *connection).await?;
        lock_sessions(connection, &sessions).await?;
        let words = Words::of(&self.commits.iter().map(|one| &one.commit).collect::<Vec<_>>());
        let places = Aside::places(&sent);
        let places: Vec<&Place> = places.iter().chain(words.speakers.keys()).collect();
        let forums = talk::lock_forums(connection, &places).await?;
        talk::seats_still(connection, &guests, &seats).await?;
        operations.extend(words.operation_ids().map(|(namespace, id)| (namespace.as_str(), id.as_str())));
        talk::lock_works(connection, &operations).await?;
        Ok(forums)
    }

    /// Accepts the outbox, after the heads are replaced: a session that ended in this very
    /// transaction refuses what is sent to it, and callers are told.
    async fn follow_up(&self, connection: &mut PgConnection, results: &mut [CommitResult]) -> Result<(), Trouble> {
        let is_done = |index: usize| matches!(results[index], CommitResult::Done { .. });
        let (senders, actions): (Vec<usize>, Vec<&NewAction>) =
            self.follow_ups().filter(|(index, _)| is_done(*index)).unzip();
        let (verdicts, _) = accept(connection, self.shards, &actions).await?;
        // Of sessions and operations of the senders, which are locked.
        let (told, answers): (Vec<usize>, Vec<NewAction>) =
            refused_calls(&senders, &actions, &verdicts).into_iter().unzip();
        let (more, _) = accept(connection, self.shards, &answers.iter().collect::<Vec<_>>()).await?;
        for (index, verdict) in senders.into_iter().zip(verdicts).chain(told.into_iter().zip(more)) {
            if let (CommitResult::Done { follow_ups, .. }, Some(action)) = (&mut results[index], under_way(verdict)) {
                follow_ups.push(action);
            }
        }
        Ok(())
    }
}
