//! The `Commits` port: the fence, the guard, then all of it or nothing.

use std::collections::{BTreeSet, VecDeque};

use async_trait::async_trait;
use domain::commit::{Commit, CommitResult, Settled};
use domain::failure::Failure;
use domain::ports::{Commits, Verdict};
use domain::session::refused_call;
use schemas::action::{Action, ActionType};
use schemas::id::{ActionId, WorkerId};
use schemas::record::{Entry, JournalRow};

use super::MemStore;
use super::state::{Committed, State};
use crate::fake::breakage::{Breakage, Breakages};

#[async_trait]
impl Commits for MemStore {
    async fn commit(&self, owner: &WorkerId, commits: Vec<Commit>) -> Result<Vec<CommitResult>, Failure> {
        let now = self.now_ms();
        let keys: BTreeSet<_> = commits.iter().map(|commit| &commit.key).collect();
        if keys.len() < commits.len() {
            return Err(Failure::internal("two commits of one session in one call"));
        }
        if commits.iter().any(|commit| !commit.talk.log.is_empty() && commit.entry.conversation_id.is_none()) {
            return Err(Failure::internal("a session without a conversation talks"));
        }
        let mut state = self.transaction();
        let results: Vec<CommitResult> =
            commits.into_iter().map(|commit| state.commit(owner, commit, now, &self.breakages)).collect();
        state.fenced += results.iter().filter(|result| matches!(result, CommitResult::Fenced)).count() as u64;
        state.conflicts += results.iter().filter(|result| matches!(result, CommitResult::Conflict)).count() as u64;
        Ok(results)
    }
}

impl State {
    fn commit(&mut self, owner: &WorkerId, commit: Commit, now_ms: i64, breakages: &Breakages) -> CommitResult {
        let Some(shard) = self.shard(commit.shard) else { return CommitResult::Fenced };
        let held = shard.owner.as_ref() == Some(owner) && shard.epoch == commit.epoch.0;
        if !held && !breakages.on(Breakage::DropFence) {
            return CommitResult::Fenced;
        }
        let last_seq = shard.seq;
        let Some(row) = self.sessions.get_mut(&commit.key) else { return CommitResult::Conflict };
        let expected = (commit.expect_steps, commit.expect_offset);
        let guard_off = breakages.on(Breakage::DropGuard) || (!held && breakages.on(Breakage::DropFence));
        if (row.head.steps, row.head.next_offset) != expected && !guard_off {
            return CommitResult::Conflict;
        }
        if breakages.strikes(Breakage::LoseCommit) {
            return CommitResult::Done { seq: last_seq + 1, follow_ups: Vec::new() };
        }
        // Sent again after a doubt, most often: it has its row.
        let is_empty = commit.entry.steps.is_empty() && commit.entry.events.is_empty();
        let is_kept = is_empty && row.head == commit.entry.head;
        row.head = commit.entry.head.clone();
        if breakages.on(Breakage::ForgetTimer) && row.head.wake_at_ms.is_some_and(|at| at > now_ms) {
            row.head.wake_at_ms = None;
        }
        if is_kept {
            return self.record(owner, commit, last_seq, now_ms, breakages);
        }
        if let Some(shard) = self.shard(commit.shard) {
            shard.seq = last_seq + 1;
        }
        self.journal(&commit, last_seq + 1, now_ms, breakages);
        self.record(owner, commit, last_seq + 1, now_ms, breakages)
    }

    fn journal(&mut self, commit: &Commit, seq: u64, now_ms: i64, breakages: &Breakages) {
        let row = JournalRow {
            shard: commit.shard,
            seq,
            key: commit.key.clone(),
            committed_at_ms: now_ms,
            entry: Entry::clone(&commit.entry),
        };
        if !breakages.strikes(Breakage::LoseJournalRow) {
            self.journal.insert((commit.shard, seq), row);
        }
    }

    /// All of a commit but its row.
    fn record(
        &mut self,
        owner: &WorkerId,
        commit: Commit,
        seq: u64,
        now_ms: i64,
        breakages: &Breakages,
    ) -> CommitResult {
        let forget = breakages.strikes(Breakage::LoseSettlement);
        let asked = if forget { Vec::new() } else { commit.settled };
        let (settled, settled_again) = self.settle(&commit.key, asked, now_ms);
        let mut talk = commit.talk;
        if breakages.on(Breakage::LoseOperation) {
            talk.operations.clear();
        }
        self.write_talk(&commit.key, &commit.entry, talk, now_ms);
        let mut follow_ups: Vec<Action> = Vec::new();
        let mut sent = VecDeque::from(commit.follow_ups);
        if breakages.on(Breakage::LoseAnswer) {
            sent.retain(|new| new.kind != ActionType::ToolResult);
        }
        while let Some(new) = sent.pop_front() {
            match self.accept(new.clone(), now_ms, breakages) {
                Verdict::Accepted(accepted) => follow_ups.push(accepted.action),
                Verdict::Refused(refusal) => sent.extend(refused_call(&new, &refusal.detail)),
                Verdict::Repeated(_) => {}
            }
        }
        for effect in commit.effects {
            self.effects.insert(effect.key.clone(), (commit.key.clone(), effect));
        }
        self.commit_log.push(Committed {
            shard: commit.shard,
            seq,
            epoch: commit.epoch,
            owner: owner.clone(),
            key: commit.key,
            at_ms: now_ms,
            entry: commit.entry,
            settled,
            settled_again,
            follow_ups: follow_ups.iter().map(|action| action.action_id.clone()).collect(),
        });
        CommitResult::Done { seq, follow_ups }
    }

    /// Settles what is unprocessed; returns that, and the rest.
    fn settle(
        &mut self,
        key: &schemas::id::SessionKey,
        asked: Vec<Settled>,
        now_ms: i64,
    ) -> (Vec<Settled>, Vec<ActionId>) {
        let (mut done, mut again) = (Vec::new(), Vec::new());
        for settled in asked {
            let place = (key.namespace.clone(), settled.action_id.clone());
            match self.actions.get_mut(&place).filter(|rec| !rec.is_processed()) {
                Some(rec) => {
                    rec.processed_at_ms = Some(now_ms);
                    rec.outcome = Some(settled.outcome);
                    rec.code = settled.code;
                    rec.error = settled.error.clone();
                    if let Some(open) = rec.open_key() {
                        self.open.remove(&open);
                    }
                    done.push(settled);
                }
                None => again.push(settled.action_id),
            }
        }
        (done, again)
    }
}
