//! `code`: a program in Deno, which is given nothing but a folder of its own and the tools of its agent
//! (SPEC A-RT-02). The limits are ours: size, time, output, files and calls are held from outside, and its whole
//! process group ends with the call.

pub mod bridge;
mod folder;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use domain::chat::ToolErrorCode;
use domain::ports::{ActionCall, ActionFailure, ActionRunner, Trouble};
use schemas::limits::{
    CODE_BYTES_MAX, CODE_FILES_BYTES_MAX, CODE_MS_MAX, CODE_OUTPUT_BYTES_MAX, TOOL_RESULT_BYTES_MAX,
};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use super::group::Group;
use bridge::Bridge;
use folder::Folder;

/// Memory of the program's own values, megabytes.
const HEAP_MB: u32 = 256;
/// All memory of its process: Deno's own, and what lies outside of that heap, as arrays of bytes do.
const MEMORY_BYTES: u64 = 1 << 30;
/// The program within its folder.
const FILE: &str = "program.ts";
/// What stands before it, and gives it `tools`.
const PRELUDE: &str = include_str!("code/prelude.js");
/// Characters of a failure that tell what was called.
const CALLED_CHARS_MAX: usize = 500;
/// Bytes that are read at a time.
const PIECE_BYTES: usize = 8 << 10;
/// Room in a result for what is neither printed nor called.
const REST_BYTES: usize = 1 << 10;

/// What programs are run with.
#[derive(Debug, Clone, Default)]
pub struct CodeConfig {
    /// The Deno program; looked for on the path if absent.
    pub deno: Option<PathBuf>,
    /// Hosts, with or without a port, that programs may call; none if empty.
    pub allow_net: Vec<String>,
}

/// `runner`: carries out what the program calls.
pub async fn run(config: &CodeConfig, runner: &dyn ActionRunner, call: &ActionCall) -> Result<Value, ActionFailure> {
    let code = call.request.input.get("code").and_then(Value::as_str).unwrap_or_default();
    if code.is_empty() || code.len() > CODE_BYTES_MAX {
        let what = format!("code must have 1 to {CODE_BYTES_MAX} bytes; this one has {}", code.len());
        return Err(ActionFailure::invalid(what));
    }
    let folder = Folder::with(FILE, &source(code)).map_err(|error| {
        ActionFailure::trouble(Trouble::ServerError, format!("there is no folder to run code in: {error}"), false)
    })?;
    let mut group = start(config, folder.path())?;
    let (bridge, program) = (Bridge::new(runner, call), group.child.id());
    let limit = time_of(call.timeout_ms);
    let ended = tokio::select! {
        ended = tokio::time::timeout(limit, outcome(&mut group, &bridge)) => ended.unwrap_or_else(|_| {
            let message = format!("the program did not end within {} ms; do less at a time", limit.as_millis());
            Err(ActionFailure::business(ToolErrorCode::Timeout, message))
        }),
        () = folder.filled(program) => {
            let message = format!("the program wrote more than {CODE_FILES_BYTES_MAX} bytes of files; keep less");
            Err(ActionFailure::business(ToolErrorCode::ExecutionFailed, message))
        }
    };
    told(ended, bridge.calls())
}

/// The time of a program: a little less than that of its operation, whose end knows of no calls.
pub(super) fn time_of(timeout_ms: u64) -> Duration {
    Duration::from_millis(timeout_ms.saturating_sub(1_000).max(timeout_ms / 2).clamp(1, CODE_MS_MAX))
}

/// With what was called: as a list beside what was printed (`stdout`, `stderr`), and in words before a failure,
/// whose end may be cut.
pub(super) fn told(ended: Result<(String, String), ActionFailure>, calls: Vec<Value>) -> Result<Value, ActionFailure> {
    match ended {
        Ok((stdout, stderr)) => Ok(answer(stdout, stderr, calls)),
        Err(failure) if calls.is_empty() => Err(failure),
        Err(mut failure) => {
            let word = |call: &Value| {
                let end = call["error"].as_str().unwrap_or("ok");
                format!("{} ({end})", call["tool"].as_str().unwrap_or_default())
            };
            let called = calls.iter().map(word).collect::<Vec<_>>().join(", ");
            let called: String = called.chars().take(CALLED_CHARS_MAX).collect();
            failure.error.message = format!("after calls of {called}: {}", failure.error.message);
            Err(failure)
        }
    }
}

/// Fits a result: what was printed is cut before the calls are lost.
fn answer(stdout: String, stderr: String, calls: Vec<Value>) -> Value {
    let mut answer = json!({});
    if !calls.is_empty() {
        answer["calls"] = calls.into();
    }
    let room = TOOL_RESULT_BYTES_MAX.saturating_sub(answer.to_string().len() + REST_BYTES);
    // Each has half of it, and what the other one leaves of its half.
    let beside = |other: &str| room - other.chars().map(bytes_of).sum::<usize>().min(room / 2);
    let (of_stdout, of_stderr) = (beside(&stderr), beside(&stdout));
    answer["stdout"] = within(stdout, of_stdout).into();
    answer["stderr"] = within(stderr, of_stderr).into();
    answer
}

/// As much of a text as takes so many bytes within JSON. What is cut is said.
fn within(text: String, room: usize) -> String {
    let mut used = 0;
    let beyond = text.char_indices().find(|(_, c)| {
        used += bytes_of(*c);
        used > room
    });
    match beyond {
        None => text,
        Some((at, _)) => format!("{}\n[cut here: {} more bytes were printed]\n", &text[..at], text.len() - at),
    }
}

/// Bytes of a character within JSON; of a few, less than that.
fn bytes_of(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' => 2,
        c if c.is_ascii_control() => 6,
        c => c.len_utf8(),
    }
}

fn start(config: &CodeConfig, folder: &Path) -> Result<Group, ActionFailure> {
    let program = config.deno.clone().unwrap_or_else(|| PathBuf::from("deno"));
    let mut command = Command::new(&program);
    command.args(["run", "--quiet", "--no-prompt", "--no-config", "--no-lock", "--no-remote", "--no-npm"]);
    command.arg(format!("--v8-flags=--max-old-space-size={HEAP_MB}"));
    for access in ["read", "write"] {
        command.arg(format!("--allow-{access}={}", folder.display()));
    }
    if !config.allow_net.is_empty() {
        command.arg(format!("--allow-net={}", config.allow_net.join(",")));
    }
    command.arg(FILE);
    command.env_clear().env("HOME", folder).env("DENO_DIR", folder.join(".deno")).env("NO_COLOR", "1");
    // Deno finds itself by its path only when it is not named whole.
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let group = Group::start(&mut command).map_err(|error| {
        let message = match error.kind() {
            std::io::ErrorKind::NotFound => format!(
                "this fleet cannot run code: {} is not installed on its executors. An operator can install Deno and \
                 name it in STEPFLEET_DENO; go on without it",
                program.display()
            ),
            _ => format!("{} cannot be started: {error}", program.display()),
        };
        let failure = ActionFailure::business(ToolErrorCode::NotFound, message);
        ActionFailure { may_have_happened: false, ..failure }
    })?;
    if let Err(error) = group.bound_memory(MEMORY_BYTES) {
        tracing::warn!(%error, "the memory of a program has no bound but its heap's");
    }
    // Whoever writes fast is ended before the next look at the folder.
    if let Err(error) = group.bound_file(2 * CODE_FILES_BYTES_MAX) {
        tracing::warn!(%error, "a file of a program has no bound but that of its folder");
    }
    Ok(group)
}

/// What it printed: its output, and beside it its errors.
async fn outcome(group: &mut Group, bridge: &Bridge<'_>) -> Result<(String, String), ActionFailure> {
    let broken = |what: &str| ActionFailure::business(ToolErrorCode::InternalError, format!("the sandbox {what}"));
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (group.child.stdin.take(), group.child.stdout.take(), group.child.stderr.take())
    else {
        return Err(broken("has no standard streams"));
    };
    // The first limit that is passed ends it: a program need not notice that nobody listens.
    let (stdout, stderr) = tokio::try_join!(bridge.serve(stdin, stdout), take(stderr, bridge))?;
    let status = group.child.wait().await.map_err(|_| broken("was lost"))?;
    if status.success() {
        return Ok((stdout, stderr));
    }
    let how = status.code().map_or_else(|| "was killed".to_owned(), |code| format!("ended with status {code}"));
    let told = if stderr.is_empty() { &stdout } else { &stderr };
    Err(ActionFailure::business(ToolErrorCode::ExecutionFailed, format!("the program {how}: {told}")))
}

/// All that a stream says, within the limit of both.
pub(super) async fn take(mut stream: impl AsyncRead + Unpin, bridge: &Bridge<'_>) -> Result<String, ActionFailure> {
    let (mut bytes, mut piece) = (Vec::new(), vec![0_u8; PIECE_BYTES]);
    loop {
        let read = stream.read(&mut piece).await.map_err(|error| unreadable(&error))?;
        if read == 0 {
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
        bridge.count_printed(read)?;
        bytes.extend_from_slice(&piece[..read]);
    }
}

fn printed_too_much() -> ActionFailure {
    let message = format!("the program said more than {CODE_OUTPUT_BYTES_MAX} bytes; print less");
    ActionFailure::business(ToolErrorCode::ExecutionFailed, message)
}

fn unreadable(error: &std::io::Error) -> ActionFailure {
    ActionFailure::business(ToolErrorCode::InternalError, format!("the sandbox cannot be read: {error}"))
}

/// A program behind its prelude, in one line with it, so that the lines of the program keep their numbers.
pub(super) fn source(code: &str) -> String {
    // A line that names an interpreter is one only where a file begins; here, it becomes a comment.
    let (comment, rest) = code.strip_prefix("#!").map_or(("", code), |rest| ("//", rest));
    format!("{} {comment}{rest}", PRELUDE.replace('\n', " "))
}
