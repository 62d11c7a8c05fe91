//! The `Effects` and `Models` ports: one performer for all that goes out.

mod targets;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use domain::chat::{ChatCall, ChatOutcome, ModelTarget};
use domain::effect::{Effect, EffectCall, EffectFailure, Outcome};
use domain::ports::{DeltaSink, Effects, Models};
use schemas::problem::Code;

use self::targets::Targets;
pub use self::targets::prices_of;
use crate::call::{CallError, Class};
use crate::config::{Choice, ConfigProblems, ProvidersConfig};
use crate::documents::Documents;
use crate::net::Net;
use crate::scripted::Scripted;
use crate::{chat, http};

/// Performs effects and asks models. Cheap to share; dropping a call's future cancels the call.
#[derive(Debug)]
pub struct Performer {
    net: Net,
    targets: Targets,
    scripted: Arc<Scripted>,
    documents: Documents,
    in_words: String,
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
            Choice { default: None, profiles: BTreeMap::new(), vendors: BTreeMap::new() }
        });
        problems.extend(config.choose_embedder().err().unwrap_or_default());
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
        let in_words = match (&choice.default, &config.script) {
            (Some(endpoint), _) => endpoint.in_words(),
            (None, Some(path)) => format!("scripted ({})", path.display()),
            (None, None) => "scripted (built-in replies; for a model, set ANTHROPIC_API_KEY, OPENAI_API_KEY or \
                             GEMINI_API_KEY, or OPENAI_BASE_URL and STEPFLEET_MODEL=openai/<model>)"
                .to_owned(),
        };
        Self {
            net,
            targets: Targets::new(choice, Arc::clone(&scripted), config.script.is_some()),
            scripted,
            documents,
            in_words,
        }
    }

    /// The scripted provider, whether in use or not; it tells the requests it got.
    pub fn scripted(&self) -> &Scripted {
        &self.scripted
    }
}

#[async_trait]
impl Models for Performer {
    async fn chat(&self, call: &ChatCall, sink: Option<&dyn DeltaSink>) -> ChatOutcome {
        match self.targets.find(&call.target) {
            Ok(target) => chat::chat(&self.net, &target, call, sink).await,
            Err(missing) => {
                let error = CallError::new(Class::Invalid, missing.message).not_sent();
                chat::refuse(call, &missing.provider, Code::ProviderMissing, error)
            }
        }
    }

    fn provider(&self) -> String {
        self.in_words.clone()
    }

    fn cost_of_input(&self, target: &ModelTarget, tokens: u64) -> f64 {
        let price = self.targets.find(target).ok().and_then(|found| found.prices.cost_per_1k_input_tokens);
        price.map_or(0.0, |price| price * tokens as f64 / 1_000.0)
    }
}

#[async_trait]
impl Effects for Performer {
    async fn perform(&self, call: &EffectCall) -> Outcome {
        match &call.effect {
            Effect::HttpPost { url, body, timeout_ms, class } => {
                http::post(&self.net, call, url, body, *timeout_ms, *class).await
            }
            Effect::NextDocument { paths, glob, after } => {
                self.documents.next(&self.net, paths, glob.as_deref(), after.as_deref()).await
            }
            // Those of conversations, and questions for models, are taken by who knows logs and budgets; they never
            // come this far.
            Effect::Talk(_) | Effect::Model(_) => Outcome::Failed(EffectFailure {
                code: Code::Internal,
                message: "a call for a model reached the providers; this process is wired without budgets".to_owned(),
                retriable: false,
                may_have_happened: false,
            }),
        }
    }

    fn provider(&self) -> String {
        self.in_words.clone()
    }
}

#[cfg(test)]
mod tests;
