//! The address of a service as processes are told it: nobody listens there, or the service does, or every
//! connection breaks, as the test decides.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

/// Connections that wait to be let in.
const BACKLOG: u32 = 128;

pub struct Gate {
    /// The URL of the service, by way of this gate.
    pub url: String,
    service: SocketAddr,
    /// The address, until somebody listens there: nobody else can take it.
    reserved: Option<TcpSocket>,
    is_open: watch::Sender<bool>,
    passed: Arc<AtomicUsize>,
}

impl Gate {
    /// A free address for the service of this URL. Whoever connects is refused, as nobody listens.
    pub fn reserve(url: &str) -> Self {
        let host = url.rsplit_once('@').map_or(url, |(_, host)| host);
        let host = host.split('/').next().unwrap_or(host);
        let service: SocketAddr = host.parse().expect("an address with a port");
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
        let own = socket.local_addr().expect("an address").to_string();
        let (url, is_open) = (url.replacen(host, &own, 1), watch::Sender::new(false));
        Self { url, service, reserved: Some(socket), is_open, passed: Arc::default() }
    }

    /// The service is there from now on.
    pub fn open(&mut self) {
        self.is_open.send_replace(true);
        if let Some(socket) = self.reserved.take() {
            let listener = socket.listen(BACKLOG).expect("the port is ours");
            tokio::spawn(serve(listener, self.service, self.is_open.subscribe(), self.passed.clone()));
        }
    }

    /// All connections break, and so does whatever connects, until it is opened again.
    pub fn close(&self) {
        self.is_open.send_replace(false);
    }

    /// Connections so far that reached the service.
    pub fn passed(&self) -> usize {
        self.passed.load(Ordering::SeqCst)
    }
}

async fn serve(listener: TcpListener, service: SocketAddr, is_open: watch::Receiver<bool>, passed: Arc<AtomicUsize>) {
    loop {
        match listener.accept().await {
            Ok((client, _)) => drop(tokio::spawn(pass(client, service, is_open.clone(), passed.clone()))),
            // Out of file descriptors, for one.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// One connection, from its beginning to its end.
async fn pass(
    mut client: TcpStream,
    service: SocketAddr,
    mut is_open: watch::Receiver<bool>,
    passed: Arc<AtomicUsize>,
) {
    let open_now = *is_open.borrow();
    if !open_now {
        return reset(&client);
    }
    let Ok(mut server) = TcpStream::connect(service).await else { return reset(&client) };
    drop(client.set_nodelay(true).and(server.set_nodelay(true)));
    passed.fetch_add(1, Ordering::SeqCst);
    let is_cut = tokio::select! {
        _ = copy_bidirectional(&mut client, &mut server) => false,
        () = closed(&mut is_open) => true,
    };
    if is_cut {
        reset(&client);
        reset(&server);
    }
}

async fn closed(is_open: &mut watch::Receiver<bool>) {
    // Without its gate a connection is of no use either.
    drop(is_open.wait_for(|is_open| !*is_open).await);
}

/// The connection ends with RST instead of an orderly end.
fn reset(stream: &TcpStream) {
    // If the socket is gone already, so is the connection.
    drop(stream.set_zero_linger());
}
