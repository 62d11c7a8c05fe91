//! The socket itself: slow clients are sent away, a stop waits for open requests, and who comes too early is
//! told so.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use host::tasks::Tasks;
use schemas::limits::HEADER_READ_MS_MAX;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use crate::{Front, serve};

const LIMIT: Duration = Duration::from_millis(HEADER_READ_MS_MAX);

/// A router of one quick and one slow route, behind the real socket. Tells when the slow one begins.
async fn start(tasks: &Tasks) -> (SocketAddr, Arc<Notify>) {
    let began = Arc::new(Notify::new());
    let begins = began.clone();
    let slow = get(move || async move {
        begins.notify_one();
        tokio::time::sleep(2 * LIMIT).await;
        "done"
    });
    let app = Router::new().route("/now", get(|| async { "now" })).route("/slow", slow);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    serve(listener, app, tasks);
    (address, began)
}

/// A paused clock runs ahead whenever all wait for the network; while this is held, it stands, and
/// moves only when it is told to.
fn hold_the_clock() -> oneshot::Sender<()> {
    let (release, held) = oneshot::channel();
    tokio::task::spawn_blocking(move || held.blocking_recv());
    release
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
    let (address, _) = start(&tasks).await;
    // Nothing at all; then a head that grows by a byte a second.
    for bytes in [&b""[..], b"GET /now HTTP/1.1\r\nx-slow: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"] {
        let stood = drip(address, bytes).await;
        assert!((LIMIT..LIMIT + Duration::from_secs(5)).contains(&stood), "{stood:?} of {LIMIT:?}");
    }
}

async fn ask(stream: &mut TcpStream, rest: &[u8]) -> String {
    stream.write_all(rest).await.unwrap();
    let mut answer = [0; 4096];
    let read = stream.read(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer[..read]).into_owned()
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stays_within_the_bound_is_answered() {
    let tasks = Tasks::new();
    let clock = hold_the_clock();
    let mut stream = TcpStream::connect(start(&tasks).await.0).await.unwrap();
    let first = ask(&mut stream, b"GET /now HTTP/1.1\r\nhost: here\r\n\r\n").await;
    assert!(first.starts_with("HTTP/1.1 200") && first.ends_with("now"), "{first}");
    // The bound is on each head, not on the connection: several times it in all.
    for _ in 0..3 {
        tokio::time::advance(LIMIT / 3).await;
        stream.write_all(b"GET /now HTTP/1.1\r\n").await.unwrap();
        tokio::time::advance(LIMIT / 3).await;
        let answer = ask(&mut stream, b"host: here\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("now"), "{answer}");
    }
    drop(clock);
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_open_requests_and_lets_nobody_else_in() {
    let tasks = Tasks::new();
    let clock = hold_the_clock();
    let (address, began) = start(&tasks).await;
    let mut idle = TcpStream::connect(address).await.unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /slow HTTP/1.1\r\nhost: here\r\n\r\n").await.unwrap();
    began.notified().await;
    let stopping = tokio::spawn({
        let tasks = tasks.clone();
        async move { tasks.shut_down(4 * LIMIT).await }
    });
    assert_eq!(idle.read(&mut [0; 8]).await.unwrap_or(0), 0, "who asks for nothing is sent away");
    assert!(TcpStream::connect(address).await.is_err(), "nobody else is let in");
    // Longer than a head may take: a request that is being answered has no such bound.
    tokio::time::advance(2 * LIMIT).await;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("done"), "{answer}");
    assert!(stopping.await.unwrap(), "the stop is done with the last request");
    drop(clock);
}

/// All that is answered on a connection of its own, until the other side closes it.
async fn answer(address: SocketAddr, head: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn who_comes_before_all_is_ready_is_told_why_and_then_served() {
    let tasks = Tasks::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut front = Front::open(listener, &tasks);
    let refused = async |head: &'static str, why: &'static str| {
        let told = answer(address, head).await;
        assert!(told.starts_with("HTTP/1.1 503") && told.contains("\r\nretry-after: 1\r\n"), "{told}");
        assert!(told.contains("application/problem+json") && told.contains(why), "{told}");
    };
    let health = "GET /health HTTP/1.1\r\nhost: here\r\n\r\n";
    refused(health, "this process is starting").await;
    front.waits_for("database: nobody listens");
    refused(health, "this process waits for database: nobody listens").await;
    refused("POST /api/actions HTTP/1.1\r\nhost: here\r\ncontent-length: 0\r\n\r\n", "waits for database").await;
    front.lead_to(Router::new().route("/health", get(|| async { "well" })));
    refused(health, "waits for database").await;
    front.let_in();
    let served = answer(address, "GET /health HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n").await;
    assert!(served.starts_with("HTTP/1.1 200") && served.ends_with("well"), "{served}");
    assert!(tasks.shut_down(LIMIT).await);
}

#[tokio::test]
async fn who_still_sends_when_the_answer_comes_reads_it() {
    let tasks = Tasks::new();
    let (address, _) = start(&tasks).await;
    let body = vec![b'x'; 64 << 10];
    let head = format!("GET /now HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", 128 * body.len());
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..128 {
        stream.write_all(&body).await.expect("the client is heard out");
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("nothing tears the answer down");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("now"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn who_never_stops_sending_is_left() {
    let tasks = Tasks::new();
    let clock = hold_the_clock();
    let mut stream = TcpStream::connect(start(&tasks).await.0).await.unwrap();
    let head = b"GET /now HTTP/1.1\r\nhost: x\r\ncontent-length: 9000000\r\n\r\n";
    assert!(ask(&mut stream, head).await.starts_with("HTTP/1.1 200"));
    stream.write_all(b"still heard").await.unwrap();
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0, "we have said goodbye");
    stream.write_all(b"still heard").await.unwrap();
    tokio::time::advance(Duration::from_secs(10)).await;
    for _ in 0..100_000 {
        if stream.write_all(b"x").await.is_err() {
            drop(clock);
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("still heard");
}
