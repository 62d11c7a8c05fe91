//! What talk is made of, whatever the database: what a batch of commits says, where it goes in the
//! logs, and the rows that come of it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use domain::commit::Commit;
use domain::ports::Post;
use domain::spending::Spent;
use domain::talk;
use schemas::conversation::{
    Conversation, ConversationStatus, LogRecord, Operation, OperationState, Participant, Turn,
};
use schemas::id::{AgentId, ConversationId, Namespace, OperationId, SessionKey, Shard, TurnId};
use schemas::session::SessionSpec;

/// A conversation's address.
pub(crate) type Place = (Namespace, ConversationId);

/// A conversation as far as writing to it is concerned.
#[derive(Debug, Clone)]
pub(crate) struct Forum {
    pub(crate) status: ConversationStatus,
    pub(crate) created_at_ms: i64,
    pub(crate) last_offset: u64,
}

/// A record that wants a place in a log.
#[derive(Debug, Clone)]
pub(crate) struct Said<'b> {
    pub(crate) place: Place,
    pub(crate) record: &'b LogRecord,
    /// Of the session that says it in a commit.
    pub(crate) shard: Option<Shard>,
}

impl<'b> Said<'b> {
    pub(crate) fn of(post: &'b Post) -> Self {
        Self { place: (post.namespace.clone(), post.conversation_id.clone()), record: &post.record, shard: None }
    }
}

/// A row of a log.
#[derive(Debug)]
pub(crate) struct Placed<'b> {
    pub(crate) place: Place,
    pub(crate) offset: u64,
    pub(crate) record: &'b LogRecord,
    pub(crate) shard: Option<Shard>,
}

/// A row of the participants.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) place: Place,
    /// When the conversation was created.
    pub(crate) opened_at_ms: i64,
    pub(crate) participant: Participant,
    /// A session that is created takes part; unless it had a seat and lost it before.
    pub(crate) at_creation: bool,
}

/// Everything that a transaction adds to conversations, in the order in which it is written.
#[derive(Debug, Default)]
pub(crate) struct Additions<'b> {
    pub(crate) opened: Vec<(Namespace, Conversation)>,
    pub(crate) joined: Vec<Joined>,
    pub(crate) placed: Vec<Placed<'b>>,
    pub(crate) turns: Vec<(&'b Namespace, &'b Turn)>,
    pub(crate) operations: Vec<(&'b Namespace, Operation)>,
    pub(crate) ended: Vec<(Namespace, OperationId, OperationState)>,
    /// What steps without turns have asked of models.
    pub(crate) paid: Sums<'b>,
}

/// What was spent, by namespace and shard.
pub(crate) type Sums<'b> = BTreeMap<(&'b Namespace, Shard), Spent>;

impl Additions<'_> {
    /// The new ends of the logs, by place.
    pub(crate) fn ends(&self) -> BTreeMap<&Place, u64> {
        self.placed.iter().map(|placed| (&placed.place, placed.offset)).collect()
    }

    /// Whether there are records, turns or sums.
    pub(crate) fn says(&self) -> bool {
        !self.placed.is_empty() || !self.turns.is_empty() || !self.paid.is_empty()
    }

    /// Whether all of it is records, turns and sums.
    pub(crate) fn only_says(&self) -> bool {
        self.opened.is_empty() && self.joined.is_empty() && self.operations.is_empty() && self.ended.is_empty()
    }

    /// What the new records of calls add, and the calls of steps, by namespace and shard, whose lock the transaction
    /// has. A record that a log has already is not new, and a step is committed once, so that nothing counts twice.
    pub(crate) fn spent(&self) -> Sums<'_> {
        let mut sums: Sums<'_> = self.paid.clone();
        for placed in &self.placed {
            if let (Some(shard), Some(spent)) = (placed.shard, Spent::of(placed.record)) {
                sums.entry((&placed.place.0, shard)).or_default().add(spent);
            }
        }
        sums
    }
}

/// What the commits of a batch say.
#[derive(Default)]
pub(crate) struct Words<'b> {
    /// Of each conversation, a session that talks in it.
    pub(crate) speakers: BTreeMap<Place, (&'b SessionKey, &'b AgentId)>,
    pub(crate) said: Vec<Said<'b>>,
    turns: BTreeMap<(&'b Namespace, &'b TurnId), &'b Turn>,
    operations: BTreeMap<(&'b Namespace, &'b OperationId), Operation>,
    paid: Sums<'b>,
}

impl<'b> Words<'b> {
    pub(crate) fn of(commits: &[&'b Commit]) -> Self {
        let mut words = Self::default();
        for commit in commits {
            for spent in Spent::of_steps(&commit.entry) {
                words.paid.entry((&commit.key.namespace, commit.shard)).or_default().add(spent);
            }
            if !commit.talk.is_empty() {
                words.add(commit);
            }
        }
        words
    }

    fn add(&mut self, commit: &'b Commit) {
        let namespace = &commit.key.namespace;
        if let Some(id) = &commit.entry.conversation_id {
            let place = (namespace.clone(), id.clone());
            self.said.extend(commit.talk.log.iter().map(|record| Said {
                place: place.clone(),
                record,
                shard: Some(commit.shard),
            }));
            self.speakers.entry(place).or_insert((&commit.key, &commit.entry.agent_id));
        }
        for turn in &commit.talk.turns {
            self.turns.insert((namespace, &turn.turn_id), turn);
        }
        for operation in &commit.talk.operations {
            match self.operations.entry((namespace, &operation.operation_id)) {
                Entry::Vacant(free) => {
                    free.insert(operation.clone());
                }
                Entry::Occupied(mut known) => talk::take_state(known.get_mut(), operation),
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.speakers.is_empty() && self.turns.is_empty() && self.operations.is_empty() && self.paid.is_empty()
    }

    /// Operations that are dispatched or ended, in the order of their ids.
    pub(crate) fn operation_ids(&self) -> impl Iterator<Item = (&'b Namespace, &'b OperationId)> {
        self.operations.keys().copied()
    }

    /// Opens the conversations that are missing: whoever talks has somewhere to do it.
    pub(crate) fn open(
        &self,
        forums: &mut HashMap<Place, Forum>,
        specs: &HashMap<SessionKey, SessionSpec>,
        now_ms: i64,
    ) -> Additions<'b> {
        let mut additions = Additions::default();
        for (place, (key, agent_id)) in &self.speakers {
            if let (false, Some(spec)) = (forums.contains_key(place), specs.get(*key)) {
                let conversation = talk::opened_by(&place.1, agent_id.as_str(), agent_id, spec, now_ms);
                forums.insert(place.clone(), Forum::of(&conversation));
                let participant = talk::participant_of(&key.session_id, agent_id, None, now_ms);
                additions.joined.extend(participant.map(|participant| Joined {
                    place: place.clone(),
                    opened_at_ms: now_ms,
                    participant,
                    at_creation: false,
                }));
                additions.opened.push((place.0.clone(), conversation));
            }
        }
        additions
    }

    /// What is to be written, with the places of the records; `known` are those of `said` that a log
    /// has already.
    pub(crate) fn into_additions(
        self,
        mut forums: HashMap<Place, Forum>,
        known: &HashSet<usize>,
        mut additions: Additions<'b>,
        now_ms: i64,
    ) -> Additions<'b> {
        additions.placed = place(&self.said, &mut forums, known);
        additions.paid = self.paid;
        additions.turns = self.turns.into_iter().map(|((namespace, _), turn)| (namespace, turn)).collect();
        let operations = self.operations.into_iter();
        additions.operations =
            operations.map(|((namespace, _), operation)| (namespace, talk::dispatched(&operation, now_ms))).collect();
        additions
    }
}

impl Forum {
    pub(crate) fn of(conversation: &Conversation) -> Self {
        Self {
            status: conversation.status,
            created_at_ms: conversation.created_at_ms,
            last_offset: conversation.last_offset,
        }
    }
}

/// What the logs say of those who have joined conversations as they were before.
pub(crate) fn announced<'j>(
    joined: impl IntoIterator<Item = &'j Joined>,
    forums: &HashMap<Place, Forum>,
) -> Vec<(Place, LogRecord)> {
    let of = |joined: &Joined| {
        let forum = forums.get(&joined.place)?;
        let record = talk::seats::joined(forum.status, forum.last_offset, &joined.participant)?;
        Some((joined.place.clone(), record))
    };
    joined.into_iter().filter_map(of).collect()
}

/// The same with their places in the logs, as all there is to add.
pub(crate) fn announcement<'b>(records: &'b [(Place, LogRecord)], forums: &HashMap<Place, Forum>) -> Additions<'b> {
    let said: Vec<Said<'b>> =
        records.iter().map(|(home, record)| Said { place: home.clone(), record, shard: None }).collect();
    Additions { placed: place(&said, &mut forums.clone(), &HashSet::new()), ..Additions::default() }
}

/// Numbers records in their order. What is in its log already, or twice here, takes no number.
pub(crate) fn place<'b>(
    said: &[Said<'b>],
    forums: &mut HashMap<Place, Forum>,
    known: &HashSet<usize>,
) -> Vec<Placed<'b>> {
    let mut seen: HashSet<(&Place, &str)> = HashSet::with_capacity(said.len());
    let mut placed = Vec::with_capacity(said.len());
    for (index, one) in said.iter().enumerate() {
        let Some(forum) = forums.get_mut(&one.place).filter(|_| !known.contains(&index)) else { continue };
        if seen.insert((&one.place, one.record.id.as_str())) {
            forum.last_offset += 1;
            placed.push(Placed {
                place: one.place.clone(),
                offset: forum.last_offset,
                record: one.record,
                shard: one.shard,
            });
        }
    }
    placed
}

#[cfg(test)]
mod tests {
    use schemas::conversation::LogKind;
    use schemas::json::Json;

    use super::*;

    fn record(id: &str) -> LogRecord {
        LogRecord {
            kind: LogKind::Note,
            id: id.to_owned(),
            turn_id: None,
            agent_id: None,
            session_id: None,
            at_ms: 1,
            body: Json::null(),
        }
    }

    #[test]
    fn records_are_numbered_without_gaps() {
        let place_of = |id: &str| -> Place { (Namespace::default_ns(), ConversationId::parse(id).expect("an id")) };
        let records = ["a", "b", "a", "c", "d"].map(record);
        let places = ["one", "one", "one", "one", "two"].map(place_of);
        let said: Vec<Said<'_>> = records
            .iter()
            .zip(&places)
            .map(|(record, place)| Said { place: place.clone(), record, shard: None })
            .collect();
        let forum = Forum { status: ConversationStatus::Active, created_at_ms: 0, last_offset: 7 };
        let mut forums = HashMap::from([(place_of("one"), forum.clone()), (place_of("two"), forum)]);
        // "b" is in the log, and "a" comes twice.
        let placed = place(&said, &mut forums, &HashSet::from([1]));
        let found: Vec<_> =
            placed.iter().map(|row| (row.place.1.as_str(), row.record.id.as_str(), row.offset)).collect();
        assert_eq!(found, [("one", "a", 8), ("one", "c", 9), ("two", "d", 8)]);
    }
}
