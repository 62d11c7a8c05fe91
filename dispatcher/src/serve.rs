//! The socket in front of the router.

use axum::Router;
use axum::serve::ListenerExt;
use host::tasks::Tasks;
use tokio::net::TcpListener;

/// Serves the router until `tasks` are shut down; open requests are finished first.
pub fn serve(listener: TcpListener, app: Router, tasks: &Tasks) {
    tasks.spawn("gateway", move |stop| async move {
        // Answers are small and wanted at once.
        let listener = listener.tap_io(|stream| {
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "nodelay was refused");
            }
        });
        let served = axum::serve(listener, app).with_graceful_shutdown(stop.cancelled_owned()).await;
        if let Err(error) = served {
            tracing::error!(%error, "the gateway ended");
        }
    });
}
