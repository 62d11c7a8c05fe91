//! The socket itself: slow clients are sent away, and a stop waits for open requests.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use host::tasks::Tasks;
use schemas::limits::HEADER_READ_MS_MAX;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use crate::serve;

const LIMIT: Duration = Duration::from_millis(HEADER_READ_MS_MAX);

/// A router of one slow route, behind the real socket.
async fn start(tasks: &Tasks) -> SocketAddr {
    let slow = get(|| async {
        tokio::time::sleep(2 * LIMIT).await;
        "done"
    });
    let app = Router::new().route("/now", get(|| async { "now" })).route("/slow", slow);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    serve(listener, app, tasks);
    address
}

/// Sends `bytes` one by one, a second apart, until the connection is closed; returns how long it stood.
async fn drip(address: SocketAddr, bytes: &[u8]) -> Duration {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let started = Instant::now();
    let mut bytes = bytes.iter().cycle();
    let mut answer = [0; 64];
    while started.elapsed() < 3 * LIMIT {
        if let Some(byte) = bytes.next()
            && stream.write_all(&[*byte]).await.is_err()
        {
            break;
        }
        if let Ok(Ok(0) | Err(_)) = tokio::time::timeout(Duration::from_secs(1), stream.read(&mut answer)).await {
            break;
        }
    }
    started.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_head_that_never_ends_is_cut_off() {
    let tasks = Tasks::new();
    let address = start(&tasks).await;
    // Nothing at all; then a head that grows by a byte a second.
    for bytes in [&b""[..], b"GET /now HTTP/1.1\r\nx-slow: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"] {
        let stood = drip(address, bytes).await;
        assert!((LIMIT..LIMIT + Duration::from_secs(5)).contains(&stood), "{stood:?} of {LIMIT:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_half_of_the_time_is_answered() {
    let tasks = Tasks::new();
    let mut stream = TcpStream::connect(start(&tasks).await).await.unwrap();
    // While this waits, the paused clock does not run ahead of the sockets by itself.
    let (done, held) = std::sync::mpsc::channel::<()>();
    let hold = tokio::task::spawn_blocking(move || held.recv().is_err());
    for _ in 0..2 {
        // Twice on one connection: the bound is on each head, not on the connection.
        stream.write_all(b"GET /now HTTP/1.1\r\n").await.unwrap();
        tokio::time::advance(LIMIT / 2).await;
        stream.write_all(b"host: here\r\n\r\n").await.unwrap();
        let mut answer = [0; 4096];
        let read = stream.read(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("now"), "{answer}");
    }
    drop(done);
    assert!(hold.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_open_requests_and_lets_nobody_else_in() {
    let tasks = Tasks::new();
    let address = start(&tasks).await;
    let mut idle = TcpStream::connect(address).await.unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    // Longer than a head may take: a request that is being answered has no such bound.
    stream.write_all(b"GET /slow HTTP/1.1\r\nhost: here\r\n\r\n").await.unwrap();
    tokio::time::sleep(LIMIT / 2).await;
    let stopping = tokio::spawn({
        let tasks = tasks.clone();
        async move { tasks.shut_down(4 * LIMIT).await }
    });
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("done"), "{answer}");
    assert!(stopping.await.unwrap(), "the stop is done with the last request");
    assert_eq!(idle.read(&mut [0; 8]).await.unwrap_or(0), 0, "who asks for nothing is sent away");
    assert!(TcpStream::connect(address).await.is_err());
}
