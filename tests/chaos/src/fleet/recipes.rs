//! How each process is started, and the files that the run needs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use rand::Rng;
use serde_json::{Value, json};

use super::member::Recipe;
use super::{Fleet, agents};
use crate::plan::{ARCHIVIST, CLOCKS, EXECUTOR, Service, Shape, stories};

/// Begins the names of the files in which workers note the steps that they run.
pub const RAN: &str = "ran-";

/// What every process is told.
pub fn common(fleet: &Fleet) -> BTreeMap<String, String> {
    let own = |name: &str| (name.to_owned(), std::env::var(name).unwrap_or_default());
    let mut env: BTreeMap<String, String> = ["PATH", "HOME"].map(own).into();
    let path = |path: PathBuf| path.to_string_lossy().into_owned();
    let set = [
        ("STEPFLEET_HISTORY_URI", path(fleet.dir.join("history").join("tables"))),
        ("STEPFLEET_TOKEN", fleet.token.clone()),
        ("STEPFLEET_ALLOW_PRIVATE", "true".to_owned()),
        ("STEPFLEET_LOG", "info".to_owned()),
    ];
    env.extend(set.map(|(name, value)| (name.to_owned(), value)));
    // It says where the history is, too.
    env.extend(fleet.bucket.iter().flat_map(|bucket| bucket.env.clone()));
    env
}

/// Where a process reads how it reaches a service.
pub fn variable(service: Service) -> &'static str {
    match service {
        Service::Postgres => "STEPFLEET_DATABASE_URL",
        Service::Rabbitmq => "STEPFLEET_AMQP_URL",
        Service::Bucket => "AWS_ENDPOINT_URL",
    }
}

/// The process of that name: its kind is what the name begins with. `urls` lead it to the services.
pub fn recipe(fleet: &Fleet, name: &str, urls: BTreeMap<String, String>) -> Recipe {
    let dir = fleet.dir.clone();
    let mut env = common(fleet);
    env.extend(urls);
    let listen = fleet.listen.get(name).cloned().unwrap_or_default();
    let script = dir.join("script.json").to_string_lossy().into_owned();
    let record = dir.join("run").join(format!("{}{name}.jsonl", agents::RECORD)).to_string_lossy().into_owned();
    let data = dir.join("data").join(name).to_string_lossy().into_owned();
    let ran = dir.join("run").join(format!("{RAN}{name}")).to_string_lossy().into_owned();
    let set = [("STEPFLEET_DATA_DIR", data), ("STEPFLEET_SCRIPT", script), ("STEPFLEET_SCRIPT_RECORD", record)];
    env.extend(set.map(|(name, value)| (name.to_owned(), value)));
    let roles = match name {
        ARCHIVIST => "archivist",
        EXECUTOR => "executor",
        // So that the archivist has somebody to fail over to.
        "worker-1" => "runner,executor,archivist",
        _ => "runner,executor",
    };
    let args: Vec<String> = if name.starts_with("dispatcher") {
        env.insert("STEPFLEET_LISTEN".into(), listen);
        vec!["dispatcher".into()]
    } else {
        env.insert("STEPFLEET_WORKER_LISTEN".into(), listen);
        env.insert("STEPFLEET_STEP_LOG".into(), ran);
        vec!["worker".into(), "--roles".into(), roles.into()]
    };
    if let Some(library) = fleet.clock.as_ref().filter(|_| CLOCKS.contains(&name)) {
        env.extend(clock(library, &clock_file(&dir, name)));
    }
    Recipe { name: name.to_owned(), binary: fleet.binary.clone(), args, env, dir }
}

/// Where the offset of a clock that can be set stands.
pub fn clock_file(dir: &Path, process: &str) -> PathBuf {
    dir.join("run").join(format!("clock-{process}"))
}

/// Only the time of day is another one, not what measures durations.
fn clock(library: &Path, file: &Path) -> BTreeMap<String, String> {
    [
        ("LD_PRELOAD", library.to_string_lossy().into_owned()),
        ("FAKETIME_TIMESTAMP_FILE", file.to_string_lossy().into_owned()),
        ("FAKETIME_CACHE_DURATION", "1".to_owned()),
        ("DONT_FAKE_MONOTONIC", "1".to_owned()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ("NO_FAKE_STAT", "1".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// libfaketime, if it is installed and does what it should.
pub fn clock_library() -> Option<PathBuf> {
    let library = ["x86_64-linux-gnu", "aarch64-linux-gnu"]
        .map(|arch| Path::new("/usr/lib").join(arch).join("faketime/libfaketimeMT.so.1"))
        .into_iter()
        .find(|path| path.is_file())?;
    let year = Command::new("date").arg("+%Y").env("LD_PRELOAD", &library).env("FAKETIME", "+3650d").output().ok()?;
    let year: i64 = String::from_utf8_lossy(&year.stdout).trim().parse().ok()?;
    (year >= i64::from(chrono::Datelike::year(&chrono::Utc::now())) + 9).then_some(library)
}

/// A port that was free a moment ago, so that a process can come back under its address. Each is given once.
pub fn free_port() -> Result<u16> {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut dice = rand::rng();
    // Below those that the kernel hands out to outgoing connections.
    let tries = std::iter::repeat_with(|| dice.random_range(20_000..32_000)).take(200);
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let port = tries.into_iter().find(|port| is_free(port) && given.insert(*port));
    port.context("no free TCP port between 20000 and 32000")
}

/// The provider's script, documents to digest, and the clocks.
pub fn write_files(dir: &Path, shape: &Shape) -> Result<()> {
    for process in CLOCKS {
        std::fs::write(clock_file(dir, process), "+0\n")?;
    }
    std::fs::write(dir.join("script.json"), script().to_string())?;
    let mut dice = shape.dice(3);
    for set in 0..stories::DIGEST_SETS {
        let folder = documents_root(dir).join(set.to_string());
        std::fs::create_dir_all(&folder)?;
        for n in 0..dice.random_range(2..6) {
            let words: Vec<&str> = (0..200).map(|_| WORDS[dice.random_range(0..WORDS.len())]).collect();
            let text: Vec<String> = words.chunks(9).map(|sentence| format!("The {}.", sentence.join(" "))).collect();
            std::fs::write(folder.join(format!("{n}.md")), format!("# Paper {n}\n\n{}\n", text.join(" ")))?;
        }
    }
    Ok(())
}

/// One folder for each set of documents to digest.
pub fn documents_root(dir: &Path) -> PathBuf {
    dir.join("documents")
}

const WORDS: [&str; 16] = [
    "river", "harbour", "winter", "ledger", "signal", "copper", "meadow", "lantern", "bridge", "cargo", "engine",
    "pilot", "tower", "market", "garden", "letter",
];

/// Replies with delays, failures of each class, and an end.
fn script() -> Value {
    let fails = |task: &str, call: u64, class: &str| json!({"when": {"contains": task, "call": call}, "reply": {"fail": {"class": class, "message": "as planned"}}});
    let frame = |delay_ms: u64| {
        json!({"frame": {"next_step": "s/{{n}}", "state": {"...": "{{state}}", "n": "{{n}}"}, "text": "did {{n}}"},
               "delay_ms": delay_ms})
    };
    let mut rules = agents::rules();
    for (n, class) in ["rate_limit", "overloaded", "cut", "rate_limit", "overloaded"].iter().enumerate() {
        rules.push(fails("task-flaky", 3 + 7 * n as u64, class));
    }
    rules.push(json!({"when": {"contains": "task-auth", "step": "s/2"},
                      "reply": {"fail": {"class": "auth", "message": "as planned"}}}));
    rules.push(json!({"when": {"step": "s/7"}, "reply": {"frame":
        {"next_step": "end", "state": {"...": "{{state}}"}, "text": "all done", "done": true}}}));
    rules.push(json!({"when": {"contains": "task-slow"}, "replies": [frame(400), frame(1_200), frame(50)]}));
    json!({"rules": rules, "otherwise": frame(60)})
}
