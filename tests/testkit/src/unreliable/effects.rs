//! Effects, live notices and news of a process that may die. Failures of effects are outcomes, so they
//! are scripted by the world, not here.

use async_trait::async_trait;
use domain::effect::{EffectCall, Outcome};
use domain::ports::{ConversationKey, Effects, Listening, Live, News, Notice, Subscription};
use schemas::id::SessionKey;

use super::Unreliable;

#[async_trait]
impl<P: Effects + ?Sized> Effects for Unreliable<P> {
    async fn perform(&self, call: &EffectCall) -> Outcome {
        self.faults.pass("effects.perform", self.inner.perform(call)).await
    }

    fn provider(&self) -> String {
        self.inner.provider()
    }
}

impl<P: Live + ?Sized> Live for Unreliable<P> {
    fn publish(&self, notices: Vec<Notice>) {
        if !self.faults.is_dead() {
            self.inner.publish(notices);
        }
    }

    fn subscribe(&self, key: &SessionKey) -> Box<dyn Subscription> {
        self.inner.subscribe(key)
    }

    fn tell(&self, key: &ConversationKey, news: News) {
        if !self.faults.is_dead() {
            self.inner.tell(key, news);
        }
    }

    fn listen(&self, key: &ConversationKey) -> Box<dyn Listening> {
        self.inner.listen(key)
    }
}
