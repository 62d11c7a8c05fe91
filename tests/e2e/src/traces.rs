//! Traces, as a collector of OpenTelemetry gets them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::json;

use crate::harness::{Harness, wait};

/// The ids of action `a1` of the default namespace: XXH3 of `default/a1`, of 128 and of 64 bits.
const TRACE: u128 = 0xa8ca_887f_b236_acc1_f03b_29c9_c67f_3df9;
const ROOT: u64 = 0x83a4_2994_81c7_fe4c;

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
    let body = json!({ "type": "create", "action_id": "a1", "session_id": "s1",
        "payload": { "moniker": "count", "config": { "until": 2 } } });
    let answer = fleet.try_request(reqwest::Method::POST, "/api/actions", Some(&body)).await.expect("an answer");
    assert_eq!(answer.status.as_u16(), 202, "{answer:?}");
    fleet.wait_status("s1", "completed").await;
    // In protobuf, names and ids stand as they are.
    let (trace, root) = (TRACE.to_be_bytes(), ROOT.to_be_bytes());
    wait("both ends of the trace", || async {
        let got = got.lock().expect("no panic").clone();
        let count = |bytes: &[u8]| got.windows(bytes.len()).filter(|window| *window == bytes).count();
        // No delivery, if the shard's owner found the action in the ledger before its lane was open.
        let named = ["accept action", "apply action"].map(|name| count(name.as_bytes()));
        // The root's own id, and as the parent of another.
        (named.iter().all(|n| *n >= 1) && count(&trace) >= 2 && count(&root) >= 2).then_some(())
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
