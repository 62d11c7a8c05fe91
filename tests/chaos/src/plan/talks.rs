//! What happens in each conversation: what its user says, and when its agent is paused.

use rand::Rng;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

use super::Shape;

/// What a message asks for; the models' script goes by it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// An answer.
    #[default]
    Plain,
    /// A tool that may be repeated.
    Often,
    /// A tool that must not.
    Once,
    /// A tool in the background, done by the harness.
    Errand,
    /// Another agent.
    Ask,
    /// Tools until the turn may call none.
    Limit,
    /// An answer, at the second attempt now and then.
    Flaky,
    /// The model refuses.
    Doomed,
}

impl Word {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Often => "often",
            Self::Once => "once",
            Self::Errand => "errand",
            Self::Ask => "ask",
            Self::Limit => "limit",
            Self::Flaky => "flaky",
            Self::Doomed => "doomed",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TalkAct {
    /// With `again` it is sent once more, and something else under its id.
    Say {
        word: Word,
        again: bool,
    },
    Pause,
    Resume,
}

#[derive(Debug, Clone, Serialize)]
pub struct TalkDeed {
    pub after_ms: u64,
    pub act: TalkAct,
}

#[derive(Debug, Clone, Serialize)]
pub struct TalkStory {
    pub id: String,
    pub start_ms: u64,
    /// Whether a live follower watches it.
    pub followed: bool,
    pub deeds: Vec<TalkDeed>,
}

/// Of the run, in which conversations begin.
const BEGINNING: f64 = 0.7;

pub fn draw(shape: &Shape) -> Vec<TalkStory> {
    let mut dice = shape.dice(6);
    let beginning = (shape.seconds as f64 * BEGINNING * 1_000.0) as u64;
    (0..shape.conversations)
        .map(|n| {
            let start_ms = dice.random_range(0..beginning.max(1));
            let deeds = deeds(&mut dice);
            TalkStory { id: format!("talk-{n:04}"), start_ms, followed: n.is_multiple_of(3), deeds }
        })
        .collect()
}

fn deeds(dice: &mut StdRng) -> Vec<TalkDeed> {
    let mut deeds = Vec::new();
    for _ in 0..dice.random_range(3..8) {
        deeds.push(say(dice));
        if dice.random_bool(0.15) {
            deeds.push(TalkDeed { after_ms: dice.random_range(0..800), act: TalkAct::Pause });
            deeds.push(say(dice));
            deeds.push(TalkDeed { after_ms: dice.random_range(500..3_000), act: TalkAct::Resume });
        }
    }
    deeds
}

fn say(dice: &mut StdRng) -> TalkDeed {
    let word = match dice.random_range(0..100) {
        0..20 => Word::Plain,
        20..38 => Word::Often,
        38..56 => Word::Once,
        56..71 => Word::Errand,
        71..83 => Word::Ask,
        83..91 => Word::Limit,
        91..97 => Word::Flaky,
        _ => Word::Doomed,
    };
    // Often before the turn before has ended.
    let after_ms = dice.random_range(0..5_000);
    TalkDeed { after_ms, act: TalkAct::Say { word, again: dice.random_bool(0.2) } }
}
