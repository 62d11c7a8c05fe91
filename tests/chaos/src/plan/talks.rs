//! What happens in each conversation: what its user says, when its agent is paused or given guidance, and
//! which of its turns are cancelled.

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
    /// A tool that a person is asked about first.
    Confirm,
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
            Self::Confirm => "confirm",
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
    /// Ends the turn of what was said last.
    Cancel,
    /// Guidance, which a model that is being asked is cut short for if it comes `now`.
    Guide {
        now: bool,
    },
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
/// Of all conversations, those in which guidance is given: what the script has for a message does not hold
/// there.
const GUIDED: f64 = 0.25;

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
    let is_guided = dice.random_bool(GUIDED);
    for _ in 0..dice.random_range(3..8) {
        deeds.push(say(dice));
        if is_guided && dice.random_bool(0.5) {
            let act = TalkAct::Guide { now: dice.random_bool(0.5) };
            deeds.push(TalkDeed { after_ms: dice.random_range(0..1_500), act });
        }
        if dice.random_bool(0.12) {
            deeds.push(TalkDeed { after_ms: dice.random_range(0..1_500), act: TalkAct::Cancel });
        }
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
        0..18 => Word::Plain,
        18..34 => Word::Often,
        34..50 => Word::Once,
        50..63 => Word::Errand,
        63..74 => Word::Ask,
        74..83 => Word::Confirm,
        83..91 => Word::Limit,
        91..97 => Word::Flaky,
        _ => Word::Doomed,
    };
    // Often before the turn before has ended.
    let after_ms = dice.random_range(0..5_000);
    TalkDeed { after_ms, act: TalkAct::Say { word, again: dice.random_bool(0.2) } }
}
