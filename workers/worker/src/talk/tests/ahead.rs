//! What came before a turn is read ahead of who its agent is, as far back as the last turn has looked.

use schemas::conversation::{Turn, TurnStatus};
use testkit::contract::words::turn;
use testkit::dice::Dice;
use testkit::unreliable::{FaultRates, Trace};

use super::*;

/// A conversation through faults of its own.
struct Ahead {
    place: Place,
    faults: Faults,
    trace: Trace,
    deps: TalkDeps,
}

impl Ahead {
    /// `messages` were said, each in a turn of its own.
    async fn new(messages: u32) -> Self {
        let place = Place::new().await;
        let trace = Trace::new();
        let faults = Faults::new("w", Dice::new(0), FaultRates::NONE, trace.clone());
        let deps = place.deps(Arc::new(Unreliable::new(place.ports.conversations.clone(), faults.clone())));
        place.say((1..=messages).map(said).collect()).await;
        let turns = (1..=messages).map(|n| Turn {
            status: TurnStatus::Completed,
            ..turn(&format!("before{n}"), "c1", "s1", 1_000 + i64::from(n))
        });
        place.ports.say(&worker("w1"), "s1", Talk { turns: turns.collect(), ..Talk::default() }).await;
        Self { place, faults, trace, deps }
    }

    /// What the turn that answers the `n`th message is shown, and how many turns it knows of, if it goes back so far.
    async fn shown(&self, n: u32, recent: u32) -> (Vec<String>, usize) {
        let settings = json!({"recent_turns_limit": recent, "input_message_id": format!("m{n}")});
        let (namespace, talk) = (Namespace::default_ns(), talk(TalkWork::Extract));
        let outcome = assemble::assemble(&self.deps, &namespace, &talk, &Json::of(&settings), &[]).await;
        let context = outcome.assembly().unwrap_or_else(|failure| panic!("{failure:?}"));
        let texts = context.request.messages.iter().skip(1).map(|message| message.plain_text());
        (texts.collect(), context.recent_turns.len())
    }

    /// How often turns were asked for: each look back does it twice.
    fn looks(&self) -> usize {
        let lines = self.trace.tail(usize::MAX);
        lines.iter().filter(|line| line.ends_with(" conversations.turns")).count()
    }
}

fn text(n: u32) -> String {
    format!("said {n}")
}

fn said(n: u32) -> LogRecord {
    let id = format!("m{n}");
    let body = json!({"message_id": id, "sender_type": "user", "role": "user", "event_type": "utterance",
                      "text": text(n)});
    LogRecord { body: Json::of(&body), ..record(LogKind::Message, &id) }
}

#[tokio::test(start_paused = true)]
async fn what_is_read_ahead_and_does_not_come_is_read_again_after_five_seconds() {
    for (lost, waited_ms) in [(None, 0), (Some("conversations.log"), 5_000), (Some("conversations.turns"), 5_000)] {
        let talk = Ahead::new(5).await;
        talk.shown(5, 2).await;
        talk.place.say(vec![said(6)]).await;
        if let Some(lost) = lost {
            talk.faults.hang(lost);
        }
        let begun = Instant::now();
        let shown = tokio::time::timeout(Duration::from_secs(60), talk.shown(6, 2)).await;
        let expected: (Vec<String>, usize) = ((4..=6).map(text).collect(), 2);
        assert_eq!(shown.expect("it does not hold up the turn"), expected, "{lost:?}");
        assert_eq!(begun.elapsed().as_millis(), waited_ms, "{lost:?}");
    }
}

/// However far back it lies, and whether or not the end of the log is known.
#[tokio::test(start_paused = true)]
async fn what_a_message_replies_to_is_quoted_from_before_all_that_the_turn_looks_at() {
    let talk = Ahead::new(9).await;
    let mut body = said(10).body.to_value();
    body["reply_to_message_id"] = json!("m1");
    talk.place.say(vec![LogRecord { body: Json::of(&body), ..said(10) }]).await;
    for _ in 0..2 {
        let (shown, _) = talk.shown(10, 2).await;
        assert_eq!(shown, ["said 8", "said 9", "[In reply to: said 1]\nsaid 10"]);
    }
}

/// Agents of one conversation, or the next version of one agent.
#[tokio::test(start_paused = true)]
async fn what_was_read_ahead_for_another_number_of_turns_is_read_again() {
    let talk = Ahead::new(9).await;
    let mut looks = 0;
    for (recent, read) in [(2, 1), (2, 1), (4, 2), (4, 1), (1, 2), (0, 2), (0, 1)] {
        let expected: (Vec<String>, usize) = ((9 - recent..=9).map(text).collect(), recent as usize);
        assert_eq!(talk.shown(9, recent).await, expected, "back to {recent}");
        looks += 2 * read;
        assert_eq!(talk.looks(), looks, "back to {recent}");
    }
}
