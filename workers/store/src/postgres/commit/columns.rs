//! A batch of commits as one array for each column.

use std::borrow::Cow;
use std::collections::BTreeSet;

use domain::commit::Settled;
use schemas::id::SessionKey;

use super::super::pool::Statement;
use super::super::rows::clean;
use crate::committing::Prepared;

/// Binds all parameters of [`super::sql::COMMIT`], in its order.
pub(super) fn bind(query: Statement, batch: &[&Prepared]) -> Statement {
    let mut order: Vec<usize> = (0..batch.len()).collect();
    // Sessions are locked in the order of their ids.
    order.sort_by(|a, b| batch[*a].commit.key.cmp(&batch[*b].commit.key));
    let mut heads = Heads::default();
    for index in order {
        heads.push(index, batch[index]);
    }
    let mut shards = Shards::default();
    let held: BTreeSet<_> = batch.iter().map(|one| (one.commit.shard, one.commit.epoch, &one.owner)).collect();
    for (shard, epoch, owner) in held {
        shards.0.push(i32::from(shard.0));
        shards.1.push(owner.as_str());
        shards.2.push(epoch.0);
    }
    effects(settled(shards.bind(heads.bind(query)), batch), batch)
}

#[derive(Default)]
struct Heads<'b> {
    place: Vec<i64>,
    shard: Vec<i32>,
    owner: Vec<&'b str>,
    epoch: Vec<i64>,
    namespace: Vec<&'b str>,
    session_id: Vec<&'b str>,
    expect_steps: Vec<i64>,
    expect_offset: Vec<i64>,
    status: Vec<&'static str>,
    steps: Vec<i64>,
    next_offset: Vec<i64>,
    wake_at_ms: Vec<Option<i64>>,
    head: Vec<&'b str>,
    body: Vec<&'b str>,
}

impl<'b> Heads<'b> {
    fn push(&mut self, index: usize, one: &'b Prepared) {
        let (commit, head) = (&one.commit, &one.commit.entry.head);
        self.place.push(index as i64);
        self.shard.push(i32::from(commit.shard.0));
        self.owner.push(one.owner.as_str());
        self.epoch.push(commit.epoch.0);
        self.namespace.push(commit.key.namespace.as_str());
        self.session_id.push(commit.key.session_id.as_str());
        self.expect_steps.push(commit.expect_steps as i64);
        self.expect_offset.push(commit.expect_offset as i64);
        self.status.push(head.status.as_str());
        self.steps.push(head.steps as i64);
        self.next_offset.push(head.next_offset as i64);
        self.wake_at_ms.push(head.wake_at_ms);
        self.head.push(one.head.as_str());
        self.body.push(one.body.as_str());
    }

    fn bind(self, query: Statement) -> Statement {
        let query = query.bind(self.place).bind(self.shard).bind(self.owner).bind(self.epoch);
        let query = query.bind(self.namespace).bind(self.session_id).bind(self.expect_steps).bind(self.expect_offset);
        let query = query.bind(self.status).bind(self.steps).bind(self.next_offset).bind(self.wake_at_ms);
        query.bind(self.head).bind(self.body)
    }
}

/// Who says to hold which shard, under which epoch.
#[derive(Default)]
struct Shards<'b>(Vec<i32>, Vec<&'b str>, Vec<i64>);

impl Shards<'_> {
    fn bind(self, query: Statement) -> Statement {
        query.bind(self.0).bind(self.1).bind(self.2)
    }
}

/// In the order of the ids, as publications are marked: two of them never wait for each other.
fn settled<'b>(query: Statement, batch: &[&'b Prepared]) -> Statement {
    let all = batch.iter().enumerate();
    let mut rows: Vec<_> = all
        .flat_map(|(index, one)| one.commit.settled.iter().map(move |settled| (index, &one.commit.key, settled)))
        .collect();
    let place = |row: &(usize, &'b SessionKey, &'b Settled)| (&row.1.namespace, &row.2.action_id);
    rows.sort_by(|a, b| place(a).cmp(&place(b)));
    let places: Vec<i64> = rows.iter().map(|(index, ..)| *index as i64).collect();
    let namespaces: Vec<&str> = rows.iter().map(|(_, key, _)| key.namespace.as_str()).collect();
    let sessions: Vec<&str> = rows.iter().map(|(_, key, _)| key.session_id.as_str()).collect();
    let ids: Vec<&str> = rows.iter().map(|(.., settled)| settled.action_id.as_str()).collect();
    let outcomes: Vec<&str> = rows.iter().map(|(.., settled)| settled.outcome.as_str()).collect();
    let codes: Vec<Option<&str>> = rows.iter().map(|(.., settled)| settled.code.map(|code| code.as_str())).collect();
    let errors: Vec<Option<Cow<'_, str>>> =
        rows.iter().map(|(.., settled)| settled.error.as_deref().map(clean)).collect();
    query.bind(places).bind(namespaces).bind(sessions).bind(ids).bind(outcomes).bind(codes).bind(errors)
}

fn effects(query: Statement, batch: &[&Prepared]) -> Statement {
    let all = batch.iter().enumerate();
    let rows: Vec<_> = all
        .flat_map(|(index, one)| one.commit.effects.iter().map(move |effect| (index, &one.commit.key, effect)))
        .collect();
    let places: Vec<i64> = rows.iter().map(|(index, ..)| *index as i64).collect();
    let namespaces: Vec<&str> = rows.iter().map(|(_, key, _)| key.namespace.as_str()).collect();
    let sessions: Vec<&str> = rows.iter().map(|(_, key, _)| key.session_id.as_str()).collect();
    let keys: Vec<Cow<'_, str>> = rows.iter().map(|(.., effect)| clean(&effect.key)).collect();
    let classes: Vec<&str> = rows.iter().map(|(.., effect)| effect.class.as_str()).collect();
    let states: Vec<&str> = rows.iter().map(|(.., effect)| effect.state.as_str()).collect();
    let whats: Vec<Cow<'_, str>> = rows.iter().map(|(.., effect)| clean(&effect.what)).collect();
    query.bind(places).bind(namespaces).bind(sessions).bind(keys).bind(classes).bind(states).bind(whats)
}
