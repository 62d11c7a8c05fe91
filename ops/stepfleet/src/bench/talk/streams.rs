//! How soon a piece of a model's reply is passed on: of one reply, and of many at once.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::future::{try_join, try_join_all};
use serde_json::json;

use super::super::rig::percentile_ms;
use super::model::PROFILE;
use super::place::Place;
use super::reader::Reader;
use super::{SAY, open, say};

/// A reply that is watched alone: its pieces, and the time between two of them.
const PIECES: usize = 40;
const GAP: Duration = Duration::from_millis(25);
/// Of many at once.
const GAP_AMONG_MANY: Duration = Duration::from_millis(500);

/// From the moment a model's server has sent a piece until a client has it: alone, and among many.
pub async fn streams(place: Place, many: usize) -> Result<()> {
    measure(&place, 1, GAP).await?;
    measure(&place, many, GAP_AMONG_MANY).await?;
    place.stop().await;
    Ok(())
}

async fn measure(place: &Place, streams: usize, gap: Duration) -> Result<()> {
    place.model.pace(PIECES, gap);
    let ids: Vec<String> = (0..streams).map(|n| format!("{}-{streams}-{n}", place.run)).collect();
    // In portions: opening them is not what is measured.
    let mut readers = Vec::with_capacity(streams);
    for portion in ids.chunks(50) {
        let opened = portion.iter().map(|id| async {
            open(&place.client, id, &json!({"model_profile": PROFILE})).await?;
            Reader::open(&place.client, id).await
        });
        readers.extend(try_join_all(opened).await?);
    }
    let started = Instant::now();
    let heard = readers.iter_mut().zip(&ids).map(|(reader, id)| async {
        // Listens meanwhile: a piece that waits for the client's other answer would count as late.
        let ((), (heard, _)) = try_join(say(&place.client, id, SAY), reader.turn()).await?;
        anyhow::Ok(heard)
    });
    let heard = try_join_all(heard).await?;
    let took = started.elapsed();
    let (mut first, mut all) = (Vec::new(), Vec::new());
    for one in &heard {
        let (told, stamps) = (one.pieces.concat(), one.message.split_whitespace().count());
        ensure!(stamps == PIECES, "a message of {stamps} pieces in place of {PIECES}");
        ensure!(one.lags > 0 || told == one.message, "pieces that are not the message: {told:?}");
        let delays = one.delays(&place.model)?;
        // After a gap, what is left does not begin with the first piece.
        if one.lags == 0 {
            first.extend(delays.first().copied());
        }
        all.extend(delays);
    }
    first.sort_unstable();
    all.sort_unstable();
    let told = all.len();
    place.report(json!({
        "metric": "piece_forwarded_ms", "streams": streams, "unit": "ms", "value": percentile_ms(&first, 50),
        "first_p50": percentile_ms(&first, 50), "first_p99": percentile_ms(&first, 99),
        "p50": percentile_ms(&all, 50), "p99": percentile_ms(&all, 99),
        "pieces": told, "pieces_lost": streams * PIECES - told, "messages": heard.len(), "seconds": took.as_secs_f64(),
    }))
}
