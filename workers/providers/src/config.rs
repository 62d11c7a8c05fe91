//! What the providers are configured with. Built by the host from the environment and
//! `stepfleet.toml`; all problems are found before anything starts.

mod choice;
mod embedding;
mod env;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use domain::chat::{Parameters, Prices};
use serde::Deserialize;

pub use choice::{Choice, Endpoint, SCRIPTED};
pub use embedding::{EmbedderChoice, EmbeddingConfig, EmbeddingSettings};

/// A key. Shown to nobody: not in logs, not in errors.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// `None` for blank text.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// Takes the key out of a text that the other side wrote.
    pub(crate) fn redact(&self, text: &str) -> String {
        text.replace(&self.0, "[key]")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Vendor {
    Anthropic,
    /// Chat Completions, of OpenAI or of any server that speaks it.
    Openai,
    Gemini,
    /// The Responses API, with OpenAI's account.
    OpenaiResponses,
}

impl Vendor {
    pub const ALL: [Vendor; 4] = [Self::Anthropic, Self::Openai, Self::Gemini, Self::OpenaiResponses];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Openai => "openai",
            Self::Gemini => "gemini",
            Self::OpenaiResponses => "openai_responses",
        }
    }

    /// Whose key and address it uses.
    pub fn account(self) -> Self {
        match self {
            Self::OpenaiResponses => Self::Openai,
            own => own,
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        let text = if text == "google" { "gemini" } else { text };
        Self::ALL.into_iter().find(|vendor| vendor.as_str() == text)
    }
}

/// A model profile, as in `[models.<name>]` of `stepfleet.toml`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// `anthropic`, `openai`, `openai_responses`, `gemini` or `scripted`.
    pub provider: String,
    pub model: String,
    #[serde(default)]
    pub base_url: Option<String>,
    /// Most output tokens of one answer; lowers what a step asks for, never raises it.
    #[serde(default)]
    pub max_tokens: Option<u32>,
    /// Environment variable that holds the key, if not the provider's usual one. That one goes to no `base_url` but
    /// the provider's own and the one in the environment.
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// File that holds the key, if no variable does.
    #[serde(default)]
    pub api_key_file: Option<PathBuf>,
    /// What requests leave open; further fields of the provider's body, too.
    #[serde(default)]
    pub parameters: Parameters,
    #[serde(default)]
    pub prices: Prices,
}

/// Key and address of a vendor, as far as the environment names them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    pub key: Option<Secret>,
    pub base_url: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProvidersConfig {
    pub accounts: BTreeMap<Vendor, Account>,
    /// `provider/model` of the default profile (`STEPFLEET_MODEL`).
    pub model: Option<String>,
    pub profiles: BTreeMap<String, Profile>,
    /// Keys of profiles that name their own variable or file.
    pub profile_keys: BTreeMap<String, Secret>,
    /// What is wrong with files of keys.
    pub key_problems: Vec<String>,
    /// What makes the vectors of memory search.
    pub embedding: EmbeddingConfig,
    /// File of the scripted provider (`STEPFLEET_SCRIPT`); it then answers for every profile.
    pub script: Option<PathBuf>,
    /// File that gets one JSON line per request of the scripted provider.
    pub script_record: Option<PathBuf>,
    /// Whether URLs of users may lead to loopback and private addresses.
    pub allow_private: bool,
    /// Folders that documents may be read from; absent = wherever this process may read.
    pub allow_paths: Option<Vec<PathBuf>>,
}

/// Everything that is wrong with a configuration, one line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblems(pub Vec<String>);

impl fmt::Display for ConfigProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for ConfigProblems {}
