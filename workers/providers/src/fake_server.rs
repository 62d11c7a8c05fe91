//! A tiny HTTP server for tests: answers each connection with the next reply, the last one for
//! ever, and keeps the requests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[derive(Debug, Clone)]
pub enum Say {
    /// Status, further header lines, body.
    Answer(u16, &'static str, String),
    /// A head that promises more than comes.
    Cut,
    /// An event stream: pieces, each after a wait in milliseconds, and whether it ends orderly.
    Stream(Vec<(u64, String)>, bool),
    /// Nothing, with the connection held open.
    Silence,
    /// Closes the connection before any answer.
    HangUp,
}

#[derive(Debug, Clone)]
pub struct Got {
    /// Request line and headers, in lower case.
    pub head: String,
    pub body: String,
}

pub struct FakeServer {
    /// `http://127.0.0.1:<port>`.
    pub url: String,
    got: Arc<Mutex<Vec<Got>>>,
    connections: Arc<AtomicUsize>,
}

impl FakeServer {
    pub async fn start(replies: Vec<Say>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let got = Arc::new(Mutex::new(Vec::new()));
        let keep = Arc::clone(&got);
        tokio::spawn(async move {
            let mut held = Vec::new();
            for number in 0usize.. {
                let Ok((mut stream, _)) = listener.accept().await else { return };
                let request = read(&mut stream).await;
                keep.lock().expect("unpoisoned").push(request);
                let reply = replies.get(number).or(replies.last()).cloned().unwrap_or(Say::HangUp);
                match reply {
                    Say::Silence => held.push(stream),
                    // One that stalls does not hold up the others.
                    Say::Stream(..) => {
                        tokio::spawn(async move { write(&mut stream, reply).await });
                    }
                    _ => write(&mut stream, reply).await,
                }
            }
        });
        Self { url, got, connections: Arc::default() }
    }

    /// One that keeps connections, and answers every request with these pieces. The end of the transfer comes a
    /// moment after the last of them.
    pub async fn keeping(pieces: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let (got, connections) = (Arc::<Mutex<Vec<Got>>>::default(), Arc::<AtomicUsize>::default());
        let (keep, count) = (Arc::clone(&got), Arc::clone(&connections));
        let pieces: Vec<(u64, String)> = pieces.into_iter().map(|piece| (0, piece)).collect();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                let (keep, pieces) = (Arc::clone(&keep), pieces.clone());
                tokio::spawn(async move {
                    loop {
                        let request = read(&mut stream).await;
                        if request.body.is_empty() {
                            return;
                        }
                        keep.lock().expect("unpoisoned").push(request);
                        let head =
                            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
                        let _ = stream.write_all(head.as_bytes()).await;
                        write_pieces(&mut stream, pieces.clone()).await;
                        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                        let _ = stream.write_all(b"0\r\n\r\n").await;
                    }
                });
            }
        });
        Self { url, got, connections }
    }

    /// How many connections were made to one that keeps them.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    pub fn requests(&self) -> Vec<Got> {
        self.got.lock().expect("unpoisoned").clone()
    }
}

async fn read(stream: &mut TcpStream) -> Got {
    let mut bytes = Vec::new();
    let mut chunk = [0u8; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_lowercase();
            let length =
                head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0usize);
            if body.len() >= length {
                return Got { head, body: body.to_owned() };
            }
        }
        match stream.read(&mut chunk).await {
            Ok(n) if n > 0 => bytes.extend_from_slice(&chunk[..n]),
            _ => return Got { head: text.to_lowercase(), body: String::new() },
        }
    }
}

async fn write(stream: &mut TcpStream, reply: Say) {
    let text = match reply {
        Say::Stream(pieces, orderly) => return write_stream(stream, pieces, orderly).await,
        Say::Answer(status, headers, body) => {
            format!("HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
        }
        Say::Cut => "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\nconnection: close\r\n\r\n{\"half\":".to_owned(),
        Say::Silence | Say::HangUp => return,
    };
    // The other side may be gone already; the test sees that on its side.
    let _ = stream.write_all(text.as_bytes()).await;
    let _ = stream.shutdown().await;
}

async fn write_stream(stream: &mut TcpStream, pieces: Vec<(u64, String)>, orderly: bool) {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nrequest-id: Req_1\r\n\
                transfer-encoding: chunked\r\nconnection: close\r\n\r\n";
    // As above: a client that has gone is the test's business.
    let _ = stream.write_all(head.as_bytes()).await;
    write_pieces(stream, pieces).await;
    if orderly {
        let _ = stream.write_all(b"0\r\n\r\n").await;
    }
    let _ = stream.shutdown().await;
}

async fn write_pieces(stream: &mut TcpStream, pieces: Vec<(u64, String)>) {
    for (wait_ms, piece) in pieces {
        tokio::time::sleep(std::time::Duration::from_millis(wait_ms)).await;
        let _ = stream.write_all(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes()).await;
    }
}
