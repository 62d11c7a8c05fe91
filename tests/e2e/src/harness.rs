//! Starts the binary on a free port with a data directory of its own, and talks to it.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Generous: two cores may be shared with a build.
pub const START_MAX: Duration = Duration::from_secs(60);
pub const STOP_MAX: Duration = Duration::from_secs(30);
/// How long a test waits for something to come true.
pub const WAIT_MAX: Duration = Duration::from_secs(30);
/// Steps read at a time: the most that the API gives.
const PAGE: usize = schemas::limits::PAGE_MAX;
/// How much of the log a failed test shows.
const LOG_LINES_SHOWN: usize = 30;
pub const POLL: Duration = Duration::from_millis(10);
/// An answer of `/health` may be nearly as old.
const HEALTH_KEPT: Duration = Duration::from_millis(600);

/// A fleet under test. Killed when dropped.
pub struct Harness {
    pub base_url: String,
    pub token: String,
    pub data_dir: PathBuf,
    scratch_dir: TempDir,
    args: Vec<String>,
    envs: Vec<(String, String)>,
    child: Option<std::process::Child>,
    http: reqwest::Client,
}

/// An answer, read whole.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: StatusCode,
    pub body: Value,
}

/// The binary: `STEPFLEET_BIN`, else the one beside this test.
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("STEPFLEET_BIN") {
        return path.into();
    }
    let test = std::env::current_exe().expect("this test has a path");
    let beside = test.ancestors().nth(2).expect("target/<profile>/deps/<test>").join("stepfleet");
    assert!(beside.is_file(), "{} is missing: cargo build -p stepfleet", beside.display());
    beside
}

/// The binary with nothing of this process's own settings.
pub fn command() -> Command {
    let mut command = Command::new(binary());
    for (key, _) in std::env::vars_os() {
        let name = key.to_string_lossy();
        if name.starts_with("STEPFLEET_") || name.ends_with("_API_KEY") || name.ends_with("_BASE_URL") {
            command.env_remove(&key);
        }
    }
    command
}

impl Harness {
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// With further flags of `up`.
    pub async fn start_with(args: &[&str]) -> Self {
        let scratch = TempDir::new().expect("a temporary directory");
        let data_dir = scratch.path().join("data");
        Self::start_on(scratch, data_dir, args).await
    }

    /// With variables of the environment.
    pub async fn start_in(envs: &[(&str, &str)]) -> Self {
        let scratch = TempDir::new().expect("a temporary directory");
        let mut harness = Self::new(scratch.path().join("data"), scratch, &[]);
        harness.envs.extend(envs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        harness.up().await;
        harness
    }

    /// On a data directory of the caller's.
    pub async fn start_on(scratch: TempDir, data_dir: PathBuf, args: &[&str]) -> Self {
        let mut harness = Self::new(data_dir, scratch, args);
        harness.up().await;
        harness
    }

    fn new(data_dir: PathBuf, scratch_dir: TempDir, args: &[&str]) -> Self {
        Self {
            base_url: String::new(),
            token: String::new(),
            data_dir,
            scratch_dir,
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            envs: crate::services::fresh(),
            child: None,
            http: http(),
        }
    }

    /// A client of a fleet that somebody else runs; `envs` are what commands are told of it.
    pub fn beside(data_dir: PathBuf, base_url: String, token: String, envs: Vec<(String, String)>) -> Self {
        let scratch_dir = TempDir::new().expect("a temporary directory");
        Self { base_url, token, data_dir, scratch_dir, args: Vec::new(), envs, child: None, http: http() }
    }

    /// A file beside the data directory.
    pub fn scratch(&self, name: &str) -> PathBuf {
        self.scratch_dir.path().join(name)
    }

    /// Starts the fleet on the data directory and waits until it is ready.
    pub async fn up(&mut self) {
        assert!(self.child.is_none(), "it runs already");
        let ready = self.scratch("ready.json");
        drop(std::fs::remove_file(&ready));
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.scratch("log")).expect("a log");
        let mut command = command();
        command.current_dir(self.scratch_dir.path()).arg("up").args(["--listen", "127.0.0.1:0"]);
        command.arg("--data-dir").arg(&self.data_dir).arg("--ready-file").arg(&ready).args(&self.args);
        command.envs(self.envs.iter().map(|(name, value)| (name, value)));
        let mut child = command.stdout(Stdio::null()).stderr(log).spawn().expect("the binary starts");
        let started = Instant::now();
        let text = loop {
            if let Ok(text) = std::fs::read_to_string(&ready) {
                break text;
            }
            if let Some(status) = child.try_wait().expect("a child") {
                panic!("up ended with {status}:\n{}", self.log());
            }
            assert!(started.elapsed() < START_MAX, "not ready after {START_MAX:?}:\n{}", self.log());
            tokio::time::sleep(POLL).await;
        };
        let ready: Value = serde_json::from_str(&text).expect("the ready file is JSON");
        self.base_url = ready["url"].as_str().expect("a url").to_owned();
        let token_file = ready["token_file"].as_str().expect("a token file");
        self.token = std::fs::read_to_string(token_file).expect("the token file").trim().to_owned();
        self.child = Some(child);
    }

    /// A variable of the environment that it was given.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.envs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// What the process logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.scratch("log")).unwrap_or_default()
    }

    /// SIGKILL: nothing is finished, nothing is cleaned up.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("SIGKILL");
            child.wait().expect("it is gone");
        }
    }

    /// SIGTERM, and what it ended with.
    pub async fn stop(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("it runs");
        signal(child.id(), "TERM");
        let asked = Instant::now();
        loop {
            if let Some(status) = child.try_wait().expect("a child") {
                return status;
            }
            if asked.elapsed() > STOP_MAX {
                child.kill().expect("SIGKILL");
                panic!("still there {STOP_MAX:?} after SIGTERM:\n{}", self.log());
            }
            tokio::time::sleep(POLL).await;
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// A request with the admin token; `Err` if no whole answer came.
    pub async fn try_request(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, reqwest::Error> {
        let mut request = self.http.request(method, format!("{}{path}", self.base_url)).bearer_auth(&self.token);
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await?;
        let status = response.status();
        let text = response.text().await?;
        Ok(Answer { status, body: serde_json::from_str(&text).unwrap_or(Value::String(text)) })
    }

    /// GET, which must succeed.
    pub async fn get(&self, path: &str) -> Value {
        let answer = self.try_request(Method::GET, path, None).await.expect("an answer");
        assert!(answer.status.is_success(), "GET {path}: {answer:?}");
        answer.body
    }

    /// POST, with whatever answer.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.try_request(Method::POST, path, Some(body)).await.expect("an answer")
    }

    /// An action that must be accepted; answers with the body of the 202.
    pub async fn act(&self, body: Value) -> Value {
        let answer = self.post("/api/actions", &body).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{body}: {}", answer.body);
        answer.body
    }

    pub async fn create(&self, session: &str, payload: Value) -> Value {
        let body = json!({ "type": "create", "session_id": session, "agent_id": format!("agent-of-{session}"), "payload": payload });
        self.act(body).await
    }

    /// A control action or an input for a session.
    pub async fn tell(&self, session: &str, verb: &str, payload: Value) -> Value {
        self.act(json!({ "type": verb, "session_id": session, "payload": payload })).await
    }

    pub async fn session(&self, session: &str) -> Value {
        self.get(&format!("/api/sessions/{session}")).await["session"].clone()
    }

    pub async fn status(&self, session: &str) -> String {
        self.session(session).await["status"].as_str().unwrap_or_default().to_owned()
    }

    /// All steps of a session, page by page, as of the last page.
    pub async fn steps(&self, session: &str) -> Vec<Value> {
        let mut steps = Vec::new();
        loop {
            let path = format!("/api/agent-steps?session_id={session}&limit={PAGE}&offset={}", steps.len());
            let page = self.get(&path).await;
            let items = page["items"].as_array().expect("items").clone();
            // A session that steps as fast as it is read has no empty page.
            let last = items.len() < PAGE;
            steps.extend(items);
            if last {
                return steps;
            }
        }
    }

    pub async fn wait_status(&self, session: &str, status: &str) {
        wait(&format!("{session} is {status}"), || async { (self.status(session).await == status).then_some(()) })
            .await;
    }

    /// Waits until a session has at least so many steps; answers with all there are.
    pub async fn wait_steps(&self, session: &str, count: usize) -> Vec<Value> {
        wait(&format!("{session} has {count} steps"), || async {
            let steps = self.steps(session).await;
            (steps.len() >= count).then_some(steps)
        })
        .await
    }

    /// Waits until an action is processed; answers with its ledger row.
    pub async fn wait_processed(&self, action: &str) -> Value {
        wait(&format!("{action} is processed"), || async {
            let row = self.get(&format!("/api/actions/{action}")).await;
            (row["processed"] == true).then_some(row)
        })
        .await
    }

    /// Waits until LanceDB has everything that was committed before.
    pub async fn wait_archived(&self) {
        tokio::time::sleep(HEALTH_KEPT).await;
        wait("everything is archived", || async {
            let health = self.get("/health").await;
            (health["journal_lag_rows"] == 0 && health["pending_actions"] == 0).then_some(())
        })
        .await;
    }

    /// Runs another command of the binary against this fleet: success, stdout, stderr.
    pub async fn cli(&self, args: &[&str]) -> (bool, String, String) {
        let mut command = command();
        command.envs(self.envs.iter().map(|(name, value)| (name, value)));
        run_command(command, self.scratch_dir.path(), &self.data_dir, args).await
    }
}

fn http() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().timeout(WAIT_MAX).build().expect("a client")
}

impl Drop for Harness {
    fn drop(&mut self) {
        self.kill();
        // A client of somebody else's fleet has no log.
        if std::thread::panicking() && self.scratch("log").exists() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let tail = &lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..];
            eprintln!("the end of the fleet's log:\n{}", tail.join("\n"));
            if std::env::var_os("E2E_KEEP").is_some() {
                self.scratch_dir.disable_cleanup(true);
                eprintln!("kept: {}", self.scratch_dir.path().display());
            }
        }
    }
}

/// Runs a command of the binary on a data directory.
pub async fn run(cwd: &Path, data_dir: &Path, args: &[&str]) -> (bool, String, String) {
    run_command(command(), cwd, data_dir, args).await
}

/// The same with a command that has been told more.
pub async fn run_command(mut command: Command, cwd: &Path, data_dir: &Path, args: &[&str]) -> (bool, String, String) {
    command.current_dir(cwd).args(args).arg("--data-dir").arg(data_dir).stdin(Stdio::null());
    let output =
        tokio::task::spawn_blocking(move || command.output()).await.expect("a thread").expect("the binary starts");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

pub fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").arg(format!("-{name}")).arg(pid.to_string()).status().expect("kill");
    assert!(status.success(), "kill -{name} {pid}");
}

/// Asks again until there is an answer; fails with `what` after [`WAIT_MAX`].
pub async fn wait<T, F: Future<Output = Option<T>>>(what: &str, mut ask: impl FnMut() -> F) -> T {
    let started = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(started.elapsed() < WAIT_MAX, "waited {WAIT_MAX:?} in vain: {what}");
        tokio::time::sleep(POLL).await;
    }
}

/// Fails unless the steps are one chain: iterations 0, 1, 2 …, each token the one announced before.
pub fn assert_chain(steps: &[Value]) {
    for (index, step) in steps.iter().enumerate() {
        assert_eq!(step["iteration"], index as u64, "iterations have no gap and no repeat: {step}");
        if index > 0 {
            assert_eq!(step["step_token"], steps[index - 1]["next_step_token"], "token chain at {index}");
        }
    }
}
