//! The single commit point: fence, guard, journal, settlement and outbox in one transaction over
//! many sessions, in a constant number of statements.

mod sql;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use domain::commit::{Commit, CommitResult};
use domain::effect::EffectState;
use domain::failure::Failure;
use domain::ports::{Clock, Commits};
use schemas::action::NewAction;
use schemas::id::{Epoch, SessionKey, Shard, WorkerId};
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use super::SqliteStore;
use super::accept;
use super::failure::failure;
use super::pack::Pack;
use super::rows::{count, get, id, key, shard};
use super::talk;
use super::writer::{Statement, Tx, Writer};
use crate::accepting::{refused_calls, under_way};
use crate::batch::Running;
pub(super) use crate::committing::Call;
use crate::committing::{Prepared, prepare};
use crate::talking::{Additions, Words};

#[cfg(test)]
pub(super) use sql::SQL;

#[async_trait]
impl Commits for SqliteStore {
    async fn commit(&self, owner: &WorkerId, commits: Vec<Commit>) -> Result<Vec<CommitResult>, Failure> {
        if commits.is_empty() {
            return Ok(Vec::new());
        }
        self.0.commits.call(Call::new(prepare(owner, commits)?)).await
    }
}

/// Runs a batch of calls as one transaction.
pub(super) fn runner(
    writer: Arc<Writer>,
    clock: Arc<dyn Clock>,
    shards: u16,
) -> impl Fn(Arc<[Call]>, Range<usize>) -> Running<Vec<CommitResult>> + Send + Sync + 'static {
    move |calls, range| {
        let (writer, clock) = (writer.clone(), clock.clone());
        Box::pin(async move {
            let calls = &calls[range];
            let batch: Vec<&Prepared> = calls.iter().flat_map(|call| &call.commits).collect();
            let mut results = write(&writer, clock.now_ms(), shards, &batch).await?.into_iter();
            Ok(calls.iter().map(|call| results.by_ref().take(call.commits.len()).collect()).collect())
        })
    }
}

async fn write(writer: &Writer, now_ms: i64, shards: u16, batch: &[&Prepared]) -> Result<Vec<CommitResult>, Failure> {
    let all: Vec<&Commit> = batch.iter().map(|one| &one.commit).collect();
    let words = Words::of(&all);
    let begin = if words.is_empty() {
        replace(sql::BEGIN_AND_REPLACE, batch)
    } else {
        talk::wanted(replace(sql::BEGIN_REPLACE_AND_LOOK, batch), &words)
    };
    let (mut tx, rows) = writer.begin_with(begin).await?;
    let mut placed = match place(tx.connection(), &rows, batch).await {
        Ok(placed) => placed,
        Err(failure) => return tx.finish(Err(failure)).await,
    };
    let sends = placed.done().any(|index| !batch[index].commit.follow_ups.is_empty());
    if words.is_empty() && !sends {
        tx.commit_with(record(sql::WRITE_AND_COMMIT, now_ms, batch, &placed)).await?;
        return Ok(placed.results);
    }
    let additions = match additions(tx.connection(), now_ms, &rows, (batch, &placed), words).await {
        Ok(additions) => additions,
        Err(failure) => return tx.finish(Err(failure)).await,
    };
    if additions.only_says() && !sends {
        let script = record(sql::WRITE_SAY_AND_COMMIT, now_ms, batch, &placed);
        tx.commit_with(talk::say(script, now_ms, &additions)).await?;
        return Ok(placed.results);
    }
    let written = record_and_tell(&mut tx, now_ms, shards, batch, &mut placed, &additions).await;
    tx.finish(written).await?;
    Ok(placed.results)
}

/// What the commits that are done add to conversations. As a rule these are all of them, and what was
/// found at the start is all there is to know.
async fn additions<'b>(
    connection: &mut SqliteConnection,
    now_ms: i64,
    rows: &[SqliteRow],
    (batch, placed): (&[&'b Prepared], &Placed),
    words: Words<'b>,
) -> Result<Additions<'b>, Failure> {
    if placed.done().count() == batch.len() {
        return talk::additions(connection, now_ms, words, talk::known(rows)?).await;
    }
    let committed: Vec<&Commit> = placed.done().map(|index| &batch[index].commit).collect();
    let words = Words::of(&committed);
    let known = talk::look(connection, &words).await?;
    talk::additions(connection, now_ms, words, known).await
}

async fn record_and_tell(
    tx: &mut Tx<'_>,
    now_ms: i64,
    shards: u16,
    batch: &[&Prepared],
    placed: &mut Placed,
    additions: &Additions<'_>,
) -> Result<(), Failure> {
    talk::write_openings(tx.connection(), additions).await?;
    // Before the outbox: what it sends may be about what was just said.
    let script = talk::say(record(sql::WRITE_AND_SAY, now_ms, batch, placed), now_ms, additions);
    script.execute(tx.connection()).await.map_err(failure)?;
    talk::write_operations(tx.connection(), additions).await?;
    follow_up(tx.connection(), now_ms, shards, batch, placed).await
}

/// Fences, makes room in the journal of each shard for all commits of the batch, and replaces the
/// heads that are as expected.
fn replace(script: &'static str, batch: &[&Prepared]) -> Statement {
    let mut shards = Pack::default();
    for ((shard, epoch, owner), count) in wanted(batch) {
        shards.row(|row| {
            row.int(i64::from(shard.0)).id(owner.as_str()).int(epoch.0).int(count as i64);
        });
    }
    let (mut heads, mut kept) = (Pack::default(), Pack::default());
    for Prepared { commit, owner, head, .. } in batch {
        let new = &commit.entry.head;
        if new.next_offset == commit.expect_offset {
            kept.row(|row| {
                row.id(commit.key.namespace.as_str()).id(commit.key.session_id.as_str());
                row.int(commit.expect_steps as i64).int(commit.expect_offset as i64).text(head.as_str());
            });
        }
        heads.row(|row| {
            row.id(commit.key.namespace.as_str()).id(commit.key.session_id.as_str());
            row.int(i64::from(commit.shard.0)).int(commit.expect_steps as i64).int(commit.expect_offset as i64);
            row.id(new.status.as_str()).int(new.steps as i64).int(new.next_offset as i64);
            row.opt_int(new.wake_at_ms).id(owner.as_str()).int(commit.epoch.0).text(head.as_str());
        });
    }
    let ((heads, texts), (kept, kept_texts)) = (heads.into_parts(), kept.into_parts());
    sqlx::query(script).bind(shards.into_json()).bind(heads).bind(texts).bind(kept).bind(kept_texts)
}

type Room<'b> = HashMap<(Shard, Epoch, &'b WorkerId), u64>;

/// How many commits each shard, as held by who says so, is to take.
fn wanted<'b>(batch: &[&'b Prepared]) -> Room<'b> {
    let mut wanted = Room::new();
    for one in batch {
        *wanted.entry((one.commit.shard, one.commit.epoch, &one.owner)).or_default() += 1;
    }
    wanted
}

/// What became of each commit of a batch.
struct Placed {
    results: Vec<CommitResult>,
    /// Done, and leave the head as it was: such a commit adds nothing to the journal.
    kept: HashSet<usize>,
}

impl Placed {
    fn done(&self) -> impl Iterator<Item = usize> {
        let results = self.results.iter().enumerate();
        results.filter(|(_, result)| matches!(result, CommitResult::Done { .. })).map(|(index, _)| index)
    }
}

/// What became of each commit, with its place in the journal.
async fn place(connection: &mut SqliteConnection, rows: &[SqliteRow], batch: &[&Prepared]) -> Result<Placed, Failure> {
    let wanted = wanted(batch);
    let mut reserved: HashMap<Shard, Held> = HashMap::new();
    let mut replaced: HashSet<SessionKey> = HashSet::with_capacity(batch.len());
    let mut unchanged: HashSet<SessionKey> = HashSet::new();
    for row in rows {
        match get::<&str>(row, "done")? {
            "head" => {
                replaced.insert(key(row)?);
            }
            "kept" => {
                unchanged.insert(key(row)?);
            }
            "shard" => {
                let (shard, epoch, owner): (_, _, WorkerId) =
                    (shard(row)?, Epoch(get(row, "epoch")?), id(row, "owner")?);
                let room = wanted.get(&(shard, epoch, &owner)).copied().unwrap_or(0);
                let before = count(row, "seq")?.saturating_sub(room);
                reserved.insert(shard, Held { owner, epoch, before });
            }
            // Of conversations.
            _ => {}
        }
    }
    let mut results = vec![CommitResult::Fenced; batch.len()];
    let (mut kept, mut unused) = (HashSet::new(), Vec::new());
    for (index, one) in batch.iter().enumerate() {
        let held = reserved.get_mut(&one.commit.shard);
        let Some(held) = held.filter(|held| held.epoch == one.commit.epoch && held.owner == one.owner) else {
            continue;
        };
        if !replaced.contains(&one.commit.key) {
            results[index] = CommitResult::Conflict;
            unused.push(index);
            continue;
        }
        if unchanged.contains(&one.commit.key) {
            kept.insert(index);
            unused.push(index);
        } else {
            held.before += 1;
        }
        results[index] = CommitResult::Done { seq: held.before, follow_ups: Vec::new() };
    }
    give_back(connection, batch, &unused).await?;
    Ok(Placed { results, kept })
}

/// A shard that was found held by who says so.
struct Held {
    owner: WorkerId,
    epoch: Epoch,
    /// The last `seq` given out.
    before: u64,
}

/// Takes back the room that was not needed, so that the journal has no gap.
async fn give_back(connection: &mut SqliteConnection, batch: &[&Prepared], unused: &[usize]) -> Result<(), Failure> {
    if unused.is_empty() {
        return Ok(());
    }
    let mut counts: HashMap<Shard, i64> = HashMap::new();
    for &index in unused {
        *counts.entry(batch[index].commit.shard).or_default() += 1;
    }
    let mut pack = Pack::default();
    for (shard, count) in counts {
        pack.row(|row| {
            row.int(i64::from(shard.0)).int(count);
        });
    }
    sqlx::query(sql::GIVE_BACK).bind(pack.into_json()).execute(connection).await.map_err(failure)?;
    Ok(())
}

/// Journal rows, settled actions and effects. Parts without rows are there too: they cost nothing.
fn record(script: &'static str, now_ms: i64, batch: &[&Prepared], placed: &Placed) -> Statement {
    let (mut journal, mut actions, mut effects) = (Pack::default(), Pack::default(), Pack::default());
    for index in placed.done() {
        let (Prepared { commit, body, .. }, CommitResult::Done { seq, .. }) = (batch[index], &placed.results[index])
        else {
            continue;
        };
        let (namespace, session) = (commit.key.namespace.as_str(), commit.key.session_id.as_str());
        if !placed.kept.contains(&index) {
            journal.row(|row| {
                row.int(i64::from(commit.shard.0)).int(*seq as i64).id(namespace).id(session);
                row.int(commit.expect_offset as i64).int(commit.entry.head.next_offset as i64 - 1);
                row.int(now_ms).text(body.as_str());
            });
        }
        for settled in &commit.settled {
            actions.row(|row| {
                row.id(namespace).id(settled.action_id.as_str()).id(session).int(now_ms);
                row.id(settled.outcome.as_str()).opt_id(settled.code.map(|code| code.as_str()));
                row.opt_text(settled.error.as_deref());
            });
        }
        for effect in &commit.effects {
            let settled = (effect.state == EffectState::Settled).then_some(now_ms);
            effects.row(|row| {
                row.id(namespace).id(session).id(effect.class.as_str()).id(effect.state.as_str());
                row.opt_int(settled).text(&effect.key).text(&effect.what);
            });
        }
    }
    let ((journal, bodies), (actions, errors)) = (journal.into_parts(), actions.into_parts());
    let (effects, texts) = effects.into_parts();
    sqlx::query(script).bind(journal).bind(bodies).bind(actions).bind(errors).bind(effects).bind(texts)
}

/// Accepts the outbox, after the heads are replaced: a session that ended in this very
/// transaction refuses what is sent to it, and callers are told.
async fn follow_up(
    connection: &mut SqliteConnection,
    now_ms: i64,
    shards: u16,
    batch: &[&Prepared],
    placed: &mut Placed,
) -> Result<(), Failure> {
    let sent = placed.done().flat_map(|index| batch[index].commit.follow_ups.iter().map(move |new| (index, new)));
    let (senders, actions): (Vec<usize>, Vec<_>) = sent.unzip();
    let verdicts = accept::accept(connection, now_ms, shards, &actions).await?;
    let (told, answers): (Vec<usize>, Vec<NewAction>) =
        refused_calls(&senders, &actions, &verdicts).into_iter().unzip();
    let answers: Vec<&NewAction> = answers.iter().collect();
    let more = accept::accept(connection, now_ms, shards, &answers).await?;
    for (index, verdict) in senders.into_iter().zip(verdicts).chain(told.into_iter().zip(more)) {
        let result = &mut placed.results[index];
        if let (CommitResult::Done { follow_ups, .. }, Some(action)) = (result, under_way(verdict)) {
            follow_ups.push(action);
        }
    }
    Ok(())
}
