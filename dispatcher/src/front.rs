//! The socket of a process that is not ready yet: whoever asks is told what it waits for, and to come again.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use host::tasks::Tasks;
use schemas::problem::Code;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::answer::Refused;
use crate::{serve, shell};

/// What the process does instead of serving, as the end of a sentence.
type Stage = Arc<Mutex<String>>;

/// Answers from the start on. What it leads to serves from [`Front::let_in`] on.
pub struct Front {
    stage: Stage,
    /// What new connections get.
    served: watch::Sender<Router>,
    app: Option<Router>,
}

impl Front {
    /// Serves until `tasks` are shut down.
    pub fn open(listener: TcpListener, tasks: &Tasks) -> Self {
        let stage = Stage::new(Mutex::new("is starting".to_owned()));
        let closed = Router::new().fallback(come_again).layer(from_fn(shell::shell)).with_state(stage.clone());
        let (served, current) = watch::channel(closed);
        serve::serve_current(listener, current, tasks);
        Self { stage, served, app: None }
    }

    /// What is waited for, and why.
    pub fn waits_for(&self, what: &str) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = format!("waits for {what}");
    }

    /// What it will open to.
    pub fn lead_to(&mut self, app: Router) {
        self.app = Some(app);
    }

    /// Opens: each connection from now on is served by what it leads to.
    pub fn let_in(&mut self) {
        if let Some(app) = self.app.take() {
            drop(self.served.send_replace(app));
        }
    }
}

async fn come_again(State(stage): State<Stage>) -> Response {
    let stage = stage.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut answer = Refused::new(Code::Unavailable, format!("Not ready: this process {stage}")).into_response();
    // The next request must not come here again, so it comes on another connection.
    answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    answer
}
