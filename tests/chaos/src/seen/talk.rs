//! What was seen of a conversation: what its user posted, its transcript, its turns, and what the
//! models were asked.

use serde::{Deserialize, Serialize};

use super::{Stream, Told};
use crate::plan::Word;

/// A conversation, read after its end.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Talk {
    pub id: String,
    /// It was opened by the call of another agent, and has no user.
    pub delegated: bool,
    /// The operation of that call.
    #[serde(default)]
    pub called_by: Option<String>,
    pub posts: Vec<Posted>,
    /// Turns that its user wanted to end, whatever the answer was.
    #[serde(default)]
    pub cancels: Vec<String>,
    /// Its agent was given guidance, or may have been: its models may be shown that last.
    #[serde(default)]
    pub guided: bool,
    /// Where its log ends, as its row says.
    pub last_offset: u64,
    /// All of the transcript, in the order of the list.
    pub said: Vec<Said>,
    pub turns: Vec<Turn>,
    /// What a live follower heard of it.
    pub stream: Option<Stream>,
}

/// A message as its user sent it, and what the user was told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Posted {
    pub id: String,
    pub word: Word,
    pub text: String,
    pub told: Told,
    /// Its place in the log, by the answer.
    pub offset: u64,
    /// The turn that it starts, by the answer.
    pub turn: String,
}

/// One entry of the transcript.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    pub offset: u64,
    pub id: String,
    pub turn: String,
    /// `user`, `agent` or `system`.
    pub sender: String,
    /// `user` also of what agents ask each other.
    #[serde(default)]
    pub role: String,
    /// `utterance`, `tool_call`, `tool_result`, `summary` or `status`.
    pub event: String,
    pub text: String,
    /// Of a result that its turn did not wait for.
    pub operation: Option<String>,
}

/// A turn with all that `GET /api/turns/{id}` tells of it. Spendings are tokens in and out.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Turn {
    pub id: String,
    pub status: String,
    #[serde(default)]
    pub cancelled: bool,
    /// Code and message.
    pub error: Option<String>,
    /// Moves as the turn counts them.
    pub counted: u64,
    pub usage: (u64, u64),
    /// The bound on moves was reached.
    pub exhausted: bool,
    /// Whether its log has the context that it began with.
    pub assembled: bool,
    /// Of each recorded call of a provider; none if nothing is known.
    pub spent: Vec<Option<(u64, u64)>>,
    /// How many of these calls brought a reply, and told what it cost.
    #[serde(default)]
    pub replies: usize,
    pub moves: Vec<Move>,
    pub operations: Vec<Operation>,
}

/// A recorded reply of a model, with the results of the tools that it called.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Move {
    pub offset: u64,
    pub number: u64,
    /// Whether it said something.
    pub spoke: bool,
    /// It was cut short, for guidance that could not wait: its call brought no reply.
    #[serde(default)]
    pub cut: bool,
    pub calls: Vec<String>,
    /// Calls that it did not wait for, and their operations.
    pub background: Vec<(String, String)>,
    pub results: Vec<ToolEnd>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolEnd {
    pub call: String,
    /// The key that the harness's own tool answered with.
    pub key: Option<String>,
    /// Tokens that a called agent used.
    pub usage: (u64, u64),
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Operation {
    pub id: String,
    pub state: String,
    pub is_async: bool,
    /// A person is asked whether the rest of its id may be done.
    #[serde(default)]
    pub is_question: bool,
    /// The session of a called agent.
    pub child: Option<String>,
}

/// What a person said to an agent that asked whether it may do something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub approved: bool,
    /// Whether the fleet said that it took it.
    pub heard: bool,
}

/// A request that a model got, by the record of the scripted provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// `<turn>.<move>`.
    pub key: String,
    /// Instructions, words, results and number of messages, as one text.
    pub content: String,
}
