//! Where settings come from, and which one counts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Problem;

/// All settings, in the order of the documentation. The environment has them as
/// `STEPFLEET_<NAME>`, flags as `--<name>` with dashes.
pub const NAMES: &[&str] = &[
    "data_dir",
    "database_url",
    "amqp_url",
    "history_uri",
    "listen",
    "worker_listen",
    "token",
    "script",
    "allow_private",
    "shards",
    "log",
    "model",
    "step_log",
    "task_pools",
    "deno",
    "code_hosts",
    "http_env",
];

/// Other variables that start with `STEPFLEET_`: for the scripts, the command line and the providers.
const NOT_SETTINGS: &[&str] = &[
    "STEPFLEET_CONFIG",
    "STEPFLEET_TARGET_DIR",
    "STEPFLEET_URL",
    "STEPFLEET_BIN",
    "STEPFLEET_SCRIPT_RECORD",
    "STEPFLEET_ALLOW_PATHS",
    "STEPFLEET_EMBEDDING",
];

const FILE: &str = "stepfleet.toml";

/// The raw layers, gathered by the caller so that reading them needs no global state.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    /// Path and text of the file.
    pub file: Option<(PathBuf, String)>,
    pub env: BTreeMap<String, String>,
    /// By setting name, as given on the command line.
    pub flags: BTreeMap<&'static str, String>,
}

impl Layers {
    /// The layers of this process. The file is the given one, else `STEPFLEET_CONFIG`, else
    /// `stepfleet.toml` in the working directory if there is one.
    ///
    /// # Errors
    /// A named file cannot be read.
    pub fn of_process(file: Option<&Path>, flags: BTreeMap<&'static str, String>) -> Result<Self, Problem> {
        let env: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(key, value)| Some((key.into_string().ok()?, value.to_string_lossy().into_owned())))
            .collect();
        let named = file.map(Path::to_owned).or_else(|| env.get("STEPFLEET_CONFIG").map(PathBuf::from));
        let path = named.clone().unwrap_or_else(|| PathBuf::from(FILE));
        let file = match std::fs::read_to_string(&path) {
            Ok(text) => Some((path, text)),
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound && named.is_none() => None,
            Err(cause) => {
                return Err(Problem {
                    origin: "the configuration file".into(),
                    value: path.display().to_string(),
                    remedy: format!("cannot be read: {cause}"),
                });
            }
        };
        Ok(Self { file, env, flags })
    }
}

/// A setting's text and where it was said.
#[derive(Debug, Clone)]
pub struct Setting {
    pub text: String,
    pub origin: String,
}

/// The setting that counts, for each name that is set at all.
pub fn merge(layers: &Layers, table: &toml::Table, problems: &mut Vec<Problem>) -> BTreeMap<&'static str, Setting> {
    let mut settings = BTreeMap::new();
    for name in NAMES {
        let from_file = table.get(*name).map(|value| Setting {
            text: plain(value),
            origin: format!(
                "{name} in {}",
                layers.file.as_ref().map_or(FILE.into(), |file| file.0.display().to_string())
            ),
        });
        let variable = format!("STEPFLEET_{}", name.to_uppercase());
        let from_env = layers.env.get(&variable).map(|text| Setting { text: text.clone(), origin: variable });
        let flag = format!("--{}", name.replace('_', "-"));
        let from_flag = layers.flags.get(name).map(|text| Setting { text: text.clone(), origin: flag });
        if let Some(setting) = from_flag.or(from_env).or(from_file) {
            settings.insert(*name, setting);
        }
    }
    unknown_variables(layers, problems);
    settings
}

fn unknown_variables(layers: &Layers, problems: &mut Vec<Problem>) {
    let known: Vec<String> = NAMES.iter().map(|name| format!("STEPFLEET_{}", name.to_uppercase())).collect();
    for (key, value) in &layers.env {
        let ours = key.starts_with("STEPFLEET_") && !NOT_SETTINGS.contains(&key.as_str());
        if ours && !known.contains(key) {
            let nearest = nearest(key, known.iter().map(String::as_str));
            let remedy = format!("is no setting; did you mean {nearest}? Unset it otherwise");
            let value = if nearest == "STEPFLEET_TOKEN" { String::new() } else { value.clone() };
            problems.push(Problem { origin: key.clone(), value, remedy });
        }
    }
}

/// The known name with the smallest edit distance.
pub fn nearest<'n>(given: &str, known: impl Iterator<Item = &'n str>) -> &'n str {
    known.min_by_key(|name| distance(given, name)).unwrap_or_default()
}

fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let change = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

fn plain(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
