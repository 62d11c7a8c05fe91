//! Bodies with a maximum.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use domain::retry::SILENCE_MS;
use futures::{Stream, StreamExt};
use reqwest::Response;

use super::classify;
use crate::call::{CallError, Class};

/// How long, and how much, is read behind an end mark.
const DRAIN: Duration = Duration::from_secs(5);
const DRAIN_BYTES_MAX: usize = 64 << 10;

/// A body, cut at `max`: the second value says whether something was left out.
///
/// # Errors
/// When the body breaks off.
pub async fn read_up_to(response: Response, max: usize, place: &str) -> Result<(BytesMut, bool), CallError> {
    let mut stream = response.bytes_stream();
    let mut body = BytesMut::new();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|error| as_cut(classify(error, place)))?;
        let room = max - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            return Ok((body, true));
        }
    }
    Ok((body, false))
}

/// A whole body of at most `max` bytes.
///
/// # Errors
/// When it is larger or breaks off.
pub async fn read(response: Response, max: usize, place: &str) -> Result<BytesMut, CallError> {
    match read_up_to(response, max, place).await? {
        (body, false) => Ok(body),
        (_, true) => Err(CallError::new(
            Class::Invalid,
            format!("{place}: the answer has more than {max} bytes, which is too much"),
        )),
    }
}

/// The next piece of a stream; `None` at its end. Who says nothing for too long has gone, whatever its connection
/// looks like.
///
/// # Errors
/// When the stream breaks off.
pub async fn next<S>(stream: &mut S, place: &str) -> Result<Option<Bytes>, CallError>
where
    S: Stream<Item = reqwest::Result<Bytes>> + Unpin,
{
    let Ok(piece) = tokio::time::timeout(Duration::from_millis(SILENCE_MS), stream.next()).await else {
        let what = format!("{place}: the answer broke off (nothing came for {} s)", SILENCE_MS / 1_000);
        return Err(CallError::new(Class::Cut, what));
    };
    piece.transpose().map_err(|error| as_cut(classify(error, place)))
}

/// Reads what follows the end mark of a stream, which is the end of its transfer and little else: a connection that is
/// left before it cannot be used again, and the next call would wait for another one.
pub fn drain<S>(mut stream: S)
where
    S: Stream<Item = reqwest::Result<Bytes>> + Unpin + Send + 'static,
{
    tokio::spawn(tokio::time::timeout(DRAIN, async move {
        let mut left = DRAIN_BYTES_MAX;
        while let Some(Ok(piece)) = stream.next().await
            && left > piece.len()
        {
            left -= piece.len();
        }
    }));
}

/// Past the head of an answer, a broken connection is a broken answer.
pub fn as_cut(error: CallError) -> CallError {
    let class = if error.class == Class::Network { Class::Cut } else { error.class };
    CallError { class, ..error }
}

/// The start of a body for a message, on one line.
pub fn beginning(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(600)]);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(200).collect()
}
