//! The fleet's own adapters, which implement the `Models` port, as a provider of the engine.

use std::sync::Arc;

use async_trait::async_trait;
use domain::chat::{ChatCall, ChatRequest, ModelProfile, ModelTarget, Parameters, Prices};
use domain::ports::{DeltaSink, Models};

use crate::provider::{ProviderAdapter, ProviderCallOptions, ProviderChatResult, ProviderFailure};

/// Planned instead of a model's name, it stands for the model that the configured profile names.
pub const PROFILE_MODEL: &str = "default";

/// Asks one provider, or one configured profile, through `Models`: with the platform's attempts,
/// waits, streams and records.
#[derive(Clone)]
pub struct ModelsAdapter {
    id: String,
    models: Arc<dyn Models>,
    reach: Reach,
}

#[derive(Debug, Clone)]
enum Reach {
    /// The account of a provider; the plan names the model.
    Provider,
    Target(ModelTarget),
}

impl ModelsAdapter {
    /// A provider by its name: `anthropic`, `openai`, `openai_responses`, `gemini`, `scripted`. The
    /// turn's plan names the model.
    pub fn provider(models: Arc<dyn Models>, name: impl Into<String>) -> Self {
        Self { id: name.into(), models, reach: Reach::Provider }
    }

    /// A profile of the configuration; its name is the id.
    pub fn profile(models: Arc<dyn Models>, name: impl Into<String>) -> Self {
        let id: String = name.into();
        Self { reach: Reach::Target(ModelTarget::Named(id.clone())), id, models }
    }

    /// The default of the configuration, under an id of your choice.
    pub fn fleet_default(models: Arc<dyn Models>, id: impl Into<String>) -> Self {
        Self { id: id.into(), models, reach: Reach::Target(ModelTarget::Default) }
    }

    fn call(&self, request: &ChatRequest, options: &ProviderCallOptions) -> ChatCall {
        let mut request = request.clone();
        let target = match &self.reach {
            Reach::Provider => ModelTarget::Profile(Box::new(ModelProfile {
                provider: self.id.clone(),
                model: options.model.clone(),
                parameters: Parameters::default(),
                prices: Prices::default(),
            })),
            Reach::Target(target) => {
                request.model = request.model.filter(|model| model != PROFILE_MODEL);
                target.clone()
            }
        };
        ChatCall { id: options.call_id.clone(), target, request, context: options.context.clone(), once: false }
    }

    async fn ask(
        &self,
        request: &ChatRequest,
        options: &ProviderCallOptions,
        sink: Option<&dyn DeltaSink>,
    ) -> Result<ProviderChatResult, ProviderFailure> {
        let outcome = self.models.chat(&self.call(request, options), sink).await;
        match outcome.result {
            Ok(reply) => Ok(ProviderChatResult { record: Some(outcome.record), ..reply.into() }),
            Err(failure) => Err(ProviderFailure { failure, record: Some(Box::new(outcome.record)) }),
        }
    }
}

#[async_trait]
impl ProviderAdapter for ModelsAdapter {
    fn id(&self) -> &str {
        &self.id
    }

    fn supports_streaming(&self) -> bool {
        true
    }

    async fn send_chat(
        &self,
        request: &ChatRequest,
        options: &ProviderCallOptions,
    ) -> Result<ProviderChatResult, ProviderFailure> {
        self.ask(request, options, None).await
    }

    async fn stream_chat(
        &self,
        request: &ChatRequest,
        options: &ProviderCallOptions,
        sink: &dyn DeltaSink,
    ) -> Result<ProviderChatResult, ProviderFailure> {
        self.ask(request, options, Some(sink)).await
    }
}
