//! The `Effects` port: one performer for all kinds of effects.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use domain::effect::{Effect, EffectCall, EffectFailure, ModelRequest, Outcome};
use domain::ports::Effects;
use schemas::problem::Code;

use crate::config::{Choice, ConfigProblems, Endpoint, ProvidersConfig};
use crate::documents::Documents;
use crate::net::Net;
use crate::scripted::Scripted;
use crate::{http, model};

/// Performs effects. Cheap to share; dropping a call's future cancels the call.
#[derive(Debug)]
pub struct Performer {
    net: Net,
    default: Arc<Source>,
    profiles: BTreeMap<String, Arc<Source>>,
    scripted: Arc<Scripted>,
    /// A script of the operator answers for every profile.
    all_scripted: bool,
    documents: Documents,
    in_words: String,
}

#[derive(Debug)]
enum Source {
    Endpoint(Endpoint),
    Scripted(Arc<Scripted>),
}

impl Performer {
    /// Checks everything that can be checked without calling anybody.
    ///
    /// # Errors
    /// All problems of the configuration, the script and the folders at once.
    pub fn new(config: &ProvidersConfig) -> Result<Self, ConfigProblems> {
        let mut problems = Vec::new();
        let choice = config.choose().unwrap_or_else(|found| {
            problems.extend(found);
            Choice { default: None, profiles: BTreeMap::new() }
        });
        let record = config.script_record.as_deref();
        let script = match &config.script {
            Some(path) => Scripted::load(path, record).map_err(|problem| format!("STEPFLEET_SCRIPT: {problem}")),
            None => Scripted::built_in(record),
        };
        let documents = Documents::new(config.allow_paths.as_deref());
        let net = Net::new(config.allow_private);
        match (script, documents, net) {
            (Ok(scripted), Ok(documents), Ok(net)) if problems.is_empty() => {
                Ok(Self::assemble(config, choice, Arc::new(scripted), documents, net))
            }
            (script, documents, net) => {
                problems.extend(script.err());
                problems.extend(documents.err().unwrap_or_default());
                problems.extend(net.err());
                Err(ConfigProblems(problems))
            }
        }
    }

    fn assemble(
        config: &ProvidersConfig,
        choice: Choice,
        scripted: Arc<Scripted>,
        documents: Documents,
        net: Net,
    ) -> Self {
        let source = |endpoint: Option<Endpoint>| {
            Arc::new(endpoint.map_or_else(|| Source::Scripted(Arc::clone(&scripted)), Source::Endpoint))
        };
        let in_words = match (&choice.default, &config.script) {
            (Some(endpoint), _) => endpoint.in_words(),
            (None, Some(path)) => format!("scripted ({})", path.display()),
            (None, None) => "scripted (built-in replies; set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or \
                             OPENAI_BASE_URL, for a real model)"
                .to_owned(),
        };
        Self {
            net,
            default: source(choice.default),
            profiles: choice.profiles.into_iter().map(|(name, endpoint)| (name, source(endpoint))).collect(),
            all_scripted: config.script.is_some(),
            scripted,
            documents,
            in_words,
        }
    }

    /// The scripted provider, whether in use or not; it tells the requests it got.
    pub fn scripted(&self) -> &Scripted {
        &self.scripted
    }

    async fn model(&self, key: &str, request: &ModelRequest) -> Outcome {
        let source = match request.profile.as_deref() {
            None | Some("default") => &self.default,
            Some(_) if self.all_scripted => &self.default,
            Some(name) => match self.profiles.get(name) {
                Some(source) => source,
                None => return Outcome::Failed(self.no_profile(name)),
            },
        };
        let (name, result) = match source.as_ref() {
            Source::Endpoint(endpoint) => (endpoint.vendor.as_str(), model::ask(&self.net, endpoint, request).await),
            Source::Scripted(scripted) => ("scripted", scripted.ask(key, request).await),
        };
        match result {
            Ok(answer) => Outcome::Ok(answer.outcome(name)),
            // A model's answer leaves no trace outside: a repeat costs money, it does no harm.
            Err((error, attempts)) => Outcome::Failed(error.into_failure(Code::ProviderFailed, attempts)),
        }
    }

    fn no_profile(&self, name: &str) -> EffectFailure {
        let known: Vec<&str> = self.profiles.keys().map(String::as_str).collect();
        let known =
            if known.is_empty() { "none is configured".to_owned() } else { format!("known are {}", known.join(", ")) };
        EffectFailure {
            code: Code::ProviderMissing,
            message: format!("there is no model profile {name:?}; {known} (see [models.<name>] in stepfleet.toml)"),
            retriable: false,
            may_have_happened: false,
        }
    }
}

#[async_trait]
impl Effects for Performer {
    async fn perform(&self, call: &EffectCall) -> Outcome {
        match &call.effect {
            Effect::Model(request) => self.model(&call.key, request).await,
            Effect::HttpPost { url, body, timeout_ms, class } => {
                http::post(&self.net, call, url, body, *timeout_ms, *class).await
            }
            Effect::NextDocument { paths, glob, after } => {
                self.documents.next(&self.net, paths, glob.as_deref(), after.as_deref()).await
            }
        }
    }

    fn provider(&self) -> String {
        self.in_words.clone()
    }
}

#[cfg(test)]
mod tests;
