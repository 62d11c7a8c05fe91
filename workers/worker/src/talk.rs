//! What the turns of conversations ask for: their contexts, summaries of what is old, the replies of
//! models, the end of extractions; and what steps without turns ask of models. Everything else goes on to the
//! effects it stands before.

mod assemble;
mod attempts;
mod budgets;
mod chat;
mod compact;
mod ends;
mod history;
mod hooks;
mod memory;
mod moves;
mod persona;
mod steps;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use domain::chat::{ChatCall, ChatOutcome, ProviderCallRecord};
use domain::effect::{Effect, EffectCall, EffectFailure, Outcome, TalkWork};
use domain::failure::Failure;
use domain::ports::{Clock, Conversations, Definitions, Effects, Embedder, Live, Memories, Models, Sessions, Unheard};
use schemas::definition::NamespaceBudget;
use schemas::id::Namespace;
use schemas::problem::Code;
use tokio::sync::Notify;

pub use ends::Ends;

use crate::till::Till;

/// The ports it needs.
#[derive(Clone)]
pub struct TalkDeps {
    pub conversations: Arc<dyn Conversations>,
    pub sessions: Arc<dyn Sessions>,
    pub definitions: Arc<dyn Definitions>,
    pub models: Arc<dyn Models>,
    pub memories: Arc<dyn Memories>,
    pub embedder: Arc<dyn Embedder>,
    pub live: Arc<dyn Live>,
    pub clock: Arc<dyn Clock>,
    /// What turns have read lately.
    pub ends: Arc<Ends>,
    /// What namespaces may use; those that are not named have no bound.
    pub budgets: BTreeMap<Namespace, NamespaceBudget>,
}

/// [`Effects`] with those of conversations.
pub struct Talking {
    deps: TalkDeps,
    others: Arc<dyn Effects>,
    /// Calls of models that can be cut short, by their keys.
    cuts: Mutex<HashMap<String, Arc<Notify>>>,
    numbers: stream::Numbers,
}

impl Talking {
    pub fn new(deps: TalkDeps, others: Arc<dyn Effects>) -> Self {
        Self { deps, others, cuts: Mutex::default(), numbers: stream::Numbers::default() }
    }

    fn cuttable(&self, key: &str) -> Cuttable<'_> {
        let notify = Arc::new(Notify::new());
        self.cuts.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned(), notify.clone());
        Cuttable { cuts: &self.cuts, key: key.to_owned(), notify }
    }
}

/// A call that is known by its key for as long as it runs.
struct Cuttable<'t> {
    cuts: &'t Mutex<HashMap<String, Arc<Notify>>>,
    key: String,
    notify: Arc<Notify>,
}

impl Drop for Cuttable<'_> {
    fn drop(&mut self) {
        let mut cuts = self.cuts.lock().unwrap_or_else(PoisonError::into_inner);
        // A call that is dropped may end only after another one has begun in its place.
        if cuts.get(&self.key).is_some_and(|known| Arc::ptr_eq(known, &self.notify)) {
            cuts.remove(&self.key);
        }
    }
}

#[async_trait]
impl Effects for Talking {
    async fn perform(&self, call: &EffectCall) -> Outcome {
        let talk = match &call.effect {
            Effect::Talk(talk) => talk,
            Effect::Model(request) => {
                let cuttable = self.cuttable(&call.key);
                return steps::ask(&self.deps, call, request, &cuttable.notify).await;
            }
            _ => return self.others.perform(call).await,
        };
        match &talk.what {
            TalkWork::Assemble { settings, pending } => {
                assemble::assemble(&self.deps, &call.session.namespace, talk, settings, pending).await
            }
            TalkWork::Chat { number, assembly, without_tools, summary, may_compact, checks } => {
                let cuttable = self.cuttable(&call.key);
                let place = (&call.session.namespace, &call.session.session_id);
                let asked = chat::Asked {
                    number: *number,
                    assembly: assembly.as_deref(),
                    without_tools: *without_tools,
                    summary: summary.as_deref(),
                    may_compact: *may_compact,
                    checks,
                    epoch: call.epoch,
                    numbers: &self.numbers,
                };
                chat::chat(&self.deps, place, talk, asked, &cuttable.notify).await
            }
            TalkWork::Compact { number, assembly, summary, asked, without_model, checks } => {
                let (number, assembly, summary) = (*number, assembly.as_deref(), summary.as_deref());
                let (by_tool, without_model) = (*asked, *without_model);
                let session = &call.session.session_id;
                let asked = compact::Asked { number, assembly, summary, by_tool, without_model, checks, session };
                let cuttable = self.cuttable(&call.key);
                compact::compact(&self.deps, &call.session.namespace, talk, asked, &cuttable.notify).await
            }
            TalkWork::Extract => memory::extract(&self.deps, &call.session.namespace, talk).await,
        }
    }

    fn cut(&self, key: &str) -> bool {
        let cuts = self.cuts.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(notify) = cuts.get(key) else { return self.others.cut(key) };
        notify.notify_one();
        true
    }

    fn provider(&self) -> String {
        self.others.provider()
    }
}

/// Reads what a turn cannot do without, for as long as the store is away: that is nothing to fail a
/// turn for. Dropping the future ends it.
async fn stored<T, F: Future<Output = Result<T, Failure>>>(read: impl Fn() -> F) -> Result<T, Outcome> {
    let mut attempt = 0;
    loop {
        match read().await {
            Ok(value) => return Ok(value),
            Err(failure) if failure.retriable => {
                attempt += 1;
                host::stall::note("what turns need", &failure);
                let wait = domain::retry::STORE.delay_ms(attempt).unwrap_or(1_000);
                tokio::time::sleep(Duration::from_millis(wait)).await;
            }
            Err(failure) => return Err(failed(Code::Internal, failure.to_string())),
        }
    }
}

/// Asks a model that nobody listens to. `Err`: it was cut short; what it had used by then, if it had begun.
async fn ask_until_cut(
    deps: &TalkDeps,
    call: &ChatCall,
    cut: &Notify,
) -> Result<ChatOutcome, Option<ProviderCallRecord>> {
    let till = Till::default();
    let unheard = Unheard(&till);
    let outcome = tokio::select! {
        biased;
        // Looked at first: a call that was cut before it began asks nobody.
        () = cut.notified() => None,
        outcome = deps.models.chat(call, Some(&unheard)) => Some(outcome),
    };
    // If it was cut, the call is dropped by now.
    outcome.ok_or_else(|| till.empty().pop())
}

fn failed(code: Code, message: impl Into<String>) -> Outcome {
    Outcome::Failed(EffectFailure { code, message: message.into(), retriable: false, may_have_happened: false })
}
