//! Reads the configuration from named variables. The lookup is a parameter: tests bring a map.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Account, Profile, ProvidersConfig, Secret, Vendor};

impl ProvidersConfig {
    /// Takes `ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, `GEMINI_API_KEY` or `GOOGLE_API_KEY`, the
    /// matching `…_BASE_URL`, `STEPFLEET_MODEL`, `STEPFLEET_SCRIPT`, `STEPFLEET_SCRIPT_RECORD` and
    /// `STEPFLEET_ALLOW_PATHS` (folders, separated by `:`). `allow_private` is the host's to set.
    pub fn from_env(lookup: impl Fn(&str) -> Option<String>, profiles: BTreeMap<String, Profile>) -> Self {
        let set = |name: &str| lookup(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let account = |keys: &[&str], base_url: &str| Account {
            key: keys.iter().find_map(|name| set(name)).and_then(|key| Secret::new(&key)),
            base_url: set(base_url),
        };
        let accounts = BTreeMap::from([
            (Vendor::Anthropic, account(&["ANTHROPIC_API_KEY"], "ANTHROPIC_BASE_URL")),
            (Vendor::Openai, account(&["OPENAI_API_KEY"], "OPENAI_BASE_URL")),
            (Vendor::Gemini, account(&["GEMINI_API_KEY", "GOOGLE_API_KEY"], "GEMINI_BASE_URL")),
        ]);
        let own_key = |profile: &Profile| Secret::new(&set(profile.api_key_env.as_deref()?)?);
        let profile_keys =
            profiles.iter().filter_map(|(name, profile)| Some((name.clone(), own_key(profile)?))).collect();
        Self {
            accounts,
            model: set("STEPFLEET_MODEL"),
            profiles,
            profile_keys,
            script: set("STEPFLEET_SCRIPT").map(PathBuf::from),
            script_record: set("STEPFLEET_SCRIPT_RECORD").map(PathBuf::from),
            allow_private: false,
            allow_paths: set("STEPFLEET_ALLOW_PATHS")
                .map(|list| list.split(':').filter(|path| !path.is_empty()).map(PathBuf::from).collect()),
        }
    }
}
