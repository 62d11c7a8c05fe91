//! `dead redrive --all`, `dead drop --all`: one walk over all of them, told of on the way.

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use indicatif::{ProgressBar, ProgressStyle};
use schemas::api::DeadSweepView;
use serde_json::{Value, json};

use crate::client::Client;
use crate::output::{Output, facts};

/// A line has a few numbers, and at most a reason.
const LINE_BYTES_MAX: usize = 64 << 10;

/// A round is removed once all of it was taken.
const IN_DOUBT: &str = " (up to 256 of them may have been sent on already, and come twice)";

pub struct Sweep {
    pub verb: &'static str,
    pub reason: Option<String>,
}

impl Sweep {
    pub async fn run(self, client: &Client, out: Output) -> Result<()> {
        let path = format!("/api/dead/{}", self.verb);
        let mut last = None;
        let walked = follow(client, &path, &self.body(), &mut last).await;
        // How far it came counts, however it ended.
        let Some(last) = last else {
            walked?;
            bail!("the answer is empty");
        };
        out.show(&last, |last| {
            facts([
                ("done", last.done.clone()),
                ("letters", last.letters.to_string()),
                ("with other reasons", last.kept.to_string()),
                ("whose queue is gone", last.stuck.to_string()),
            ])
        })?;
        walked?;
        if let Some(error) = &last.error {
            bail!("{error}; {} were {} before that; run it again for the others{IN_DOUBT}", last.letters, last.done);
        }
        if !last.finished {
            bail!(
                "the answer broke off: at least {} were {}; run it again for the others{IN_DOUBT}",
                last.letters,
                last.done
            );
        }
        Ok(())
    }

    fn body(&self) -> Value {
        match &self.reason {
            Some(reason) => json!({"all": true, "reason": reason}),
            None => json!({"all": true}),
        }
    }
}

/// Reads the answer to its end, and keeps the newest line.
async fn follow(client: &Client, path: &str, body: &Value, last: &mut Option<DeadSweepView>) -> Result<()> {
    let mut pieces = client.post_long(path, body).await?.bytes_stream();
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
        bar.set_style(style);
    }
    let mut text = Vec::new();
    // A connection that is lost ends it like the end of the answer: what counts is the last line.
    while let Some(Ok(piece)) = pieces.next().await {
        text.extend_from_slice(&piece);
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = text.drain(..=end).collect();
            let told: DeadSweepView =
                serde_json::from_slice(&line).context("the answer is not what this version expects")?;
            bar.set_message(format!("{} {}", told.letters, told.done));
            bar.tick();
            *last = Some(told);
        }
        if text.len() > LINE_BYTES_MAX {
            bail!("the answer is not what this version expects");
        }
    }
    bar.finish_and_clear();
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\nconnection: close\r\n\r\n";

    /// What comes of an answer in these pieces.
    async fn sweep(pieces: Vec<&'static str>) -> Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let read = socket.read(&mut request).await.unwrap();
            assert!(request[..read].starts_with(b"POST /api/dead/drop "));
            socket.write_all(HEAD.as_bytes()).await.unwrap();
            for piece in pieces {
                socket.write_all(piece.as_bytes()).await.unwrap();
                socket.flush().await.unwrap();
            }
            // The client has the last word: data that nobody has read would end it with a reset.
            socket.shutdown().await.unwrap();
            let _ = socket.read(&mut request).await;
        });
        let client = Client::new(&base, "sf_x").unwrap();
        Sweep { verb: "drop", reason: None }.run(&client, Output { json: true }).await
    }

    #[tokio::test]
    async fn the_last_line_counts_however_it_was_cut() {
        let whole = sweep(vec![
            "{\"done\":\"dropped\",\"letters\":1,\"kept\":0,\"stuck\":0,\"fin",
            "ished\":false}\n{\"done\":\"dropped\",\"letters\":2,\"kept\":0,\"stuck\":0,\"finished\":true}\n",
        ]);
        whole.await.unwrap();
    }

    #[tokio::test]
    async fn an_answer_without_an_end_is_a_failure_that_tells_how_far_it_came() {
        let line = "{\"done\":\"dropped\",\"letters\":7,\"kept\":0,\"stuck\":0,\"finished\":false}\n";
        let told = sweep(vec![line]).await.unwrap_err().to_string();
        assert!(told.contains("broke off") && told.contains("7 were dropped"), "{told}");
        let error =
            "{\"done\":\"dropped\",\"letters\":7,\"kept\":0,\"stuck\":0,\"finished\":false,\"error\":\"away\"}\n";
        let told = sweep(vec![error]).await.unwrap_err().to_string();
        assert!(told.contains("away; 7 were dropped"), "{told}");
        assert!(sweep(vec!["nonsense\n"]).await.is_err());
    }
}
