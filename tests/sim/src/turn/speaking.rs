//! Models that have said something as soon as they are asked.

use std::pin::Pin;

use domain::chat::{ChatCall, ChatDelta, ChatOutcome, ModelTarget};
use domain::ports::{DeltaSink, Models};
use testkit::fake::ScriptedModels;

pub struct Speaking(pub ScriptedModels);

/// What is heard of a reply while it is on its way: one piece.
pub fn half(call_id: &str) -> String {
    format!("half of {call_id}")
}

impl Models for Speaking {
    /// As `async_trait` writes it, which would be a dependency for this alone.
    fn chat<'m, 'c, 's, 'f>(
        &'m self,
        call: &'c ChatCall,
        sink: Option<&'s dyn DeltaSink>,
    ) -> Pin<Box<dyn Future<Output = ChatOutcome> + Send + 'f>>
    where
        'm: 'f,
        'c: 'f,
        's: 'f,
        Self: 'f,
    {
        Box::pin(async move {
            if let Some(sink) = sink.filter(|sink| sink.wants_pieces()) {
                sink.delta(1, 0, ChatDelta::Text { part: 0, text: half(&call.id) });
            }
            self.0.chat(call, sink).await
        })
    }

    fn provider(&self) -> String {
        self.0.provider()
    }

    fn cost_of_input(&self, target: &ModelTarget, tokens: u64) -> f64 {
        self.0.cost_of_input(target, tokens)
    }
}
