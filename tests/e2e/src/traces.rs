//! Traces, as a collector of OpenTelemetry gets them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::json;

use crate::harness::{Harness, wait};

#[tokio::test]
async fn the_stages_of_an_action_are_spans_of_one_trace() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    let got: Arc<Mutex<Vec<u8>>> = Arc::default();
    let bodies = got.clone();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let bodies = bodies.clone();
            std::thread::spawn(move || collect(connection, &bodies));
        }
    });
    let mut fleet = Harness::start_in(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)]).await;
    let body = json!({ "type": "create", "action_id": "traced", "session_id": "s1",
        "payload": { "moniker": "count", "config": { "until": 2 } } });
    let answer = fleet.try_request(reqwest::Method::POST, "/api/actions", Some(&body)).await.expect("an answer");
    assert_eq!(answer.status.as_u16(), 202, "{answer:?}");
    fleet.wait_status("s1", "completed").await;
    let ids = domain::trace::trace_ids(&"default".parse().unwrap(), &"traced".parse().unwrap());
    // In protobuf, names and ids stand as they are.
    let (trace, root) = (ids.trace.to_be_bytes(), ids.root.to_be_bytes());
    wait("three spans of the trace", || async {
        let got = got.lock().expect("no panic").clone();
        let count = |bytes: &[u8]| got.windows(bytes.len()).filter(|window| *window == bytes).count();
        let named = ["accept action", "deliver action", "apply action"].map(|name| count(name.as_bytes()));
        // The root's own id, and twice as the parent of another.
        (named.iter().all(|n| *n >= 1) && count(&trace) >= 3 && count(&root) >= 3).then_some(())
    })
    .await;
    assert!(fleet.stop().await.success());
}

/// Reads requests until the other side closes, and keeps their bodies.
fn collect(connection: TcpStream, bodies: &Mutex<Vec<u8>>) {
    let mut answers = connection.try_clone().expect("a second handle");
    let mut requests = BufReader::new(connection);
    loop {
        let (mut length, mut line) = (0, String::new());
        loop {
            line.clear();
            if requests.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().expect("a length");
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        requests.read_exact(&mut body).expect("a whole body");
        bodies.lock().expect("no panic").extend(body);
        answers.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").expect("an answer");
    }
}
