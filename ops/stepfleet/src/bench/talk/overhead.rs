//! What a move of a conversation costs besides its model. A move is one reply of the model, with all
//! that is done for it: a turn without tools has one, a turn with a call of a tool has two.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::future::try_join;
use serde_json::json;

use super::super::rig::percentile_ms;
use super::model::{Call, LOOK, PROFILE};
use super::place::Place;
use super::reader::Reader;
use super::{SAY, open, say};

/// Turns that are not timed.
const WARM_UP: usize = 20;
/// Between an answer and what is said next: the work that follows an answer is done by then.
const PAUSE: Duration = Duration::from_millis(30);

/// The times of the turns of one kind.
#[derive(Default)]
struct Times {
    /// Of a move, besides the model.
    moves: Vec<Duration>,
    /// From the request that says something to the first request to the model.
    before: Vec<Duration>,
    /// From the model's last answer to the end of the turn.
    after: Vec<Duration>,
}

impl Times {
    fn add(&mut self, started: Instant, ended: Instant, calls: &[Call]) {
        let (Some(first), Some(last)) = (calls.first(), calls.last()) else { return };
        self.moves.push(besides(started, ended, calls) / calls.len() as u32);
        self.before.push(first.came.duration_since(started));
        self.after.push(ended.duration_since(last.answered));
    }

    fn sort(&mut self) {
        for times in [&mut self.moves, &mut self.before, &mut self.after] {
            times.sort_unstable();
        }
    }
}

/// What a turn took without what its model took. The calls of a turn come one after the other.
fn besides(started: Instant, ended: Instant, calls: &[Call]) -> Duration {
    let model: Duration = calls.iter().map(|call| call.answered.duration_since(call.came)).sum();
    ended.duration_since(started).saturating_sub(model)
}

/// From the request that says something to the frame with the end of its turn, less the times that the
/// model's server had the requests.
pub async fn overhead(place: Place, turns: usize) -> Result<()> {
    let id = format!("{}-overhead", place.run);
    place.model.pace(1, Duration::ZERO);
    open(&place.client, &id, &json!({"model_profile": PROFILE})).await?;
    let mut reader = Reader::open(&place.client, &id).await?;
    for (kind, text, moves) in [("one move", SAY, 1), ("a call of a tool between two moves", LOOK, 2)] {
        let mut times = Times::default();
        for n in 0..WARM_UP + turns {
            tokio::time::sleep(PAUSE).await;
            let started = Instant::now();
            let ((), (_, ended)) = try_join(say(&place.client, &id, text), reader.turn()).await?;
            let calls = place.model.calls().await;
            ensure!(calls.len() == moves, "{kind}: {} calls of the model in a turn", calls.len());
            if n >= WARM_UP {
                times.add(started, ended, &calls);
            }
        }
        times.sort();
        place.report(json!({
            "metric": "overhead_per_move_ms", "turn": kind, "unit": "ms", "n": turns,
            "value": percentile_ms(&times.moves, 50),
            "p50": percentile_ms(&times.moves, 50), "p99": percentile_ms(&times.moves, 99),
            "before_model_p50": percentile_ms(&times.before, 50), "after_model_p50": percentile_ms(&times.after, 50),
        }))?;
    }
    place.stop().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_model_takes_is_not_ours() {
        let started = Instant::now();
        let at = |ms| started + Duration::from_millis(ms);
        let calls = [Call { came: at(4), answered: at(104) }, Call { came: at(110), answered: at(310) }];
        assert_eq!(besides(started, at(316), &calls), Duration::from_millis(16));
        let mut times = Times::default();
        times.add(started, at(316), &calls);
        let ms = Duration::from_millis;
        assert_eq!((&times.moves[..], &times.before[..], &times.after[..]), (&[ms(8)][..], &[ms(4)][..], &[ms(6)][..]));
        // Nothing can be told of a turn that asked no model.
        times.add(started, at(1), &[]);
        assert_eq!(times.moves.len(), 1);
    }
}
