//! A network that can fail: a TCP proxy between one process and one service.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::plan::Mode;

const BUFFER: usize = 64 << 10;
/// How long a server keeps a connection whose client vanished without a word.
const GHOST: Duration = Duration::from_secs(20);

/// What holds for all connections, and how often they were broken so far.
#[derive(Debug, Clone, Copy)]
struct Weather {
    mode: Mode,
    resets: u64,
    deaths: u64,
}

pub struct Proxy {
    /// Where the process connects to.
    pub port: u16,
    weather: watch::Sender<Weather>,
}

impl Proxy {
    /// Listens on a free port of this machine.
    ///
    /// # Errors
    /// No port can be had.
    pub async fn open(upstream: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("a port for a proxy")?;
        let port = listener.local_addr()?.port();
        let (weather, watch) = watch::channel(Weather { mode: Mode::Open, resets: 0, deaths: 0 });
        tokio::spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((client, _)) => drop(tokio::spawn(serve(client, upstream, watch.clone()))),
                    // Out of file descriptors, for one.
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        });
        Ok(Self { port, weather })
    }

    pub fn set(&self, mode: Mode) {
        self.weather.send_modify(|weather| {
            weather.resets += u64::from(matches!(mode, Mode::Reset | Mode::Cut));
            weather.deaths += u64::from(mode == Mode::HalfOpen);
            weather.mode = if mode == Mode::Reset { Mode::Open } else { mode };
        });
    }
}

/// One connection, from its beginning to its end.
async fn serve(mut client: TcpStream, upstream: SocketAddr, mut watch: watch::Receiver<Weather>) {
    let born = loop {
        let weather = *watch.borrow_and_update();
        match weather.mode {
            Mode::Cut => return reset(&client),
            Mode::HalfOpen => return swallow(client).await,
            Mode::Stall => {
                if watch.changed().await.is_err() {
                    return;
                }
            }
            _ => break weather,
        }
    };
    let Ok(mut server) = TcpStream::connect(upstream).await else { return reset(&client) };
    // A write may be the last one for a long time.
    drop(client.set_nodelay(true).and(server.set_nodelay(true)));
    let outcome = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let there = pump(from_client, to_server, watch.clone(), born);
        let back = pump(from_server, to_client, watch, born);
        tokio::try_join!(there, back)
    };
    if outcome.is_err() {
        reset(&client);
        reset(&server);
    }
}

/// Moves bytes one way until the end of the connection; an error breaks both ways.
async fn pump(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    mut watch: watch::Receiver<Weather>,
    born: Weather,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let weather = *watch.borrow_and_update();
        if weather.resets > born.resets {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let dead = weather.deaths > born.deaths;
        if weather.mode == Mode::Stall && !dead {
            watch.changed().await.map_err(io::Error::other)?;
            continue;
        }
        let count = tokio::select! {
            changed = watch.changed() => {
                changed.map_err(io::Error::other)?;
                continue;
            }
            count = from.read(&mut buffer) => count?,
        };
        if dead {
            if count == 0 {
                tokio::time::sleep(GHOST).await;
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            continue;
        }
        if count == 0 {
            return to.shutdown().await;
        }
        if let Mode::Delay(ms) = weather.mode {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        to.write_all(&buffer[..count]).await?;
    }
}

/// Takes what comes, and never answers.
async fn swallow(mut client: TcpStream) {
    let mut buffer = vec![0; BUFFER];
    while client.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
}

/// The connection ends with RST instead of an orderly end.
fn reset(stream: &TcpStream) {
    // If the socket is gone already, so is the connection.
    drop(stream.set_zero_linger());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that says back what it is told, a proxy before it, and a client that is connected.
    async fn scene() -> (Proxy, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let upstream = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = stream.split();
                    tokio::io::copy(&mut from, &mut to).await
                });
            }
        });
        let proxy = Proxy::open(upstream).await.unwrap();
        let client = connect(&proxy).await;
        (proxy, client)
    }

    async fn connect(proxy: &Proxy) -> TcpStream {
        TcpStream::connect(("127.0.0.1", proxy.port)).await.unwrap()
    }

    /// What comes back, or nothing within a short time.
    async fn echo(client: &mut TcpStream) -> Option<io::Result<u8>> {
        client.write_all(b"x").await.ok()?;
        tokio::time::timeout(Duration::from_millis(300), client.read_u8()).await.ok()
    }

    #[tokio::test]
    async fn open_passes_and_cut_breaks_what_is_open_and_what_is_new() {
        let (proxy, mut client) = scene().await;
        assert_eq!(echo(&mut client).await.unwrap().unwrap(), b'x');
        proxy.set(Mode::Cut);
        assert!(client.read_u8().await.is_err());
        assert!(connect(&proxy).await.read_u8().await.is_err());
        proxy.set(Mode::Open);
        assert_eq!(echo(&mut connect(&proxy).await).await.unwrap().unwrap(), b'x');
    }

    #[tokio::test]
    async fn a_stall_ends_and_loses_nothing() {
        let (proxy, mut client) = scene().await;
        assert!(echo(&mut client).await.unwrap().is_ok());
        proxy.set(Mode::Stall);
        assert!(echo(&mut client).await.is_none());
        proxy.set(Mode::Open);
        assert_eq!(client.read_u8().await.unwrap(), b'x');
    }

    #[tokio::test]
    async fn a_half_open_connection_stays_dead_and_a_new_one_lives() {
        let (proxy, mut client) = scene().await;
        assert!(echo(&mut client).await.unwrap().is_ok());
        proxy.set(Mode::HalfOpen);
        assert!(echo(&mut client).await.is_none());
        let mut late = connect(&proxy).await;
        assert!(echo(&mut late).await.is_none());
        proxy.set(Mode::Open);
        assert!(echo(&mut client).await.is_none());
        assert!(echo(&mut late).await.is_none());
        assert!(echo(&mut connect(&proxy).await).await.unwrap().is_ok());
    }

    #[tokio::test]
    async fn a_reset_breaks_what_is_open_once() {
        let (proxy, mut client) = scene().await;
        assert!(echo(&mut client).await.unwrap().is_ok());
        proxy.set(Mode::Reset);
        assert!(client.read_u8().await.is_err());
        assert!(echo(&mut connect(&proxy).await).await.unwrap().is_ok());
    }
}
