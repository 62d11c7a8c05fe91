//! One process of the fleet: started, signalled, stopped, and started again.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::process::{Child, Command};

const POLL: Duration = Duration::from_millis(20);
/// Until a process is ready, or has ended after SIGTERM, on a machine that does other things too.
pub const PATIENCE: Duration = Duration::from_secs(75);

/// How to start it.
#[derive(Debug, Clone)]
pub struct Recipe {
    pub name: String,
    pub binary: PathBuf,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    /// Its directory, log and ready file.
    pub dir: PathBuf,
}

pub struct Member {
    recipe: Recipe,
    child: Option<Child>,
    worker: Option<String>,
}

impl Member {
    pub fn new(recipe: Recipe) -> Self {
        Self { recipe, child: None, worker: None }
    }

    fn ready_file(&self) -> PathBuf {
        self.recipe.dir.join("run").join(format!("{}.ready", self.recipe.name))
    }

    /// Starts the process and does not wait for it.
    ///
    /// # Errors
    /// The binary cannot be started.
    pub fn start(&mut self) -> Result<()> {
        if self.child.is_some() {
            return Ok(());
        }
        self.worker = None;
        drop(std::fs::remove_file(self.ready_file()));
        let log = self.recipe.dir.join("log").join(format!("{}.log", self.recipe.name));
        let log = std::fs::OpenOptions::new().create(true).append(true).open(log)?;
        // It must not outlive the harness, however that ends.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(&self.recipe.binary).args(&self.recipe.args);
        command.arg("--ready-file").arg(self.ready_file());
        command.env_clear().envs(&self.recipe.env).current_dir(&self.recipe.dir);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).kill_on_drop(true);
        self.child = Some(command.spawn().context("setpriv and stepfleet")?);
        Ok(())
    }

    /// Waits until it says that it is ready.
    ///
    /// # Errors
    /// It ended, or is not ready in time.
    pub async fn await_ready(&mut self) -> Result<()> {
        let started = Instant::now();
        loop {
            if self.look_ready() {
                return Ok(());
            }
            if let Some(status) = self.ended() {
                bail!("{} ended instead of getting ready: {status}", self.recipe.name);
            }
            if started.elapsed() > PATIENCE {
                bail!("{} is not ready after {PATIENCE:?}", self.recipe.name);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Reads the ready file, if it is there.
    fn look_ready(&mut self) -> bool {
        let Ok(text) = std::fs::read_to_string(self.ready_file()) else { return false };
        let Ok(facts) = serde_json::from_str::<Value>(&text) else { return false };
        self.worker = facts["worker_id"].as_str().map(str::to_owned);
        true
    }

    /// The id it works under, once it is ready.
    pub fn worker(&mut self) -> Option<String> {
        if self.worker.is_none() {
            self.look_ready();
        }
        self.worker.clone()
    }

    /// How it ended by itself; nothing if it runs or was not started.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.as_mut()?.try_wait().ok().flatten()?;
        self.child = None;
        Some(status)
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = self.child.as_ref().and_then(Child::id).and_then(|pid| Pid::from_raw(pid.cast_signed()));
        kill_process(pid.context("it does not run")?, signal).context("the signal")
    }

    /// SIGKILL.
    pub async fn kill(&mut self) -> Result<()> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        child.kill().await.context("SIGKILL")
    }

    /// SIGTERM; says how long the end took.
    ///
    /// # Errors
    /// It did not end in time, and was killed; or it ended with an error.
    pub async fn stop(&mut self) -> Result<Duration> {
        if self.child.is_none() {
            return Ok(Duration::ZERO);
        }
        self.signal(Signal::CONT).and_then(|()| self.signal(Signal::TERM))?;
        let started = Instant::now();
        let Some(mut child) = self.child.take() else { return Ok(Duration::ZERO) };
        let name = &self.recipe.name;
        match tokio::time::timeout(PATIENCE, child.wait()).await {
            Ok(status) => {
                let status = status.context("its end")?;
                if !status.success() {
                    bail!("{name} was asked to end, and ended with {status}");
                }
                Ok(started.elapsed())
            }
            Err(_) => {
                child.kill().await.context("SIGKILL")?;
                bail!("{name} has not ended {PATIENCE:?} after SIGTERM")
            }
        }
    }
}
