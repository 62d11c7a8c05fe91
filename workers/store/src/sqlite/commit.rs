//! The single commit point: fence, guard, journal, settlement and outbox in one transaction over
//! many sessions, in a constant number of statements.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use domain::commit::{Commit, CommitResult};
use domain::effect::EffectState;
use domain::failure::Failure;
use domain::ports::{Clock, Commits};
use schemas::id::{Epoch, SessionKey, Shard, WorkerId};
use schemas::json::Json;
use schemas::limits::{COMMIT_BATCH_BYTES_MAX, COMMIT_BATCH_MAX};
use sqlx::SqliteConnection;

use super::SqliteStore;
use super::accept::{self, Running, run, under_way};
use super::batch::Batched;
use super::failure::failure;
use super::pack::Pack;
use super::rows::{count, get, id, key, shard};
use super::writer::Writer;

/// Fences and reserves places at once: a shard that is not ours is not returned.
const RESERVE: &str = "
    UPDATE shards SET seq = shards.seq + (j.value->>3) FROM json_each(?1) AS j
    WHERE shards.shard = j.value->>0 AND shards.owner = j.value->>1 AND shards.epoch = j.value->>2
    RETURNING shard, owner, epoch, seq";
const GIVE_BACK: &str = "
    UPDATE shards SET seq = shards.seq - (j.value->>1) FROM json_each(?1) AS j WHERE shards.shard = j.value->>0";
/// Replaces the heads that are as expected; returns whose.
const REPLACE_HEADS: &str = "
    UPDATE sessions SET status = j.value->>5, steps = j.value->>6, next_offset = j.value->>7,
        wake_at_ms = j.value->>8, head = cast(substr(?2, j.value->>9, j.value->>10) AS TEXT)
    FROM json_each(?1) AS j
    WHERE sessions.namespace = j.value->>0 AND sessions.session_id = j.value->>1 AND sessions.shard = j.value->>2
        AND sessions.steps = j.value->>3 AND sessions.next_offset = j.value->>4
    RETURNING namespace, session_id";
const INSERT_JOURNAL: &str = "
    INSERT INTO journal (shard, seq, namespace, session_id, first_offset, last_offset, committed_at_ms, body)
    SELECT value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6,
        cast(substr(?2, value->>7, value->>8) AS TEXT)
    FROM json_each(?1)";
const SETTLE_ACTIONS: &str = "
    UPDATE actions SET processed_at_ms = j.value->>3, outcome = j.value->>4, code = j.value->>5,
        error = cast(substr(?2, j.value->>6, j.value->>7) AS TEXT)
    FROM json_each(?1) AS j
    WHERE actions.namespace = j.value->>0 AND actions.action_id = j.value->>1 AND actions.session_id = j.value->>2
        AND actions.processed_at_ms IS NULL";
/// A settled effect stays settled (invariant E2).
const WRITE_EFFECTS: &str = "
    INSERT INTO effects (namespace, session_id, class, state, settled_at_ms, effect_key, what)
    SELECT value->>0, value->>1, value->>2, value->>3, value->>4, cast(substr(?2, value->>5, value->>6) AS TEXT),
        cast(substr(?2, value->>7, value->>8) AS TEXT)
    FROM json_each(?1) WHERE true
    ON CONFLICT (namespace, session_id, effect_key) DO UPDATE
        SET state = excluded.state, settled_at_ms = excluded.settled_at_ms WHERE effects.state <> 'settled'";

#[cfg(test)]
pub(super) const SQL: &[(&str, &str)] = &[
    ("commit::reserve", RESERVE),
    ("commit::give_back", GIVE_BACK),
    ("commit::replace_heads", REPLACE_HEADS),
    ("commit::insert_journal", INSERT_JOURNAL),
    ("commit::settle_actions", SETTLE_ACTIONS),
    ("commit::write_effects", WRITE_EFFECTS),
];

/// A commit with its texts made ready in the caller's task, so that the writer only writes.
struct Prepared {
    commit: Commit,
    owner: WorkerId,
    head: Json,
    body: Json,
}

/// One call of `Commits::commit`.
pub(super) struct Call {
    commits: Vec<Prepared>,
    bytes: usize,
}

#[derive(Default)]
pub(super) struct Load {
    bytes: usize,
    sessions: HashSet<SessionKey>,
}

impl Batched for Call {
    type Answer = Vec<CommitResult>;
    type Load = Load;

    /// A session's next commit builds on the one before: it goes into the next transaction.
    fn join(&self, load: &mut Load) -> bool {
        let fits = load.sessions.len() + self.commits.len() <= COMMIT_BATCH_MAX
            && load.bytes + self.bytes <= COMMIT_BATCH_BYTES_MAX
            && !self.commits.iter().any(|one| load.sessions.contains(&one.commit.key));
        if fits || load.sessions.is_empty() {
            load.bytes += self.bytes;
            load.sessions.extend(self.commits.iter().map(|one| one.commit.key.clone()));
        }
        fits
    }
}

#[async_trait]
impl Commits for SqliteStore {
    async fn commit(&self, owner: &WorkerId, commits: Vec<Commit>) -> Result<Vec<CommitResult>, Failure> {
        if commits.is_empty() {
            return Ok(Vec::new());
        }
        let mut sessions = HashSet::with_capacity(commits.len());
        if let Some(twice) = commits.iter().find(|commit| !sessions.insert(&commit.key)) {
            return Err(Failure::internal(format!("two commits of session {} in one call", twice.key)));
        }
        let prepare = |commit: Commit| Prepared {
            owner: owner.clone(),
            head: Json::of(&commit.entry.head),
            body: Json::of(&*commit.entry),
            commit,
        };
        let commits: Vec<Prepared> = commits.into_iter().map(prepare).collect();
        let bytes = commits.iter().map(|one| one.head.as_str().len() + one.body.as_str().len()).sum();
        self.0.commits.call(Call { commits, bytes }).await
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
            let mut tx = writer.begin().await?;
            let result = write(tx.connection(), clock.now_ms(), shards, &batch).await;
            let mut results = tx.finish(result).await?.into_iter();
            Ok(calls.iter().map(|call| results.by_ref().take(call.commits.len()).collect()).collect())
        })
    }
}

async fn write(
    connection: &mut SqliteConnection,
    now_ms: i64,
    shards: u16,
    batch: &[&Prepared],
) -> Result<Vec<CommitResult>, Failure> {
    let mut reserved = reserve(connection, batch).await?;
    let mut results: Vec<CommitResult> = vec![CommitResult::Fenced; batch.len()];
    let held: Vec<usize> = (0..batch.len()).filter(|index| is_held(&reserved, batch[*index])).collect();
    if held.is_empty() {
        return Ok(results);
    }
    let replaced = replace_heads(connection, batch, &held).await?;
    let (done, refused): (Vec<usize>, Vec<usize>) =
        held.into_iter().partition(|index| replaced.contains(&batch[*index].commit.key));
    for &index in &refused {
        results[index] = CommitResult::Conflict;
    }
    give_back(connection, batch, &refused).await?;
    for &index in &done {
        if let Some(held) = reserved.get_mut(&batch[index].commit.shard) {
            held.before += 1;
            results[index] = CommitResult::Done { seq: held.before, follow_ups: Vec::new() };
        }
    }
    insert_journal(connection, now_ms, batch, &done, &results).await?;
    settle(connection, now_ms, batch, &done).await?;
    follow_up(connection, now_ms, shards, batch, &done, &mut results).await?;
    Ok(results)
}

/// A shard that was found held by who says so.
struct Held {
    owner: WorkerId,
    epoch: Epoch,
    /// The last `seq` given out.
    before: u64,
}

fn is_held(reserved: &HashMap<Shard, Held>, one: &Prepared) -> bool {
    reserved.get(&one.commit.shard).is_some_and(|held| held.epoch == one.commit.epoch && held.owner == one.owner)
}

/// Makes room in the journal of each shard for all commits of the batch.
async fn reserve(connection: &mut SqliteConnection, batch: &[&Prepared]) -> Result<HashMap<Shard, Held>, Failure> {
    let mut wanted: HashMap<(Shard, Epoch, &WorkerId), u64> = HashMap::new();
    for one in batch {
        *wanted.entry((one.commit.shard, one.commit.epoch, &one.owner)).or_default() += 1;
    }
    let mut pack = Pack::default();
    for ((shard, epoch, owner), count) in &wanted {
        pack.row(|row| {
            row.int(i64::from(shard.0)).id(owner.as_str()).int(epoch.0).int(*count as i64);
        });
    }
    let rows = sqlx::query(RESERVE).bind(pack.into_json()).fetch_all(connection).await.map_err(failure)?;
    let mut reserved = HashMap::with_capacity(rows.len());
    for row in &rows {
        let (shard, epoch, owner): (_, _, WorkerId) = (shard(row)?, Epoch(get(row, "epoch")?), id(row, "owner")?);
        let room = wanted.get(&(shard, epoch, &owner)).copied().unwrap_or(0);
        let before = count(row, "seq")?.saturating_sub(room);
        reserved.insert(shard, Held { owner, epoch, before });
    }
    Ok(reserved)
}

/// Takes back the room that conflicts did not use, so that the journal has no gap.
async fn give_back(connection: &mut SqliteConnection, batch: &[&Prepared], refused: &[usize]) -> Result<(), Failure> {
    if refused.is_empty() {
        return Ok(());
    }
    let mut unused: HashMap<Shard, i64> = HashMap::new();
    for &index in refused {
        *unused.entry(batch[index].commit.shard).or_default() += 1;
    }
    let mut pack = Pack::default();
    for (shard, count) in unused {
        pack.row(|row| {
            row.int(i64::from(shard.0)).int(count);
        });
    }
    sqlx::query(GIVE_BACK).bind(pack.into_json()).execute(connection).await.map_err(failure)?;
    Ok(())
}

async fn replace_heads(
    connection: &mut SqliteConnection,
    batch: &[&Prepared],
    held: &[usize],
) -> Result<HashSet<SessionKey>, Failure> {
    let mut pack = Pack::default();
    for &index in held {
        let Prepared { commit, head, .. } = batch[index];
        let new = &commit.entry.head;
        pack.row(|row| {
            row.id(commit.key.namespace.as_str()).id(commit.key.session_id.as_str());
            row.int(i64::from(commit.shard.0)).int(commit.expect_steps as i64).int(commit.expect_offset as i64);
            row.id(new.status.as_str()).int(new.steps as i64).int(new.next_offset as i64);
            row.opt_int(new.wake_at_ms).text(head.as_str());
        });
    }
    let (json, blob) = pack.into_parts();
    let rows = sqlx::query(REPLACE_HEADS).bind(json).bind(blob).fetch_all(connection).await.map_err(failure)?;
    rows.iter().map(key).collect()
}

async fn insert_journal(
    connection: &mut SqliteConnection,
    now_ms: i64,
    batch: &[&Prepared],
    done: &[usize],
    results: &[CommitResult],
) -> Result<(), Failure> {
    let mut pack = Pack::default();
    for &index in done {
        let (Prepared { commit, body, .. }, CommitResult::Done { seq, .. }) = (batch[index], &results[index]) else {
            continue;
        };
        pack.row(|row| {
            row.int(i64::from(commit.shard.0)).int(*seq as i64);
            row.id(commit.key.namespace.as_str()).id(commit.key.session_id.as_str());
            row.int(commit.expect_offset as i64).int(commit.entry.head.next_offset as i64 - 1);
            row.int(now_ms).text(body.as_str());
        });
    }
    run(connection, INSERT_JOURNAL, pack).await
}

async fn settle(
    connection: &mut SqliteConnection,
    now_ms: i64,
    batch: &[&Prepared],
    done: &[usize],
) -> Result<(), Failure> {
    let (mut actions, mut effects) = (Pack::default(), Pack::default());
    for &index in done {
        let commit = &batch[index].commit;
        let (namespace, session) = (commit.key.namespace.as_str(), commit.key.session_id.as_str());
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
    run(connection, SETTLE_ACTIONS, actions).await?;
    run(connection, WRITE_EFFECTS, effects).await
}

/// Accepts the outbox, after the heads are replaced: a session that ended in this very
/// transaction refuses what is sent to it.
async fn follow_up(
    connection: &mut SqliteConnection,
    now_ms: i64,
    shards: u16,
    batch: &[&Prepared],
    done: &[usize],
    results: &mut [CommitResult],
) -> Result<(), Failure> {
    let sent = done.iter().flat_map(|&index| batch[index].commit.follow_ups.iter().map(move |new| (index, new)));
    let (senders, actions): (Vec<usize>, Vec<_>) = sent.unzip();
    let verdicts = accept::accept(connection, now_ms, shards, &actions).await?;
    for (index, verdict) in senders.into_iter().zip(verdicts) {
        if let (CommitResult::Done { follow_ups, .. }, Some(action)) = (&mut results[index], under_way(verdict)) {
            follow_ups.push(action);
        }
    }
    Ok(())
}
