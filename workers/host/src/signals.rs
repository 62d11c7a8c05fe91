//! SIGINT and SIGTERM: the first asks for a graceful stop, the second ends the process at once.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Exit code of a stop that was not waited for: 128 + SIGINT, as shells have it.
const EXIT_AT_ONCE: i32 = 130;

/// Cancels `stop` on the first signal; exits on the second.
///
/// # Errors
/// The handlers could not be installed.
#[allow(clippy::disallowed_methods, reason = "somebody has asked twice")]
pub fn watch(stop: CancellationToken) -> std::io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        let name = next(&mut interrupt, &mut terminate).await;
        tracing::info!(signal = name, "stopping; a second signal ends the process at once");
        stop.cancel();
        let name = next(&mut interrupt, &mut terminate).await;
        tracing::warn!(signal = name, "stopping at once");
        std::process::exit(EXIT_AT_ONCE);
    });
    Ok(())
}

async fn next(interrupt: &mut Signal, terminate: &mut Signal) -> &'static str {
    tokio::select! {
        _ = interrupt.recv() => "SIGINT",
        _ = terminate.recv() => "SIGTERM",
    }
}
