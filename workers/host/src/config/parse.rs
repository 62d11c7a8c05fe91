//! From text to typed values, gathering every problem.

use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use domain::tool::{pool_name, variable_name};
use schemas::definition::NamespaceBudget;
use schemas::id::Namespace;
use schemas::limits::SHARDS_MAX;
use serde::de::DeserializeOwned;

use super::layers::{Layers, NAMES, Setting, merge, nearest};
use super::{Config, Database, Embedding, History, McpServer, ModelProfile, Problem, Problems, place};
use crate::secret::Secret;
use crate::telemetry;

const DATA_DIR: &str = "stepfleet-data";
const LISTEN: &str = "127.0.0.1:7070";
/// Shorter ones can be guessed.
const TOKEN_CHARS_MIN: usize = 16;
const PROVIDERS: &[&str] = &["anthropic", "openai", "openai_responses", "gemini", SCRIPTED];
/// It has no models to choose from.
const SCRIPTED: &str = "scripted";

struct Reader {
    settings: BTreeMap<&'static str, Setting>,
    problems: Vec<Problem>,
}

pub fn config(layers: &Layers) -> Result<Config, Problems> {
    let mut problems = Vec::new();
    let (table, Sections { models, embedding, mcp, budgets }) = file(layers, &mut problems);
    let settings = merge(layers, &table, &mut problems);
    let mut reader = Reader { settings, problems };
    let data_dir = PathBuf::from(reader.text("data_dir").unwrap_or_else(|| DATA_DIR.into()));
    let config = Config {
        database: reader
            .hidden("database_url", Database::parse)
            .unwrap_or_else(|| Database::Sqlite(data_dir.join("ledger.db"))),
        amqp: reader.hidden("amqp_url", place::amqp),
        history: reader
            .parse("history_uri", History::parse)
            .unwrap_or_else(|| History::Directory(data_dir.join("history"))),
        worker_listen: reader.parse("worker_listen", address),
        step_log: reader.text("step_log").map(PathBuf::from),
        data_dir,
        listen: reader.parse("listen", address).unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 7070))),
        token: reader.token(),
        script: reader.parse("script", existing_file),
        allow_private: reader.parse("allow_private", yes_or_no),
        shards: reader.parse("shards", shards),
        log: reader.parse("log", |text| telemetry::parse_filter(text).map(|_| text.to_owned())).unwrap_or_default(),
        model: reader.parse("model", provider_and_model),
        models,
        embedding,
        mcp,
        budgets,
        task_pools: reader.parse("task_pools", pools).unwrap_or_default(),
        deno: reader.parse("deno", existing_file),
        code_hosts: reader.parse("code_hosts", hosts).unwrap_or_default(),
        http_env: reader.hidden("http_env", variables).unwrap_or_default(),
    };
    if reader.problems.is_empty() { Ok(config) } else { Err(Problems(reader.problems)) }
}

impl Reader {
    fn text(&self, name: &str) -> Option<String> {
        self.settings.get(name).map(|setting| setting.text.clone())
    }

    fn refuse(&mut self, name: &str, value: String, remedy: impl Into<String>) {
        let origin = self.settings.get(name).map_or_else(|| name.to_owned(), |setting| setting.origin.clone());
        self.problems.push(Problem { origin, value, remedy: remedy.into() });
    }

    fn parse<T>(&mut self, name: &'static str, read: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        let text = self.text(name)?;
        read(&text).map_err(|remedy| self.refuse(name, text, remedy)).ok()
    }

    /// As [`Reader::parse`], for what may hold a password: it is never repeated.
    fn hidden<T>(&mut self, name: &'static str, read: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        let text = self.text(name)?;
        read(&text).map_err(|remedy| self.refuse(name, String::new(), remedy)).ok()
    }

    /// Like the others, but its value is never repeated.
    fn token(&mut self) -> Option<Secret> {
        let text = self.text("token")?;
        let remedy = if text.chars().count() < TOKEN_CHARS_MIN {
            format!("is too short to be safe; use at least {TOKEN_CHARS_MIN} characters")
        } else if !text.chars().all(|c| c.is_ascii_graphic()) {
            "must be printable ASCII without spaces, as it travels in a header".into()
        } else {
            return Some(Secret::new(text));
        };
        self.refuse("token", String::new(), remedy);
        None
    }
}

/// What of the file is more than a single value.
#[derive(Default)]
struct Sections {
    models: BTreeMap<String, ModelProfile>,
    embedding: Option<Embedding>,
    mcp: BTreeMap<String, McpServer>,
    budgets: BTreeMap<Namespace, NamespaceBudget>,
}

/// The file's settings, and its sections.
fn file(layers: &Layers, problems: &mut Vec<Problem>) -> (toml::Table, Sections) {
    let Some((path, text)) = &layers.file else { return Default::default() };
    let path = path.display().to_string();
    let mut refuse = |value: String, remedy: String| {
        problems.push(Problem {
            origin: format!("{value}{}{path}", if value.is_empty() { "" } else { " in " }),
            value: String::new(),
            remedy,
        });
    };
    let mut table = match text.parse::<toml::Table>() {
        Ok(table) => table,
        Err(error) => {
            refuse(String::new(), format!("is not TOML: {}", error.to_string().trim_end()));
            return Default::default();
        }
    };
    let sections = Sections {
        models: section(&mut table, "models", &mut refuse),
        embedding: section(&mut table, "embedding", &mut refuse),
        mcp: section(&mut table, "mcp", &mut refuse),
        budgets: section(&mut table, "budgets", &mut refuse),
    };
    for (name, budget) in &sections.budgets {
        if [budget.each.max_seconds_per_turn, budget.each.max_seconds_per_session].contains(&Some(0)) {
            refuse(format!("budgets.{name}"), "seconds must be numbers from 1 on".into());
        }
        let costs = [budget.max_cost, budget.each.max_cost_per_turn, budget.each.max_cost_per_session];
        if costs.into_iter().flatten().any(|cost| !cost.is_finite() || cost < 0.0) {
            refuse(format!("budgets.{name}"), "costs must be numbers from 0 on".into());
        }
    }
    for (name, server) in &sections.mcp {
        if server.command.is_some() == server.url.is_some() {
            refuse(format!("mcp.{name}"), "give either command, for a program, or url, for a server over HTTP".into());
        }
    }
    for (name, profile) in &sections.models {
        if !PROVIDERS.contains(&profile.provider.as_str()) {
            let known = PROVIDERS.join(", ");
            refuse(
                format!("models.{name}.provider"),
                format!("{:?} is no provider; known are {known}", profile.provider),
            );
        }
    }
    for (key, value) in &table {
        if !NAMES.contains(&key.as_str()) {
            let nearest = nearest(key, NAMES.iter().copied().chain(["models", "embedding", "mcp", "budgets"]));
            refuse(key.clone(), format!("is no setting; did you mean {nearest}?"));
        } else if value.is_table() || value.is_array() {
            refuse(key.clone(), "must be a single value".into());
        }
    }
    (table, sections)
}

/// Takes a section out of the file; what is wrong with it is refused.
fn section<T: DeserializeOwned + Default>(
    table: &mut toml::Table,
    name: &str,
    refuse: &mut impl FnMut(String, String),
) -> T {
    let Some(value) = table.remove(name) else { return T::default() };
    value.try_into().unwrap_or_else(|error: toml::de::Error| {
        refuse(name.to_owned(), error.to_string().trim_end().to_owned());
        T::default()
    })
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let remedy = || format!("is no address to listen on; use host:port, as in {LISTEN} (port 0 = any free one)");
    text.to_socket_addrs().map_err(|_| remedy())?.next().ok_or_else(remedy)
}

fn existing_file(text: &str) -> Result<PathBuf, String> {
    match std::fs::metadata(text) {
        Ok(meta) if meta.is_file() => Ok(text.into()),
        Ok(_) => Err("is not a file".into()),
        Err(cause) => Err(format!("cannot be read: {cause}")),
    }
}

fn pools(text: &str) -> Result<Vec<String>, String> {
    let pools: Vec<String> =
        text.split(',').map(|pool| pool.trim().to_owned()).filter(|pool| !pool.is_empty()).collect();
    for pool in &pools {
        let own = Namespace::default_ns();
        let (namespace, name) = pool.rsplit_once(':').unwrap_or((own.as_str(), pool));
        Namespace::parse(namespace).map_err(|error| format!("the namespace of {pool:?} {error}"))?;
        pool_name(name).map_err(|why| format!("the pool of {pool:?} {why}"))?;
    }
    Ok(pools)
}

fn hosts(text: &str) -> Result<Vec<String>, String> {
    let hosts: Vec<String> =
        text.split(',').map(|host| host.trim().to_owned()).filter(|host| !host.is_empty()).collect();
    match hosts.iter().find(|host| !is_host(host)) {
        Some(host) => Err(format!("{host:?} is no host; use names as in api.example.org, separated by commas")),
        None => Ok(hosts),
    }
}

fn is_host(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']'))
}

/// Variables and hosts. What is wrong is told by its place: it may be the value itself that stands there.
fn variables(text: &str) -> Result<Vec<(String, String)>, String> {
    let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let read = |(index, entry): (usize, &str)| {
        let pair = entry.split_once('@').filter(|(name, host)| {
            let below = host.strip_prefix("*.").unwrap_or(host);
            // A port would be taken for part of the name: a host is meant with all its ports.
            let is_name = is_host(below) && (!below.contains(':') || below.starts_with('['));
            variable_name(name).is_ok() && !below.is_empty() && is_name
        });
        let (name, host) = pair.ok_or_else(|| {
            let number = index + 1;
            format!("use VARIABLE@host, as in CRM_TOKEN@crm.example.org, separated by commas; number {number} is none")
        })?;
        Ok((name.to_owned(), host.to_owned()))
    };
    entries.enumerate().map(read).collect()
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err("use true or false".into()),
    }
}

fn shards(text: &str) -> Result<u16, String> {
    match text.parse::<u16>() {
        Ok(count) if (1..=SHARDS_MAX).contains(&count) => Ok(count),
        _ => Err(format!("use a number from 1 to {SHARDS_MAX}")),
    }
}

fn provider_and_model(text: &str) -> Result<String, String> {
    let known = text
        .split_once('/')
        .is_some_and(|(provider, model)| PROVIDERS.contains(&provider) && provider != SCRIPTED && !model.is_empty());
    if known || text == SCRIPTED {
        return Ok(text.to_owned());
    }
    let known: Vec<&str> = PROVIDERS.iter().copied().filter(|provider| *provider != SCRIPTED).collect();
    Err(format!("use provider/model with one of the providers {}, or {SCRIPTED}", known.join(", ")))
}
