//! Who speaks in what a model is shown. Other agents are told by name, and so are people where there are several
//! (SPEC W-CNV-05): most providers drop the name beside a message, so it stands before the words.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use schemas::conversation::{Message, MessageRole, SenderType};
use schemas::id::{AgentId, UserId};

use super::assembly::Gathered;

pub(super) struct Voices<'g> {
    /// Whose model it is.
    pub me: &'g AgentId,
    /// It works for one caller alone, of whom nothing crosses but the input (SPEC W-INV-06).
    pub is_delegate: bool,
    /// People with the names they gave, if they are several; of one alone nobody else has to be told.
    pub people: BTreeSet<(UserId, Option<String>)>,
    /// What the agents are called who speak there, by their names and ids.
    pub agents: BTreeSet<String>,
}

impl<'g> Voices<'g> {
    /// Of what was said before, by its places in the log, and of the input.
    pub fn of(gathered: &'g Gathered, said: &BTreeMap<u64, Message>) -> Self {
        let all = || said.values().chain(iter::once(&gathered.input));
        let by_people = all().filter(|message| message.sender_type == SenderType::User);
        let mut people: BTreeSet<(UserId, Option<String>)> =
            by_people.filter_map(|message| Some((message.user_id.clone()?, message.name.clone()))).collect();
        // They are sorted by their ids.
        let ends = people.first().zip(people.last());
        if ends.is_none_or(|((first, _), (last, _))| first == last) {
            people.clear();
        }
        let by_agents = all().filter(|message| message.sender_type == SenderType::Agent);
        let agents = by_agents
            .flat_map(|one| one.name.clone().into_iter().chain(one.agent_id.as_ref().map(|id| id.to_string())));
        Self { me: &gathered.agent, is_delegate: gathered.is_delegate, people, agents: agents.collect() }
    }

    /// Whether the agent itself said it. It may ask itself, as its own delegate.
    pub fn is_own(&self, message: &Message) -> bool {
        let by_agent = message.sender_type == SenderType::Agent && message.role == MessageRole::Assistant;
        by_agent && message.agent_id.as_ref() == Some(self.me)
    }

    /// By whom a model is told it was said, if that has to be told.
    pub fn label(&self, message: &Message) -> Option<String> {
        match message.sender_type {
            SenderType::Agent if self.is_delegate && message.role == MessageRole::User => None,
            SenderType::Agent => {
                let name = message.name.clone().or_else(|| message.agent_id.as_ref().map(ToString::to_string));
                Some(name.unwrap_or_else(|| "agent".to_owned()))
            }
            SenderType::User if !self.people.is_empty() => self.person(message),
            SenderType::User | SenderType::System => None,
        }
    }

    /// By the name, unless somebody else goes by it, or it could be taken for more than a name.
    fn person(&self, message: &Message) -> Option<String> {
        let id = message.user_id.as_ref();
        let is_anothers = |name: &str| {
            let mut others = self.people.iter().filter(|(other, _)| Some(other) != id);
            others.any(|(other, known)| other.as_str() == name || known.as_deref() == Some(name))
        };
        let is_agents = |name: &str| self.agents.contains(name);
        let name = message.name.clone().filter(|name| is_plain(name) && !is_anothers(name) && !is_agents(name));
        name.or_else(|| id.map(ToString::to_string))
    }
}

/// Whether a name can stand in a label: nothing in it ends that, or begins another one.
pub(super) fn is_plain(name: &str) -> bool {
    !name.chars().any(|char| char.is_control() || "[]".contains(char))
}
