//! Commits that say something to conversations as one array for each column, where one statement can
//! write them: nothing is sent, and no two of them are about the same turn or operation.

use std::collections::{BTreeMap, BTreeSet};

use domain::commit::Commit;
use domain::spending::Spent;
use domain::talk::dispatched;
use schemas::conversation::{LogRecord, Operation, Turn};
use schemas::id::{Namespace, OperationId, TurnId};
use schemas::limits::SPENT_OF_SHARD_MAX;

use super::super::pool::Statement;
use super::super::rows::clean;
use super::super::talk::columns::{operations, turns};
use crate::committing::Prepared;
use crate::talking::Place;

/// What the commits of a batch say, with the places of the commits.
#[derive(Default)]
pub(super) struct Speech<'b> {
    /// All in which somebody speaks.
    forums: BTreeSet<Place>,
    words: Vec<Word<'b>>,
    turns: BTreeMap<(&'b Namespace, &'b TurnId), (i64, &'b Turn)>,
    operations: BTreeMap<(&'b Namespace, &'b OperationId), (i64, Operation)>,
    /// Calls of models by steps without turns.
    paid: Vec<(i64, &'b Commit, Spent)>,
}

struct Word<'b> {
    place: i64,
    commit: &'b Commit,
    conversation: &'b str,
    record: &'b LogRecord,
}

impl<'b> Speech<'b> {
    /// `None`: one statement cannot write it. `now_ms`: the database's time, if it is known; operations are
    /// dispatched at it.
    pub(super) fn of(batch: &[&'b Prepared], now_ms: Option<i64>) -> Option<Self> {
        let mut speech = Self::default();
        for (index, one) in batch.iter().enumerate() {
            if !one.commit.follow_ups.is_empty() || !speech.takes(index as i64, &one.commit, now_ms) {
                return None;
            }
        }
        Some(speech)
    }

    fn takes(&mut self, place: i64, commit: &'b Commit, now_ms: Option<i64>) -> bool {
        self.paid.extend(Spent::of_steps(&commit.entry).map(|spent| (place, commit, spent)));
        if commit.talk.is_empty() {
            return true;
        }
        let namespace = &commit.key.namespace;
        if let Some(id) = &commit.entry.conversation_id {
            self.forums.insert((namespace.clone(), id.clone()));
            let word = |record| Word { place, commit, conversation: id.as_str(), record };
            self.words.extend(commit.talk.log.iter().map(word));
        }
        let mut is_first = true;
        for turn in &commit.talk.turns {
            is_first &= self.turns.insert((namespace, &turn.turn_id), (place, turn)).is_none();
        }
        for operation in &commit.talk.operations {
            let Some(now_ms) = now_ms else { return false };
            let new = (place, dispatched(operation, now_ms));
            is_first &= self.operations.insert((namespace, &operation.operation_id), new).is_none();
        }
        is_first
    }

    /// Binds what [`super::sql::SPEAK`] takes beside the commits, in its order.
    pub(super) fn bind(self, query: Statement) -> Statement {
        let (namespaces, ids): (Vec<String>, Vec<String>) =
            self.forums.iter().map(|(namespace, id)| (namespace.to_string(), id.to_string())).unzip();
        let query = words(query, &self.words).bind(SPENT_OF_SHARD_MAX as i64).bind(namespaces).bind(ids);
        let (places, rows): (Vec<i64>, Vec<_>) =
            self.turns.into_iter().map(|((namespace, _), (place, turn))| (place, (namespace, turn))).unzip();
        let query = turns(query.bind(places), &rows);
        let (places, rows): (Vec<i64>, Vec<_>) = self
            .operations
            .into_iter()
            .map(|((namespace, _), (place, operation))| (place, (namespace, operation)))
            .unzip();
        paid(operations(query.bind(places), &rows), &self.paid)
    }
}

fn paid(query: Statement, all: &[(i64, &Commit, Spent)]) -> Statement {
    query
        .bind(all.iter().map(|(place, ..)| *place).collect::<Vec<_>>())
        .bind(all.iter().map(|(_, commit, _)| commit.key.namespace.as_str()).collect::<Vec<_>>())
        .bind(all.iter().map(|(_, commit, _)| i32::from(commit.shard.0)).collect::<Vec<_>>())
        .bind(all.iter().map(|(.., spent)| spent.tokens as i64).collect::<Vec<_>>())
        .bind(all.iter().map(|(.., spent)| spent.cost_nanos as i64).collect::<Vec<_>>())
}

fn words(query: Statement, all: &[Word<'_>]) -> Statement {
    let list = |column: fn(&LogRecord) -> Option<&str>| all.iter().map(|word| column(word.record)).collect::<Vec<_>>();
    let spent: Vec<Option<Spent>> = all.iter().map(|word| Spent::of(word.record)).collect();
    let sum = |part: fn(&Spent) -> u64| spent.iter().map(|one| one.as_ref().map(|one| part(one) as i64)).collect();
    let (tokens, costs): (Vec<Option<i64>>, Vec<Option<i64>>) = (sum(|one| one.tokens), sum(|one| one.cost_nanos));
    query
        .bind(all.iter().map(|word| word.place).collect::<Vec<_>>())
        .bind(all.iter().map(|word| word.commit.key.namespace.as_str()).collect::<Vec<_>>())
        .bind(all.iter().map(|word| word.conversation).collect::<Vec<_>>())
        .bind(list(|record| Some(record.kind.as_str())))
        .bind(list(|record| record.turn_id.as_ref().map(|id| id.as_str())))
        .bind(list(|record| record.agent_id.as_ref().map(|id| id.as_str())))
        .bind(list(|record| record.session_id.as_ref().map(|id| id.as_str())))
        .bind(all.iter().map(|word| word.record.at_ms).collect::<Vec<_>>())
        .bind(all.iter().map(|word| clean(&word.record.id).into_owned()).collect::<Vec<_>>())
        .bind(list(|record| Some(record.body.as_str())))
        .bind(all.iter().map(|word| i32::from(word.commit.shard.0)).collect::<Vec<_>>())
        .bind(tokens)
        .bind(costs)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use schemas::conversation::{LogKind, Talk};
    use testkit::contract::build::{input, worker};
    use testkit::contract::words::{operation, record, turn};
    use testkit::contract::{Ports, SHARDS};
    use testkit::fake::{MemStore, SimClock};

    use super::*;
    use crate::committing::prepare;

    #[tokio::test]
    async fn one_statement_writes_what_is_said_but_sends_nothing_and_replaces_nothing_of_its_own() {
        let ports = Ports::of(MemStore::new(SHARDS, Arc::new(SimClock::new())));
        let owner = worker("w1");
        let mut commits = Vec::new();
        for session in ["s1", "s2"] {
            ports.talker(session, "c1").await;
            let log = vec![record(LogKind::Note, session)];
            commits.push(ports.saying(&owner, session, Talk { log, ..Talk::default() }).await);
        }
        let takes = |change: &dyn Fn(&mut Vec<Commit>), now_ms| {
            let mut commits = commits.clone();
            change(&mut commits);
            let batch = prepare(&owner, commits).expect("a batch");
            Speech::of(&batch.iter().collect::<Vec<_>>(), now_ms).map(|speech| speech.words.len())
        };
        assert_eq!(takes(&|_| (), None), Some(2));
        assert_eq!(takes(&|all| all[0].talk = Talk::default(), None), Some(1), "beside one that says nothing");
        assert_eq!(takes(&|all| all[0].follow_ups = vec![input("i1", "s2")], Some(1)), None);
        let dispatches = |all: &mut Vec<Commit>| all[0].talk.operations = vec![operation("o1", "s1")];
        assert_eq!((takes(&dispatches, Some(1)), takes(&dispatches, None)), (Some(2), None));
        let both_dispatch = |all: &mut Vec<Commit>| {
            all.iter_mut().for_each(|one| one.talk.operations = vec![operation("o1", "s1")]);
        };
        assert_eq!(takes(&both_dispatch, Some(1)), None);
        let same_turn = |all: &mut Vec<Commit>| {
            all.iter_mut().for_each(|one| one.talk.turns = vec![turn("t1", "c1", "s1", 1)]);
        };
        assert_eq!(takes(&same_turn, Some(1)), None);
    }
}
