//! What ends with a token.

use std::time::Duration;

use reqwest::Response;
use serde_json::{Value, json};

use crate::harness::{Harness, WAIT_MAX, wait};

/// Five seconds are promised; a busy machine gets more.
const END_MAX: Duration = Duration::from_secs(15);

/// The events of the session, from the first one on; a new token is known within a second.
async fn open(fleet: &Harness, token: &str) -> Response {
    // The harness's own client gives no request more time than a test may wait.
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let url = format!("{}/api/sessions/watched/events", fleet.base_url);
    wait("the stream is open", || async {
        let response = http.get(&url).bearer_auth(token).send().await.ok()?;
        (response.status().as_u16() == 200).then_some(response)
    })
    .await
}

/// Reads until an event with a higher offset has come.
async fn read_beyond(stream: &mut Response, offset: u64) {
    let read = async {
        let mut text = String::new();
        loop {
            let chunk = stream.chunk().await.expect("a connection that stays").expect("no end");
            text.push_str(&String::from_utf8_lossy(&chunk));
            let ids = text.lines().filter_map(|line| line.strip_prefix("id:")?.trim().parse::<u64>().ok());
            if ids.max().is_some_and(|id| id > offset) {
                return;
            }
        }
    };
    tokio::time::timeout(WAIT_MAX, read).await.expect("further events");
}

#[tokio::test]
async fn a_revoked_token_loses_its_open_streams_and_others_keep_theirs() {
    let fleet = Harness::start().await;
    fleet.create("watched", json!({ "moniker": "count", "loop_interval_ms": 200 })).await;
    fleet.wait_status("watched", "running").await;
    let (ok, out, err) = fleet.cli(&["token", "create", "guest", "--scopes", "read", "--json"]).await;
    assert!(ok, "{err}");
    let token = serde_json::from_str::<Value>(&out).expect("JSON")["token"].as_str().expect("a token").to_owned();
    let (mut ending, mut staying) = (open(&fleet, &token).await, open(&fleet, &fleet.token).await);
    for stream in [&mut ending, &mut staying] {
        read_beyond(stream, 1).await;
    }
    let (ok, _, err) = fleet.cli(&["token", "revoke", "guest"]).await;
    assert!(ok, "{err}");
    let to_the_end = async { while ending.chunk().await.expect("a clean end").is_some() {} };
    tokio::time::timeout(END_MAX, to_the_end).await.expect("the stream ends with its token");
    let last = fleet.session("watched").await["last_offset"].as_u64().expect("an offset");
    read_beyond(&mut staying, last).await;
}
