//! Who is to answer a message (SPEC K-20).

use schemas::conversation::{Message, Participant, ParticipantKind, ParticipantRole, SenderType};
use schemas::id::{AgentId, SessionId};
use schemas::limits::RESPONDERS_MAX;
use schemas::problem::{Code, FieldProblem, Problem};

use crate::action::fields::wrong;

/// An agent that is to answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Addressee {
    pub participant: Participant,
    pub agent_id: AgentId,
    pub session_id: SessionId,
    /// The message names it, or replies to it.
    pub is_named: bool,
}

/// The agents that a message is for: those it names in `to`, else the author of what it replies
/// to if that is an agent, else every responder. Who has left gets nothing.
///
/// # Errors
/// A name that nobody here has, or the author of what is replied to has left.
pub fn addressees(
    to: &[String],
    replied_to: Option<&Message>,
    participants: &[Participant],
) -> Result<Vec<Addressee>, Box<Problem>> {
    let present: Vec<Addressee> = participants.iter().filter_map(seated).collect();
    let chosen = if !to.is_empty() {
        named(to, &present)?
    } else if let Some(author) = replied_to.filter(|message| message.sender_type == SenderType::Agent) {
        author_of(author, &present)?
    } else {
        present.into_iter().filter(|one| one.participant.role == ParticipantRole::Responder).collect()
    };
    if chosen.len() > RESPONDERS_MAX {
        let what = format!("is needed: {} agents would answer, and at most {RESPONDERS_MAX} may", chosen.len());
        return Err(wrong("to", what));
    }
    Ok(chosen)
}

fn seated(participant: &Participant) -> Option<Addressee> {
    let here = participant.kind == ParticipantKind::Agent && participant.left_at_ms.is_none();
    let (agent_id, session_id) = (participant.agent_id.clone()?, participant.session_id.clone()?);
    here.then(|| Addressee { participant: participant.clone(), agent_id, session_id, is_named: false })
}

fn named(to: &[String], present: &[Addressee]) -> Result<Vec<Addressee>, Box<Problem>> {
    let (mut chosen, mut unknown) = (Vec::<Addressee>::new(), Vec::new());
    for (index, name) in to.iter().enumerate() {
        let is_it = |one: &&Addressee| one.agent_id.as_str() == name || one.participant.participant_id.as_str() == name;
        let mut found = present.iter().filter(is_it).peekable();
        if found.peek().is_none() {
            let shown: String = name.chars().take(64).collect();
            let what = format!("{shown:?} is no agent that takes part here; {}", who(present));
            unknown.push(FieldProblem::new(format!("to[{index}]"), what));
        }
        for one in found {
            if chosen.iter().all(|known| known.session_id != one.session_id) {
                chosen.push(Addressee { is_named: true, ..one.clone() });
            }
        }
    }
    if unknown.is_empty() { Ok(chosen) } else { Err(Box::new(Problem::fields(Code::InvalidRequest, unknown))) }
}

/// The session that said it; if that has left, another one of the same agent.
fn author_of(message: &Message, present: &[Addressee]) -> Result<Vec<Addressee>, Box<Problem>> {
    let same_session = present.iter().find(|one| message.session_id.as_ref() == Some(&one.session_id));
    let same_agent = || present.iter().rev().find(|one| message.agent_id.as_ref() == Some(&one.agent_id));
    match same_session.or_else(same_agent) {
        Some(one) => Ok(vec![Addressee { is_named: true, ..one.clone() }]),
        None => {
            let author = message.agent_id.as_ref().map_or_else(|| "its author".to_owned(), ToString::to_string);
            let what = format!("is of {author}, which takes part no more; name in `to` who should answer");
            Err(wrong("reply_to_message_id", what))
        }
    }
}

fn who(present: &[Addressee]) -> String {
    if present.is_empty() {
        return "none does, so add one first: POST /api/conversations/{id}/participants".to_owned();
    }
    let mut names: Vec<&str> = present.iter().map(|one| one.agent_id.as_str()).take(20).collect();
    names.dedup();
    format!("those who do are {}", names.join(", "))
}
