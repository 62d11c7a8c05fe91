//! The socket in front of the router: HTTP/1.1, one task per connection, each with a bound on how
//! long its client may take to say what it wants.

mod linger;

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use host::tasks::Tasks;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use linger::Lingering;
use schemas::limits::{CONNECTIONS_MAX, HEADER_READ_MS_MAX};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Out of file descriptors, most likely: some are free again soon.
const ACCEPT_REST: Duration = Duration::from_secs(1);

/// Serves the router until `tasks` are shut down; open requests are finished first.
pub fn serve(listener: TcpListener, app: Router, tasks: &Tasks) {
    let (_, current) = watch::channel(app);
    serve_current(listener, current, tasks);
}

/// As [`serve`]: each connection is served by the router that is the current one when it comes.
pub(crate) fn serve_current(listener: TcpListener, app: watch::Receiver<Router>, tasks: &Tasks) {
    tasks.spawn("gateway", move |stop| accept(listener, app, stop));
}

async fn accept(listener: TcpListener, app: watch::Receiver<Router>, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        // A place first: who finds none waits in the backlog of the socket.
        let next = async {
            let place = places.clone().acquire_owned().await.ok();
            (place, listener.accept().await)
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(_) = connections.join_next() => {}
            (place, accepted) = next => match accepted {
                Ok((stream, _)) => {
                    let current = app.borrow().clone();
                    let serving = connection(stream, current, stop.clone());
                    connections.spawn(async move {
                        serving.await;
                        drop(place);
                    });
                }
                Err(error) => rest_after(&error).await,
            },
        }
    }
    // Nobody else is let in; those who are here get their answers.
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn rest_after(error: &io::Error) {
    // A client that has gone before it was let in is no trouble of ours.
    let is_clients = matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    );
    if !is_clients {
        tracing::error!(%error, "the gateway cannot accept connections; trying again in a second");
        tokio::time::sleep(ACCEPT_REST).await;
    }
}

async fn connection(stream: TcpStream, app: Router, stop: CancellationToken) {
    // Answers are small and wanted at once.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "nodelay was refused");
    }
    let mut http = http1::Builder::new();
    // Without a timer there would be no bound at all.
    http.timer(TokioTimer::new()).header_read_timeout(Duration::from_millis(HEADER_READ_MS_MAX));
    let socket = TokioIo::new(Lingering::new(stream, stop.clone()));
    let serving = http.serve_connection(socket, TowerToHyperService::new(app)).with_upgrades();
    let mut serving = pin!(serving);
    let ended = tokio::select! {
        biased;
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
        ended = serving.as_mut() => ended,
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}
