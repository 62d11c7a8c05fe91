//! What a program and its host say to each other: the program prints calls of its agent's tools between
//! its own lines (`prelude.js` says how), and reads the answers. All limits are kept on this side.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::chat::{ToolCall, ToolError, ToolErrorCode};
use domain::ports::{ActionCall, ActionFailure, ActionRunner};
use domain::tool::attempt::{self, Next};
use domain::tool::{self, ActionRequest, ExecutionContext, Place, Toolbox};
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use schemas::conversation::Operation;
use schemas::json::{Json, is_too_deep};
use schemas::limits::{CODE_CALL_BYTES_MAX, CODE_CALLS_MAX, CODE_OUTPUT_BYTES_MAX, JSON_DEPTH_MAX};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;

use super::{printed_too_much, unreadable};

/// The first line of the prelude begins with it; the whole line is the mark of the calls.
const HELLO: &[u8] = b"stepfleet-tools ";
/// A call that is a little too large is refused, not the end of the program.
const LINE_BYTES_MAX: usize = CODE_OUTPUT_BYTES_MAX + 2 * CODE_CALL_BYTES_MAX;
/// Calls of one program that are open, or whose answer it has not read; as many more wait to be taken. Most of
/// them are refusals.
const WAITING_MAX: usize = 4 * CODE_CALLS_MAX;
/// Calls of one program that are carried out at a time.
const RUNNING_MAX: usize = 8;
/// Characters of a tool's name that are noted.
const NAME_CHARS_MAX: usize = 64;

/// Answers the calls of one program.
pub struct Bridge<'a> {
    runner: &'a dyn ActionRunner,
    execution: &'a ActionCall,
    toolbox: Toolbox,
    running: Semaphore,
    /// `{tool, ok | error, ms}` for each call, by its index.
    calls: Mutex<Vec<Value>>,
    /// Bytes that the program has printed, on both its streams.
    printed: AtomicUsize,
}

/// A call as it is printed.
#[derive(Debug, Deserialize)]
struct Asked {
    id: u64,
    tool: String,
    #[serde(default = "Json::null")]
    input: Json,
    /// How many calls came before it.
    #[serde(skip)]
    index: usize,
    /// Its input was too large, and has not been kept.
    #[serde(skip)]
    is_too_large: bool,
}

impl Asked {
    /// As it waits for its turn: without what is refused anyhow, for many may wait.
    fn at(mut self, index: usize) -> Self {
        self.index = index;
        self.is_too_large = self.input.as_str().len() > CODE_CALL_BYTES_MAX;
        if self.is_too_large || index >= CODE_CALLS_MAX {
            self.input = Json::null();
        }
        // What is longer than any name stays longer, so that it does not become the name of a tool.
        self.tool = self.tool.chars().take(NAME_CHARS_MAX + 1).collect();
        self
    }
}

impl<'a> Bridge<'a> {
    /// `execution`: the call that runs the program.
    pub fn new(runner: &'a dyn ActionRunner, execution: &'a ActionCall) -> Self {
        let toolbox = execution.request.context.toolbox.clone().unwrap_or_default();
        let (running, calls) = (Semaphore::new(RUNNING_MAX), Mutex::default());
        Self { runner, execution, toolbox, running, calls, printed: AtomicUsize::new(0) }
    }

    /// Serves a program until it prints nothing more, and gives what it printed but for its calls.
    ///
    /// # Errors
    /// It printed too much.
    pub async fn serve(
        &self,
        input: impl AsyncWrite + Unpin,
        output: impl AsyncRead + Unpin,
    ) -> Result<String, ActionFailure> {
        let (ask, asked) = mpsc::channel(WAITING_MAX);
        let (tell, told) = mpsc::channel(WAITING_MAX);
        let answers = async {
            tokio::join!(self.answer(tell, asked), write(input, told));
            // The end of a program is told by what it prints alone.
            std::future::pending::<Result<String, ActionFailure>>().await
        };
        // Side by side: a program that prints while it is written to must not be waited for, and one that
        // does not read must not hold up what it has called.
        tokio::select! {
            printed = self.listen(output, ask) => printed,
            never = answers => never,
        }
    }

    /// Counts what was printed, whichever stream it came on.
    ///
    /// # Errors
    /// It is too much by now.
    pub fn count_printed(&self, bytes: usize) -> Result<(), ActionFailure> {
        let before = self.printed.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes > CODE_OUTPUT_BYTES_MAX { Err(printed_too_much()) } else { Ok(()) }
    }

    /// What became of the calls so far. Of what was still under way, it is not known.
    pub fn calls(&self) -> Vec<Value> {
        self.noted().clone()
    }

    fn noted(&self) -> MutexGuard<'_, Vec<Value>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, index: usize, call: Value) {
        let mut calls = self.noted();
        match calls.get_mut(index) {
            Some(known) => *known = call,
            // Of the calls beyond the limit, the first one tells enough.
            None if index <= CODE_CALLS_MAX => calls.push(call),
            None => {}
        }
    }

    /// What a program prints. Calls among it are passed on.
    async fn listen(&self, output: impl AsyncRead + Unpin, ask: mpsc::Sender<Asked>) -> Result<String, ActionFailure> {
        let mut output = BufReader::new(output);
        let (mut printed, mut count) = (Vec::new(), 0);
        let mut mark: Option<Vec<u8>> = None;
        loop {
            let (mut line, before) = (Vec::new(), printed.len());
            let mut bounded = (&mut output).take(LINE_BYTES_MAX as u64 + 1);
            let read = bounded.read_until(b'\n', &mut line).await.map_err(|error| unreadable(&error))?;
            if read == 0 {
                return Ok(String::from_utf8_lossy(&printed).into_owned());
            }
            match &mark {
                None if line.starts_with(HELLO) => mark = Some(line.trim_ascii_end().to_vec()),
                None => printed.append(&mut line),
                Some(mark) => match call_in(&line, mark) {
                    Some((at, call)) => {
                        // What is printed without an end of line stands before it.
                        printed.extend_from_slice(&line[..at]);
                        let call = call.at(count);
                        count += 1;
                        self.note(call.index, json!({"tool": shown(&call.tool), "error": "ABANDONED", "ms": 0}));
                        // Waits while too many are open; who reads no answers comes to the end of its time.
                        _ = ask.send(call).await;
                    }
                    None => printed.append(&mut line),
                },
            }
            self.count_printed(printed.len() - before)?;
        }
    }

    /// Carries out what is asked. Nothing in here waits for the program: what is open may hold what others
    /// wait for.
    async fn answer(&self, tell: mpsc::Sender<String>, mut asked: mpsc::Receiver<Asked>) {
        let mut open: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
        loop {
            let next = async {
                // A call is taken when there is room for its answer.
                let room = tell.reserve().await.ok()?;
                Some((room, asked.recv().await?))
            };
            tokio::select! {
                biased;
                Some(()) = open.next() => {}
                taken = next => {
                    // Nobody is there any more who waits for what is open.
                    let Some((room, call)) = taken else { return };
                    let answered = async move { room.send(self.reply(call).await) };
                    open.push(answered.boxed());
                }
            }
        }
    }

    /// The line that answers a call.
    async fn reply(&self, asked: Asked) -> String {
        let begun = Instant::now();
        let (id, index, tool) = (asked.id, asked.index, shown(&asked.tool));
        let outcome = if index < CODE_CALLS_MAX { self.perform(asked).await } else { Err(beyond()) };
        // Answers wait in memory until the program reads them.
        let outcome = outcome.and_then(tool::bounded);
        let ms = begun.elapsed().as_millis() as u64;
        let (call, answer) = match outcome {
            Ok(result) => (json!({"tool": tool, "ok": true, "ms": ms}), json!({"id": id, "result": result})),
            Err(error) => (json!({"tool": tool, "error": error.code, "ms": ms}), json!({"id": id, "error": error})),
        };
        self.note(index, call);
        format!("{answer}\n")
    }

    /// As an operation of its own would be carried out, within the time of the program.
    async fn perform(&self, asked: Asked) -> Result<Value, ToolError> {
        let (index, input) = (asked.index, asked.input.to_value());
        if asked.is_too_large || is_too_deep(&input) {
            let message = format!(
                "the input of {} is too large: at most {CODE_CALL_BYTES_MAX} bytes and {JSON_DEPTH_MAX} levels",
                shown(&asked.tool)
            );
            return Err(ToolError { code: ToolErrorCode::InvalidInput, message, retriable: false });
        }
        let call = ToolCall { id: String::new(), name: asked.tool, input, invalid: None, signature: None };
        let dispatch = self.toolbox.dispatch(&call)?;
        // The semaphore is never closed.
        let _running = self.running.acquire().await;
        let mut operation = tool::operation(dispatch, self.place(index, call.name), self.context());
        operation.operation_id = tool::called_id(&self.execution.operation_id, index);
        let read = operation.request.to::<ActionRequest>();
        let request = read.map_err(|error| attempt::unreadable(&operation, &error))?;
        loop {
            operation.attempt += 1;
            match self.attempt(&operation, &request).await {
                Next::End(outcome) => return outcome,
                Next::Again { after_ms, .. } => tokio::time::sleep(Duration::from_millis(after_ms)).await,
                Next::Probe(failure) => return Err(failure.error),
            }
        }
    }

    async fn attempt(&self, operation: &Operation, request: &ActionRequest) -> Next {
        let call = ActionCall::new(&self.execution.namespace, operation, request.clone());
        let limit = Duration::from_millis(operation.timeout_ms.max(1));
        let outcome = tokio::time::timeout(limit, self.runner.run(&call)).await;
        let outcome = outcome.unwrap_or_else(|_| Err(attempt::late(operation)));
        match attempt::next(operation, request, outcome) {
            Next::Probe(failure) => {
                let probe = self.runner.probe(&call).await;
                attempt::probed(operation, request, probe, Some(failure))
            }
            next => next,
        }
    }

    fn place(&self, index: usize, tool: String) -> Place {
        Place {
            namespace: self.execution.namespace.clone(),
            session_id: self.execution.session_id.clone(),
            conversation_id: self.execution.conversation_id.clone(),
            turn_id: self.execution.turn_id.clone(),
            move_number: 0,
            index,
            tool_call_id: String::new(),
            tool,
        }
    }

    fn context(&self) -> ExecutionContext {
        let own = &self.execution.request.context;
        ExecutionContext {
            agent_id: own.agent_id.clone(),
            project_ids: own.project_ids.clone(),
            messages: own.messages.clone(),
            toolbox: None,
        }
    }
}

fn shown(tool: &str) -> String {
    tool.chars().take(NAME_CHARS_MAX).collect()
}

fn beyond() -> ToolError {
    let message = format!("a program may call tools {CODE_CALLS_MAX} times; do the rest in another one");
    ToolError { code: ToolErrorCode::ToolCallLimit, message, retriable: false }
}

/// Writes answers, one after the other. A program that reads none goes on without them.
async fn write(mut input: impl AsyncWrite + Unpin, mut told: mpsc::Receiver<String>) {
    while let Some(answer) = told.recv().await {
        _ = input.write_all(answer.as_bytes()).await;
    }
}

/// The call in a line, and where it begins. What cannot be read as one was printed.
fn call_in(line: &[u8], mark: &[u8]) -> Option<(usize, Asked)> {
    let at = line.windows(mark.len()).position(|part| part == mark)?;
    let asked = serde_json::from_slice(&line[at + mark.len()..]).ok()?;
    Some((at, asked))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(tool: &str, input: &Value, index: usize) -> Asked {
        let line = format!("so far mark{}\n", json!({"id": 1, "tool": tool, "input": input}));
        let (at, asked) = call_in(line.as_bytes(), b"mark").expect("a call");
        assert_eq!(at, "so far ".len());
        asked.at(index)
    }

    #[test]
    fn a_call_that_waits_keeps_nothing_that_is_refused_anyhow() {
        let small = json!({"q": "x"});
        let last = asked("search", &small, CODE_CALLS_MAX - 1);
        assert_eq!((last.input.to_value(), last.is_too_large, last.index), (small.clone(), false, CODE_CALLS_MAX - 1));
        let large = asked("search", &json!("x".repeat(CODE_CALL_BYTES_MAX)), 0);
        assert_eq!((large.input, large.is_too_large), (Json::null(), true));
        let beyond = asked("search", &small, CODE_CALLS_MAX);
        assert_eq!((beyond.input, beyond.is_too_large), (Json::null(), false), "refused for another reason");
        let name = asked(&"n".repeat(CODE_CALL_BYTES_MAX), &small, 0).tool;
        assert_eq!(name.len(), NAME_CHARS_MAX + 1, "no tool has such a name");
    }
}
