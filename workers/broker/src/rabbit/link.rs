//! One connection, kept up: connects, watches, and when anything is wrong drops it and connects
//! anew. Whoever needs it waits for it here, and rebuilds its own channels on each new one.

use std::sync::Arc;
use std::time::Duration;

use domain::failure::Failure;
use futures::StreamExt;
use lapin::{Connect, Connection, ConnectionProperties, Event};
use tokio::sync::watch;
use tokio::time::Instant;

use super::report::{self, Report};
use super::settings::Settings;
use super::{backoff, fault};

/// A connect that hangs is given up; the TCP part has a shorter bound of its own.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// How often the state is looked at besides the events.
const LOOK: Duration = Duration::from_millis(500);
pub(super) const CLOSE_MAX: Duration = Duration::from_secs(1);
/// A connection that is lost sooner has ended no outage.
const STEADY: Duration = Duration::from_secs(5);

/// A connection that is up. Its holders watch the weather and drop it when it is lost.
pub(super) struct Up {
    pub connection: Connection,
    pub weather: watch::Receiver<Weather>,
}

/// What the broker says about a connection besides the answers to calls.
#[derive(Debug, Clone, Default)]
pub(super) struct Weather {
    /// Why it takes no messages at present.
    pub blocked: Option<String>,
    /// Errors of the connection and its channels so far: time to look at one's own.
    pub errors: u64,
}

#[derive(Clone)]
enum State {
    Down(Failure),
    Up(Arc<Up>),
}

/// Cheap to clone. The connection ends with the last clone.
#[derive(Clone)]
pub(super) struct Link {
    state: watch::Receiver<State>,
}

impl Link {
    /// `role` tells this connection from the others of the process, which share the report.
    pub fn open(settings: Arc<Settings>, role: &'static str, report: Report) -> Self {
        let (sender, state) = watch::channel(State::Down(Failure::unavailable("not connected to the broker yet")));
        tokio::spawn(keep(settings, role, report, sender));
        Self { state }
    }

    /// The connection, once there is one. Cancel safe. `None` when the process ends.
    pub async fn up(&mut self) -> Option<Arc<Up>> {
        let state = self.state.wait_for(|state| matches!(state, State::Up(_))).await.ok()?;
        match &*state {
            State::Up(up) => Some(up.clone()),
            State::Down(_) => None,
        }
    }

    /// The connection, if there is one now.
    pub fn now(&self) -> Result<Arc<Up>, Failure> {
        match &*self.state.borrow() {
            State::Up(up) => Ok(up.clone()),
            State::Down(failure) => Err(failure.clone()),
        }
    }
}

async fn keep(settings: Arc<Settings>, role: &'static str, report: Report, state: watch::Sender<State>) {
    let mut failures = 0;
    loop {
        let (reason, lasted) = match connect(&settings, role).await {
            Ok(connection) => {
                tracing::debug!(broker = %settings, role, "connected to the broker");
                let begun = Instant::now();
                (serve(connection, &state, role, &report).await, begun.elapsed())
            }
            Err(failure) => {
                let reason = failure.message.clone();
                state.send_replace(State::Down(failure));
                (reason, Duration::ZERO)
            }
        };
        if state.is_closed() {
            return;
        }
        report.lost(role, &reason);
        failures = failures_after(failures, lasted);
        tokio::select! {
            () = tokio::time::sleep(backoff::after(failures)) => {}
            () = state.closed() => return,
        }
    }
}

/// Failures in a row, after a connection that `lasted` so long, or did not come about at all: one that is lost at
/// once, again and again, is waited for ever longer.
fn failures_after(failures: u32, lasted: Duration) -> u32 {
    if lasted >= STEADY { 1 } else { failures.saturating_add(1) }
}

/// Offers the connection until it is lost; returns why.
async fn serve(connection: Connection, state: &watch::Sender<State>, role: &'static str, report: &Report) -> String {
    let (sky, weather) = watch::channel(Weather::default());
    let up = Arc::new(Up { connection, weather });
    state.send_replace(State::Up(up.clone()));
    let lost = tokio::select! {
        lost = loss(&up.connection, &sky, role, report) => lost,
        () = state.closed() => "nobody needs it".to_owned(),
    };
    state.send_replace(State::Down(Failure::unavailable(format!("the connection to the broker is lost: {lost}"))));
    // Best effort: most often there is nothing left to close.
    let _ = tokio::time::timeout(CLOSE_MAX, up.connection.close(200, "OK".into())).await;
    lost
}

/// One connection, which its holder closes.
pub(super) async fn connect(settings: &Settings, role: &str) -> Result<Connection, Failure> {
    let properties =
        ConnectionProperties::default().with_connection_name(format!("stepfleet {} {role}", std::process::id()).into());
    let runtime = lapin::runtime::default_runtime().map_err(|error| fault::failure("no runtime", &error))?;
    let connecting = settings.uri().connect_with_config(properties, settings.tls(), runtime);
    let what = format!("cannot connect to {settings}");
    match tokio::time::timeout(CONNECT_MAX, connecting).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(error)) => Err(fault::failure(&what, &error)),
        Err(_) => Err(Failure::unavailable(format!("{what}: no answer within {CONNECT_MAX:?}"))),
    }
}

/// Returns why the connection is lost, once it is. A blocked one is not lost: lapin writes nothing
/// on it until it is unblocked, not even its end, so dropping it would only leave it hanging.
///
/// This is the only listener of the connection: lapin hands each event to one of them.
async fn loss(connection: &Connection, sky: &watch::Sender<Weather>, role: &'static str, report: &Report) -> String {
    let begun = Instant::now();
    let mut events = connection.events_listener();
    let mut reason = "closed".to_owned();
    loop {
        match tokio::time::timeout(LOOK, events.next()).await {
            Ok(Some(Event::Error(error))) => {
                reason = error.to_string();
                sky.send_modify(|weather| weather.errors += 1);
            }
            Ok(Some(Event::ConnectionBlocked(why))) => {
                report::count_failure();
                sky.send_modify(|weather| weather.blocked = Some(why));
            }
            Ok(Some(Event::ConnectionUnblocked)) => sky.send_modify(|weather| weather.blocked = None),
            Ok(Some(_)) | Err(_) => {}
            Ok(None) => return reason,
        }
        if !connection.status().connected() {
            return reason;
        }
        report.takes(role, sky.borrow().blocked.as_deref());
        if begun.elapsed() >= STEADY {
            report.holds(role);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_that_are_lost_at_once_are_waited_for_ever_longer() {
        let mut failures = 0;
        let mut lose = |lasted| {
            failures = failures_after(failures, lasted);
            failures
        };
        assert_eq!(lose(STEADY), 1);
        for nth in 2..100 {
            assert_eq!(lose(if nth % 2 == 0 { Duration::ZERO } else { STEADY / 2 }), nth);
        }
        assert_eq!(lose(STEADY), 1, "one that held has ended it");
    }
}
