//! Which embedder makes the vectors of memory search.

use std::path::PathBuf;

use serde::Deserialize;

use super::env::key_in;
use super::{Endpoint, ProvidersConfig, Secret, Vendor};

const STATIC: &str = "static";
const OPENAI: &str = "openai";
/// The variable that chooses.
const VARIABLE: &str = "STEPFLEET_EMBEDDING";
const MODEL: &str = "text-embedding-3-small";

/// `[embedding]` of `stepfleet.toml`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmbeddingSettings {
    /// `static`, which needs no network (the default), or `openai`: the embeddings API of OpenAI, or
    /// of any server that speaks it.
    #[serde(default)]
    pub provider: Option<String>,
    /// Of the API only.
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub base_url: Option<String>,
    /// Environment variable that holds the key, if not `OPENAI_API_KEY`, which goes to OpenAI and to the server of
    /// `OPENAI_BASE_URL` alone.
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// File that holds the key, if no variable does.
    #[serde(default)]
    pub api_key_file: Option<PathBuf>,
    /// Asks the API for shorter vectors than its model's own.
    #[serde(default)]
    pub dimensions: Option<u32>,
}

/// Settings with what the environment says of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EmbeddingConfig {
    pub settings: EmbeddingSettings,
    /// Of the settings' own variable or file.
    pub key: Option<Secret>,
    /// What is wrong with them before anything is chosen.
    pub problems: Vec<String>,
}

/// What makes vectors.
#[derive(Debug, Clone, PartialEq)]
pub enum EmbedderChoice {
    Static,
    Api { endpoint: Box<Endpoint>, dimensions: Option<u32> },
}

impl EmbeddingConfig {
    /// `STEPFLEET_EMBEDDING` is `static` or `openai/<model>`, and goes before the section's provider
    /// and model.
    pub fn from_env(lookup: impl Fn(&str) -> Option<String>, section: Option<EmbeddingSettings>) -> Self {
        let set = |name: &str| lookup(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let mut config = Self { settings: section.unwrap_or_default(), ..Self::default() };
        match set(VARIABLE) {
            None => {}
            Some(text) if text == STATIC => config.settings.provider = Some(text),
            Some(text) => match text.split_once('/') {
                Some((OPENAI, model)) if !model.is_empty() => {
                    config.settings.provider = Some(OPENAI.to_owned());
                    config.settings.model = Some(model.to_owned());
                }
                _ => config.problems.push(format!("{VARIABLE}: must be {STATIC} or {OPENAI}/<model>, not {text:?}")),
            },
        }
        let in_variable = config.settings.api_key_env.as_deref().and_then(|variable| Secret::new(&set(variable)?));
        config.key = match (in_variable, &config.settings.api_key_file) {
            (None, Some(path)) => {
                key_in(path).map_err(|problem| config.problems.push(format!("embedding.api_key_file: {problem}"))).ok()
            }
            (key, _) => key,
        };
        config
    }
}

impl ProvidersConfig {
    /// Decides. Pure.
    ///
    /// # Errors
    /// All problems, each naming the setting and the remedy.
    pub fn choose_embedder(&self) -> Result<EmbedderChoice, Vec<String>> {
        let EmbeddingConfig { settings, key, problems } = &self.embedding;
        let mut problems = problems.clone();
        let provider = settings.provider.as_deref().unwrap_or(STATIC);
        let choice = match provider {
            STATIC => {
                let set = [
                    ("model", settings.model.is_some()),
                    ("base_url", settings.base_url.is_some()),
                    ("dimensions", settings.dimensions.is_some()),
                ];
                // The variable may choose the static model over a section that describes an API.
                for (name, _) in set.into_iter().filter(|(_, is_set)| *is_set && settings.provider.is_none()) {
                    problems.push(format!("embedding.{name}: is for provider = \"{OPENAI}\" only; set that too"));
                }
                Ok(EmbedderChoice::Static)
            }
            OPENAI => self.api(settings, key.clone()),
            other => Err(format!("embedding.provider: must be {STATIC} or {OPENAI}, not {other:?}")),
        };
        match choice {
            Ok(choice) if problems.is_empty() => Ok(choice),
            Ok(_) => Err(problems),
            Err(problem) => Err([problems, vec![problem]].concat()),
        }
    }

    fn api(&self, settings: &EmbeddingSettings, key: Option<Secret>) -> Result<EmbedderChoice, String> {
        if let (Some(variable), None) = (&settings.api_key_env, &key) {
            return Err(format!("embedding: {variable} is not set; it must hold the key"));
        }
        if settings.dimensions == Some(0) {
            return Err("embedding.dimensions: must be at least 1".to_owned());
        }
        let model = settings.model.as_deref().unwrap_or(MODEL);
        let endpoint = self.endpoint(Vendor::Openai, Some(model), settings.base_url.as_deref(), key);
        let endpoint = endpoint.map_err(|problem| format!("embedding: {problem}"))?;
        Ok(EmbedderChoice::Api { endpoint: Box::new(endpoint), dimensions: settings.dimensions })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn config(variables: &[(&str, &str)], section: EmbeddingSettings) -> ProvidersConfig {
        let lookup = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        let config = ProvidersConfig::from_env(lookup, BTreeMap::new());
        ProvidersConfig { embedding: EmbeddingConfig::from_env(lookup, Some(section)), ..config }
    }

    fn openai() -> EmbeddingSettings {
        EmbeddingSettings { provider: Some("openai".into()), ..EmbeddingSettings::default() }
    }

    fn words(config: &ProvidersConfig) -> String {
        match config.choose_embedder().expect("valid") {
            EmbedderChoice::Static => "static".to_owned(),
            EmbedderChoice::Api { endpoint, dimensions } => format!("{} {dimensions:?}", endpoint.in_words()),
        }
    }

    #[test]
    fn without_any_setting_no_network_is_needed() {
        assert_eq!(words(&config(&[], EmbeddingSettings::default())), "static");
        assert_eq!(words(&config(&[("OPENAI_API_KEY", "k")], EmbeddingSettings::default())), "static");
    }

    #[test]
    fn an_api_is_chosen_by_section_or_variable() {
        let key = ("OPENAI_API_KEY", "k");
        assert_eq!(words(&config(&[key], openai())), "openai (text-embedding-3-small) None");
        let variable = [key, ("STEPFLEET_EMBEDDING", "openai/text-embedding-3-large")];
        assert_eq!(words(&config(&variable, EmbeddingSettings::default())), "openai (text-embedding-3-large) None");
        let local = EmbeddingSettings {
            model: Some("nomic".into()),
            base_url: Some("http://127.0.0.1:11434/v1/".into()),
            dimensions: Some(64),
            ..openai()
        };
        assert_eq!(words(&config(&[], local.clone())), "openai (nomic at http://127.0.0.1:11434/v1) Some(64)");
        assert_eq!(words(&config(&[("STEPFLEET_EMBEDDING", "static")], local)), "static");
    }

    #[test]
    fn the_accounts_key_does_not_go_to_an_address_of_the_section() {
        let key_at = |variables: &[(&str, &str)], section| {
            let config = config(&[&[("OPENAI_API_KEY", "sk-account")][..], variables].concat(), section);
            match config.choose_embedder().expect("valid") {
                EmbedderChoice::Api { endpoint, .. } => endpoint.key,
                EmbedderChoice::Static => panic!("the API was asked for"),
            }
        };
        let at = |url: &str| EmbeddingSettings { base_url: Some(url.into()), ..openai() };
        let (account, set) = (Secret::new("sk-account"), [("OPENAI_BASE_URL", "http://10.0.0.5:11434/v1")]);
        assert_eq!(key_at(&[], at("http://10.0.0.5:11434/v1")), None);
        assert_eq!(key_at(&set, at("http://10.0.0.5:11434/embeddings/v1")), account);
        assert_eq!(key_at(&set, at("http://10.0.0.6:11434/v1")), None);
        assert_eq!((key_at(&set, openai()), key_at(&[], at("https://api.openai.com/v1"))), (account.clone(), account));
        let own = EmbeddingSettings { api_key_env: Some("MY_KEY".into()), ..at("http://10.0.0.6:11434/v1") };
        assert_eq!(key_at(&[("MY_KEY", "sk-own")], own), Secret::new("sk-own"));
    }

    #[test]
    fn problems_name_the_setting_and_never_a_key() {
        let told = |variables: &[(&str, &str)], section| {
            let config = config(variables, section);
            assert!(!format!("{config:?}").contains("sk-hidden"));
            config.choose_embedder().expect_err("problems").join("; ")
        };
        assert_eq!(told(&[], openai()), "embedding: set OPENAI_API_KEY to use openai");
        let own = EmbeddingSettings { api_key_env: Some("MY_KEY".into()), ..openai() };
        assert_eq!(told(&[("OPENAI_API_KEY", "sk-hidden")], own), "embedding: MY_KEY is not set; it must hold the key");
        let stray = EmbeddingSettings { model: Some("m".into()), ..EmbeddingSettings::default() };
        assert!(told(&[], stray).starts_with("embedding.model: "));
        let other = EmbeddingSettings { provider: Some("cohere".into()), ..EmbeddingSettings::default() };
        assert!(told(&[("STEPFLEET_EMBEDDING", "x")], other).contains("STEPFLEET_EMBEDDING: must be"));
        let file = EmbeddingSettings { api_key_file: Some("/no/such/file".into()), ..openai() };
        assert!(told(&[("OPENAI_API_KEY", "sk-hidden")], file).contains("/no/such/file"));
        let zero = EmbeddingSettings { dimensions: Some(0), ..openai() };
        assert!(told(&[("OPENAI_API_KEY", "sk-hidden")], zero).contains("at least 1"));
    }
}
