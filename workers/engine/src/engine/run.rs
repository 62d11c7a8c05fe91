//! One turn, in the order of SPEC C-LOOP-10.

use std::sync::Arc;

use domain::chat::{CallContext, ChatRequest, ProviderCallRecord, RequestOutcome};
use domain::context::{
    Conversation, ConversationMessage, ConversationTurn, NewMessage, TurnError, TurnStatus, trigger_of, turn_inputs,
};
use domain::ports::library::{Page, StoreError};
use schemas::id::TurnId;
use schemas::problem::Code;
use serde_json::Map;

use super::{ConversationEngine, Inner, RunTurn, cancelled};
use crate::cancel::Entered;
use crate::error::EngineError;
use crate::history::HistoryContext;
use crate::planner::PlanInput;
use crate::provider::{ProviderAdapter, ProviderCallOptions, ProviderChatResult, ProviderFailure};

/// Why a turn ends without an answer.
enum Stop {
    Cancelled,
    Failed(TurnError),
}

impl From<TurnError> for Stop {
    fn from(error: TurnError) -> Self {
        Self::Failed(error)
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        let code = match &error {
            // Cancelled from another process.
            StoreError::TurnEnded(_) => return Self::Cancelled,
            StoreError::Failed(failure) => failure.code,
            StoreError::Full(_) => Code::StorageFull,
            _ => Code::Internal,
        };
        Self::Failed(TurnError::new(code.as_str(), format!("the store refused: {error}")))
    }
}

/// A turn under way.
struct Run<'a> {
    engine: &'a ConversationEngine,
    options: &'a RunTurn,
    conversation: &'a Conversation,
    messages: &'a [ConversationMessage],
    parent_turn_id: Option<TurnId>,
    entered: Entered<'a>,
}

/// All that is decided before the provider is asked.
struct Prepared {
    adapter: Arc<dyn ProviderAdapter>,
    request: ChatRequest,
    options: ProviderCallOptions,
}

impl ConversationEngine {
    /// Has the agent answer: loads the conversation, stores a running turn, builds the history, plans,
    /// asks the provider, stores the answer, and ends the turn. One call of a provider, whatever it
    /// answers; calls of tools among the outputs are the caller's to carry out ([`crate::Agent`] does).
    ///
    /// If this future is dropped, the turn stays `running` until [`ConversationEngine::cancel`].
    ///
    /// # Errors
    /// `TurnFailed` and `TurnCancelled` once that is stored; `TurnNotStored` if it could not be. Any
    /// other means that no turn was begun.
    pub async fn run_turn(&self, options: RunTurn) -> Result<ConversationTurn, EngineError> {
        let store = &self.inner.config.store;
        let (conversation, messages) = self.load(&options.conversation_id).await?;
        let parent = store.list_turns(&conversation.id, Page::newest(1)).await?.pop();
        let mut turn = self.begin(&conversation, &messages, &options);
        store.create_turn(&turn).await?;
        // Not before: a second turn of this id must not take the first one's place.
        let entered = self.inner.running.enter(&turn.id);
        let run = Run {
            engine: self,
            options: &options,
            conversation: &conversation,
            messages: &messages,
            parent_turn_id: parent.map(|turn| turn.id),
            entered,
        };
        match run.make(&mut turn).await {
            Ok(()) => run.succeeded(turn).await,
            Err(stop) => run.stopped(turn, stop).await,
        }
    }

    fn begin(
        &self,
        conversation: &Conversation,
        messages: &[ConversationMessage],
        options: &RunTurn,
    ) -> ConversationTurn {
        let config = &self.inner.config;
        let now = config.clock.now_ms();
        let input_messages = turn_inputs(messages);
        let trigger_type = options.trigger_type.clone().unwrap_or_else(|| trigger_of(&input_messages).to_owned());
        ConversationTurn {
            id: options.turn_id.clone().unwrap_or_else(|| config.ids.next(now).into()),
            conversation_id: conversation.id.clone(),
            agent: options.agent.clone().unwrap_or_else(|| conversation.agent.clone()),
            input_messages,
            output_messages: Vec::new(),
            provider_calls: Vec::new(),
            status: TurnStatus::Running,
            trigger_type: Some(trigger_type),
            started_at_ms: now,
            finished_at_ms: None,
            error: None,
            metadata: options.metadata.clone(),
        }
    }
}

impl Run<'_> {
    fn inner(&self) -> &Inner {
        &self.engine.inner
    }

    fn now_ms(&self) -> i64 {
        self.inner().config.clock.now_ms()
    }

    async fn make(&self, turn: &mut ConversationTurn) -> Result<(), Stop> {
        let prepared = self.entered.unless_cancelled(self.prepare(turn)).await.ok_or(Stop::Cancelled)??;
        let options = &prepared.options;
        let record = ProviderCallRecord::open(
            &options.call_id,
            &options.context,
            &options.provider,
            &options.model,
            options.streaming,
            self.now_ms(),
        );
        turn.provider_calls.push(record.clone());
        // So that a call whose process dies leaves a trace: it may have cost something.
        self.inner().config.store.update_turn(turn).await?;
        let answer = self.entered.unless_cancelled(self.ask(&prepared)).await;
        let finished_at_ms = self.now_ms();
        let stored = match &answer {
            None => Err(Stop::Cancelled),
            Some(Err(refused)) => Err(Stop::Failed((&refused.failure).into())),
            Some(Ok(result)) => self.store_outputs(turn, &result.messages).await,
        };
        turn.provider_calls = vec![closed(record, answer.as_ref(), finished_at_ms)];
        stored
    }

    /// History, plan, request, and whether the hooks have anything against it.
    async fn prepare(&self, turn: &ConversationTurn) -> Result<Prepared, TurnError> {
        let Inner { config, planner, .. } = self.inner();
        let (conversation, messages, agent) = (self.conversation, self.messages, turn.agent.as_str());
        let context = HistoryContext { conversation, messages, next_turn_id: &turn.id, agent };
        let history = config.history_builder.build_history(context).await?;
        let plan = planner.plan_turn(PlanInput { conversation, messages, agent, hints: &self.options.hints }).await?;
        let Some(adapter) = config.providers.iter().find(|adapter| adapter.id() == plan.provider).cloned() else {
            let known: Vec<&str> = config.providers.iter().map(|adapter| adapter.id()).collect();
            let message =
                format!("there is no adapter for provider {:?}; there are: {}", plan.provider, known.join(", "));
            return Err(TurnError::new(Code::ProviderMissing.as_str(), message));
        };
        let request = ChatRequest {
            messages: history,
            tools: plan.tools,
            parameters: plan.parameters,
            model: Some(plan.model.clone()),
            native: None,
        };
        request.check().map_err(|problem| TurnError::new(Code::InvalidRequest.as_str(), problem))?;
        config.hooks.before_turn(turn, conversation).await?;
        let options = ProviderCallOptions {
            call_id: config.ids.next(self.now_ms()).to_string(),
            provider: plan.provider,
            model: plan.model,
            streaming: self.options.sink.is_some() && adapter.supports_streaming(),
            context: CallContext {
                conversation_id: conversation.id.to_string(),
                turn_id: turn.id.to_string(),
                agent: turn.agent.clone(),
                parent_turn_id: self.parent_turn_id.as_ref().map(TurnId::to_string),
                request_class: self.options.request_class,
                metadata: turn.metadata.clone(),
            },
            inputs: turn.input_messages.clone(),
        };
        Ok(Prepared { adapter, request, options })
    }

    async fn ask(&self, prepared: &Prepared) -> Result<ProviderChatResult, ProviderFailure> {
        let Prepared { adapter, request, options } = prepared;
        match &self.options.sink {
            None => adapter.send_chat(request, options).await,
            Some(sink) if options.streaming => adapter.stream_chat(request, options, sink.as_ref()).await,
            Some(sink) => adapter.send_chat(request, options).await.inspect(|result| result.tell(sink.as_ref())),
        }
    }

    async fn store_outputs(&self, turn: &mut ConversationTurn, answer: &[NewMessage]) -> Result<(), Stop> {
        let at_ms = self.engine.now_behind(self.messages);
        let mut messages = match self.engine.complete(&self.conversation.id, answer.to_vec(), at_ms) {
            Ok(messages) => messages,
            Err(problem) => return Err(TurnError::new(Code::TooLarge.as_str(), problem.to_string()).into()),
        };
        messages.iter_mut().for_each(|message| message.turn_id = Some(turn.id.clone()));
        if !messages.is_empty() {
            self.inner().config.store.append_messages(&self.conversation.id, &messages).await?;
        }
        turn.output_messages = messages;
        Ok(())
    }

    async fn succeeded(&self, mut turn: ConversationTurn) -> Result<ConversationTurn, EngineError> {
        turn.status = TurnStatus::Succeeded;
        let hooks = &self.inner().config.hooks;
        match self.store_end(&mut turn).await {
            Ok(Some(conversation)) => {
                hooks.after_turn_success(&turn, &conversation).await;
                Ok(turn)
            }
            // It was cancelled from another process meanwhile; that is how it is stored.
            Ok(None) => {
                let stored = self.engine.get_turn(&turn.conversation_id, &turn.id).await?;
                Err(EngineError::TurnCancelled(Box::new(stored.unwrap_or(turn))))
            }
            Err(lost) => {
                let error = TurnError::new(Code::Unavailable.as_str(), lost.to_string());
                hooks.after_turn_error(&turn, &error, self.conversation).await;
                Err(lost)
            }
        }
    }

    async fn stopped(&self, mut turn: ConversationTurn, stop: Stop) -> Result<ConversationTurn, EngineError> {
        let (status, error) = match stop {
            Stop::Cancelled => (TurnStatus::Cancelled, cancelled()),
            Stop::Failed(error) => (TurnStatus::Failed, error),
        };
        turn.status = status;
        turn.error = Some(error.clone());
        let end = self.store_end(&mut turn).await;
        let conversation = end.as_ref().ok().and_then(Option::as_ref).unwrap_or(self.conversation);
        self.inner().config.hooks.after_turn_error(&turn, &error, conversation).await;
        end?;
        let turn = Box::new(turn);
        Err(if status == TurnStatus::Cancelled {
            EngineError::TurnCancelled(turn)
        } else {
            EngineError::TurnFailed(turn)
        })
    }

    /// Stores the turn and the conversation's `updated_at`, which is returned; `None` if the turn had
    /// ended already.
    async fn store_end(&self, turn: &mut ConversationTurn) -> Result<Option<Conversation>, EngineError> {
        let store = &self.inner().config.store;
        let now = self.now_ms().max(turn.started_at_ms);
        turn.finished_at_ms = Some(now);
        let not_stored = |error| EngineError::TurnNotStored { turn: Box::new(turn.clone()), error };
        match store.update_turn(turn).await {
            Ok(()) => {}
            Err(StoreError::TurnEnded(_)) => return Ok(None),
            Err(error) => return Err(not_stored(error)),
        }
        // Read again: a caller may have changed its title while the model was thinking.
        let current = store.get_conversation(&self.conversation.id).await.map_err(not_stored)?;
        let mut conversation = current.unwrap_or_else(|| self.conversation.clone());
        conversation.updated_at_ms = now.max(conversation.updated_at_ms);
        store.update_conversation(&conversation).await.map_err(not_stored)?;
        Ok(Some(conversation))
    }
}

/// The record with how it ended. One of the adapter's own is taken as it is: it knows more.
fn closed(
    open: ProviderCallRecord,
    answer: Option<&Result<ProviderChatResult, ProviderFailure>>,
    finished_at_ms: i64,
) -> ProviderCallRecord {
    let (id, conversation_id, turn_id) = (open.id.clone(), open.conversation_id.clone(), open.turn_id.clone());
    let own = match answer {
        Some(Ok(result)) => result.record.clone(),
        Some(Err(refused)) => refused.record.as_deref().cloned(),
        None => None,
    };
    if let Some(own) = own {
        return ProviderCallRecord { id, conversation_id, turn_id, ..own };
    }
    let finished_at_ms = finished_at_ms.max(open.started_at_ms);
    let outcome = RequestOutcome {
        ok: matches!(answer, Some(Ok(_))),
        status: None,
        error_category: match answer {
            Some(Err(refused)) => Some(refused.failure.category),
            _ => None,
        },
        attempts: 1,
        started_at_ms: open.started_at_ms,
        finished_at_ms,
    };
    let mut record = ProviderCallRecord { outcome: Some(outcome), finished_at_ms: Some(finished_at_ms), ..open };
    let error = |text: &str| Map::from_iter([("error".to_owned(), text.into())]);
    match answer {
        Some(Ok(result)) => {
            record.request_id = result.request_id.clone();
            record.usage = result.usage.clone();
            record.response_metadata = result.response_metadata.clone();
        }
        Some(Err(refused)) => record.response_metadata = error(&refused.failure.message),
        None => record.response_metadata = error("cancelled"),
    }
    record
}
