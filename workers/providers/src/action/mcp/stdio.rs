//! A server as a child process: one JSON message a line. The process and all that it starts end with
//! the link.

use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use schemas::limits::TOOL_ANSWER_BYTES_MAX;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::McpError;
use super::message::{self, Incoming};
use crate::action::group::Group;

/// Variables that every server gets.
const USUAL: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];
/// Requests that wait for one server, and messages that it has not taken yet.
const WAITING_MAX: usize = 256;

pub struct StdioLink {
    input: mpsc::Sender<Value>,
    state: Arc<State>,
    next: AtomicU64,
    tasks: [JoinHandle<()>; 2],
    /// Ends the process when the link goes.
    _group: Group,
}

/// What the tasks of a link share.
struct State {
    alive: AtomicBool,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Result<Value, McpError>>>>,
}

impl State {
    fn add(&self, id: u64, tell: oneshot::Sender<Result<Value, McpError>>) -> Result<(), McpError> {
        let mut waiting = self.waiting.lock().expect("no holder panics");
        if waiting.len() >= WAITING_MAX {
            return Err(McpError::broken(format!("{WAITING_MAX} requests wait for it already"), false));
        }
        waiting.insert(id, tell);
        Ok(())
    }

    fn remove(&self, id: u64) -> Option<oneshot::Sender<Result<Value, McpError>>> {
        self.waiting.lock().expect("no holder panics").remove(&id)
    }

    /// The link is over: whoever waits is told why.
    fn end(&self, why: &str) {
        self.alive.store(false, Ordering::Release);
        let waiting = std::mem::take(&mut *self.waiting.lock().expect("no holder panics"));
        for tell in waiting.into_values() {
            // Who asked may have gone.
            _ = tell.send(Err(McpError::broken(why, true)));
        }
    }
}

impl Drop for StdioLink {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl StdioLink {
    pub fn start(command: &Path, args: &[String], env: &[String], directory: Option<&Path>) -> Result<Self, McpError> {
        let shown = command.display();
        let mut builder = Command::new(command);
        builder.args(args).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        for name in USUAL.into_iter().chain(env.iter().map(String::as_str)) {
            if let Some(value) = std::env::var_os(name) {
                builder.env(name, value);
            }
        }
        if let Some(directory) = directory {
            builder.current_dir(directory);
        }
        let mut group = Group::start(&mut builder)
            .map_err(|error| McpError::broken(format!("{shown} cannot be started: {error}"), false))?;
        let (Some(input), Some(output)) = (group.child.stdin.take(), group.child.stdout.take()) else {
            return Err(McpError::broken(format!("{shown} has no standard input and output"), false));
        };
        let state = Arc::new(State { alive: AtomicBool::new(true), waiting: Mutex::default() });
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let writer = tokio::spawn(write(input, receiver, Arc::clone(&state)));
        let reader = tokio::spawn(read(output, sender.clone(), Arc::clone(&state)));
        Ok(Self { input: sender, state, next: AtomicU64::new(1), tasks: [writer, reader], _group: group })
    }

    pub fn is_alive(&self) -> bool {
        self.state.alive.load(Ordering::Acquire)
    }

    pub async fn request(&self, method: &str, parameters: &Value) -> Result<Value, McpError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (tell, told) = oneshot::channel();
        self.state.add(id, tell)?;
        let mut asked = Asked { link: self, id, is_open: true };
        self.send(message::request(id, method, parameters)).await?;
        if !self.is_alive() {
            // The end may have come before it was known that somebody waits.
            return Err(McpError::broken("it ended", true));
        }
        let result = told.await.unwrap_or_else(|_| Err(McpError::broken("it ended before it answered", true)));
        asked.is_open = false;
        result
    }

    pub async fn notify(&self, method: &str) -> Result<(), McpError> {
        self.send(message::notification(method, &json!({}))).await
    }

    async fn send(&self, message: Value) -> Result<(), McpError> {
        self.input.send(message).await.map_err(|_| McpError::broken("it takes nothing any more", false))
    }
}

/// A request that is cancelled if nobody waits for its answer any more.
struct Asked<'l> {
    link: &'l StdioLink,
    id: u64,
    is_open: bool,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.link.state.remove(self.id);
        if self.is_open {
            let parameters = json!({"requestId": self.id, "reason": "nobody waits for it any more"});
            // A courtesy: a server that takes nothing is not waited for.
            _ = self.link.input.try_send(message::notification("notifications/cancelled", &parameters));
        }
    }
}

/// Hands messages over, whole: whoever gives up waiting must not leave half a line.
async fn write(mut input: ChildStdin, mut messages: mpsc::Receiver<Value>, state: Arc<State>) {
    while let Some(message) = messages.recv().await {
        let line = format!("{message}\n");
        let written = match input.write_all(line.as_bytes()).await {
            Ok(()) => input.flush().await,
            failed => failed,
        };
        if let Err(error) = written {
            return state.end(&format!("it takes nothing: {error}"));
        }
    }
}

/// Reads what the server says until it ends.
async fn read(output: ChildStdout, input: mpsc::Sender<Value>, state: Arc<State>) {
    let mut output = BufReader::new(output);
    let why = loop {
        let mut line = Vec::new();
        let mut bounded = (&mut output).take(TOOL_ANSWER_BYTES_MAX as u64 + 1);
        match bounded.read_until(b'\n', &mut line).await {
            Ok(0) => break "it ended".to_owned(),
            Ok(_) if line.len() > TOOL_ANSWER_BYTES_MAX => {
                break format!("it sent a message of more than {TOOL_ANSWER_BYTES_MAX} bytes");
            }
            Ok(_) => take(&line, &input, &state),
            Err(error) => break format!("it cannot be read: {error}"),
        }
    };
    state.end(&why);
}

fn take(line: &[u8], input: &mpsc::Sender<Value>, state: &State) {
    // What is no message is somebody's print statement.
    let Ok(value) = serde_json::from_slice::<Value>(line) else { return };
    match message::read(&value) {
        Incoming::Response { id, result } => {
            if let Some(tell) = state.remove(id) {
                // Who asked may have gone.
                _ = tell.send(result);
            }
        }
        // A server that asks faster than it reads goes without answers.
        Incoming::Request { id, method } => _ = input.try_send(message::reply(&id, &method)),
        Incoming::Other => {}
    }
}
