//! One call of a model: attempts with waits between them, pieces told as they arrive, and a record
//! of it all (SPEC 1.16, 1.28).

mod attempt;
mod emission;
mod meter;
mod record;

use std::sync::Arc;

use domain::chat::{ChatCall, ChatOutcome, ChatReply, ModelTarget, Parameters, Prices};
use domain::ports::DeltaSink;
use domain::retry::MODEL;
use schemas::problem::Code;

use crate::attempts;
use crate::call::CallError;
use crate::config::Endpoint;
use crate::net::Net;
use crate::scripted::{Asked, Scripted};
pub(crate) use emission::Emission;
use meter::Meter;
use record::Log;

/// Who answers a call, and on which terms.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub source: Source,
    pub prices: Prices,
    /// What the request leaves open.
    pub parameters: Parameters,
}

#[derive(Debug, Clone)]
pub(crate) enum Source {
    Endpoint(Arc<Endpoint>),
    Scripted(Arc<Scripted>),
}

impl Source {
    fn provider(&self) -> &'static str {
        match self {
            Self::Endpoint(endpoint) => endpoint.vendor.as_str(),
            Self::Scripted(_) => crate::config::SCRIPTED,
        }
    }
}

/// Makes the call. Streams when somebody listens to pieces.
pub(crate) async fn chat(net: &Net, target: &Target, call: &ChatCall, sink: Option<&dyn DeltaSink>) -> ChatOutcome {
    let mut request = call.request.clone();
    request.parameters = request.parameters.over(&target.parameters);
    let provider = target.source.provider();
    let model = match (&request.model, &target.source) {
        (Some(model), _) => model.clone(),
        (None, Source::Endpoint(endpoint)) => endpoint.model.clone(),
        (None, Source::Scripted(_)) => crate::scripted::MODEL_NAME.to_owned(),
    };
    let meter = Meter::new(&request);
    let listener = sink.filter(|sink| sink.wants_pieces());
    let log = Log::start(call, (provider, model.as_str()), listener.is_some(), &meter).told_to(&target.prices, sink);
    let repeat = |error: &CallError| !call.once || !error.sent || error.is_turned_away();
    let result = match &target.source {
        Source::Endpoint(endpoint) => match attempt::Prepared::new(endpoint, &request, &call.id, listener.is_some()) {
            Err(error) => Err((error, 0)),
            Ok(prepared) => {
                let attempt = || attempt::make(net, endpoint, &prepared, Emission::new(listener, &meter));
                attempts::run(MODEL, repeat, attempt).await
            }
        },
        Source::Scripted(scripted) => {
            let profile = match &call.target {
                ModelTarget::Named(name) => Some(name.as_str()),
                ModelTarget::Default | ModelTarget::Profile(_) => None,
            };
            let asked = Asked::new(call, &request, profile, listener.is_some());
            let attempt = || scripted.attempt(&asked, Emission::new(listener, &meter));
            attempts::run(MODEL, repeat, attempt).await
        }
    };
    finish(log, result)
}

/// A call that could not be made: nobody is there to answer it.
pub(crate) fn refuse(call: &ChatCall, provider: &str, code: Code, error: CallError) -> ChatOutcome {
    let meter = Meter::new(&call.request);
    let record = Log::start(call, (provider, ""), false, &meter).failed(&error, 0);
    ChatOutcome { record, result: Err(error.into_chat_failure(code, provider, 0)) }
}

fn finish(log: Log<'_>, result: Result<ChatReply, (CallError, u32)>) -> ChatOutcome {
    match result {
        Ok(reply) => ChatOutcome { record: log.answered(&reply), result: Ok(reply) },
        Err((error, attempts)) => {
            let record = log.failed(&error, attempts);
            let failure = error.into_chat_failure(Code::ProviderFailed, &record.provider, attempts);
            ChatOutcome { record, result: Err(failure) }
        }
    }
}

#[cfg(test)]
mod tests;
