//! Reads the configuration from named variables. The lookup is a parameter: tests bring a map.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Account, EmbeddingConfig, Profile, ProvidersConfig, Secret, Vendor};

impl ProvidersConfig {
    /// Takes `ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, `GEMINI_API_KEY` or `GOOGLE_API_KEY` (each also as
    /// `…_FILE`, a file that holds the key), the matching `…_BASE_URL`, `STEPFLEET_MODEL`,
    /// `STEPFLEET_EMBEDDING`, `STEPFLEET_SCRIPT`, `STEPFLEET_SCRIPT_RECORD` and `STEPFLEET_ALLOW_PATHS` (folders, separated by
    /// `:`). `allow_private` is the host's to set.
    pub fn from_env(lookup: impl Fn(&str) -> Option<String>, profiles: BTreeMap<String, Profile>) -> Self {
        let set = |name: &str| lookup(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let mut key_problems = Vec::new();
        let mut account = |keys: &[&str], base_url: &str| {
            let in_variable = keys.iter().find_map(|name| Secret::new(&set(name)?));
            let in_file = || {
                let (name, path) =
                    keys.iter().find_map(|name| Some((format!("{name}_FILE"), set(&format!("{name}_FILE"))?)))?;
                key_in(Path::new(&path)).map_err(|problem| key_problems.push(format!("{name}: {problem}"))).ok()
            };
            Account { key: in_variable.or_else(in_file), base_url: set(base_url) }
        };
        let accounts = BTreeMap::from([
            (Vendor::Anthropic, account(&["ANTHROPIC_API_KEY"], "ANTHROPIC_BASE_URL")),
            (Vendor::Openai, account(&["OPENAI_API_KEY"], "OPENAI_BASE_URL")),
            (Vendor::Gemini, account(&["GEMINI_API_KEY", "GOOGLE_API_KEY"], "GEMINI_BASE_URL")),
        ]);
        let mut profile_keys = BTreeMap::new();
        for (name, profile) in &profiles {
            let in_variable = profile.api_key_env.as_deref().and_then(|variable| Secret::new(&set(variable)?));
            let key = match (&in_variable, &profile.api_key_file) {
                (None, Some(path)) => key_in(path)
                    .map_err(|problem| key_problems.push(format!("models.{name}.api_key_file: {problem}")))
                    .ok(),
                _ => in_variable,
            };
            profile_keys.extend(key.map(|key| (name.clone(), key)));
        }
        Self {
            accounts,
            model: set("STEPFLEET_MODEL"),
            profiles,
            profile_keys,
            key_problems,
            embedding: EmbeddingConfig::from_env(&lookup, None),
            script: set("STEPFLEET_SCRIPT").map(PathBuf::from),
            script_record: set("STEPFLEET_SCRIPT_RECORD").map(PathBuf::from),
            allow_private: false,
            allow_paths: set("STEPFLEET_ALLOW_PATHS")
                .map(|list| list.split(':').filter(|path| !path.is_empty()).map(PathBuf::from).collect()),
        }
    }
}

/// A key's file may end with a line break, as editors make it.
pub(super) fn key_in(path: &Path) -> Result<Secret, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Secret::new(&text).ok_or_else(|| format!("{} is empty; it must hold the key", path.display()))
}
