//! Building the chain: links, the summary and the remedy.

use schemas::action::{Action, ActionType};
use schemas::api::WhyLink;
use schemas::conversation::{Operation, OperationKind, OperationState};
use schemas::session::StopReason;

use super::{Facts, SLOW_MS};
use crate::converse::works_on;
use crate::effect::EffectState;
use crate::talk;
use crate::time::rfc3339;
use crate::tool::POOL;

pub(super) struct Chain<'a> {
    pub facts: &'a Facts<'a>,
    links: Vec<WhyLink>,
    summary: String,
    remedy: Option<String>,
}

/// A link that was just added, to be dated.
pub(super) struct Added<'c>(&'c mut WhyLink);

impl Added<'_> {
    pub fn since(self, ms: i64) -> Self {
        self.0.since = Some(rfc3339(ms));
        self
    }

    pub fn until(self, ms: i64) -> Self {
        self.0.until = Some(rfc3339(ms));
        self
    }
}

impl<'a> Chain<'a> {
    pub fn new(facts: &'a Facts<'a>) -> Self {
        Self { facts, links: Vec::new(), summary: String::new(), remedy: None }
    }

    pub fn finish(self) -> (Vec<WhyLink>, String, Option<String>) {
        (self.links, self.summary, self.remedy)
    }

    pub fn say(&mut self, summary: String) {
        self.summary = summary;
    }

    /// The first remedy stands: causes nearer to the session are named first.
    pub fn remedy(&mut self, remedy: impl Into<String>) {
        self.remedy.get_or_insert_with(|| remedy.into());
    }

    pub fn link(&mut self, what: &str, detail: String) -> Added<'_> {
        self.links.push(WhyLink { what: what.to_owned(), detail, since: None, until: None, session_id: None });
        let last = self.links.len() - 1;
        Added(&mut self.links[last])
    }

    /// The oldest pending action of a kind.
    pub fn oldest(&self, kind: ActionType) -> Option<&'a Action> {
        self.facts.control.iter().chain(self.facts.work).find(|action| action.kind == kind)
    }

    pub fn pending_action(&mut self, action: &Action, effect: &str) {
        let (verb, id, by) = (action.kind.as_str(), &action.action_id, &action.actor);
        self.link("action", format!("{verb} {id} by {by} is accepted and not applied; it {effect}"))
            .since(action.accepted_at_ms);
    }

    /// Actions that stay in the ledger for now, and rightly so.
    pub fn waiting_behind(&mut self, what: &str) {
        let waiting = |action: &&Action| !matches!(action.kind, ActionType::Resume | ActionType::Destroy);
        let oldest = self.facts.control.iter().chain(self.facts.work).filter(waiting).map(|a| a.accepted_at_ms).min();
        if let Some(oldest) = oldest {
            let count = self.facts.pending;
            self.link("pending", format!("{count} accepted actions wait behind {what}; none is lost")).since(oldest);
        }
    }

    /// Calls that were sent and have no recorded answer.
    pub fn effects(&mut self) {
        for effect in self.facts.effects.iter().filter(|effect| effect.state == EffectState::Sent) {
            let (what, class) = (&effect.what, effect.class.as_str());
            self.link("effect", format!("{what} ({class}) was sent and has no recorded answer"));
        }
    }

    /// Whom dispatched work waits for, and how long at most.
    pub fn operation(&mut self, operation: &Operation) {
        let (id, tool) = (&operation.operation_id, &operation.tool);
        let deadline = talk::deadline(operation);
        if self.lacks_executor(operation) {
            self.remedy("Start a worker with the role executor.");
            let detail = format!("{tool} ({id}) waits for an executor, and no worker is known that runs operations");
            self.link("executor", detail).since(operation.due_at_ms);
            return;
        }
        let (whom, until) = match (operation.kind, operation.state) {
            (OperationKind::Approval, _) => {
                let either = format!("`stepfleet approvals {id}` or GET /api/operations/{id}");
                self.remedy(format!("Answer it: {either} shows what is asked."));
                ("a person's answer; then the default counts".to_owned(), deadline)
            }
            (OperationKind::Agent, _) => {
                let who = works_on(operation).map_or_else(|| "the session".to_owned(), |id| format!("session {id}"));
                // A release that set no deadline may have dispatched it.
                let end = if deadline.is_some() { "; then it ends with TIMEOUT" } else { "" };
                (format!("{who}, which works on it{end}"), deadline)
            }
            (OperationKind::Task, OperationState::Running) => {
                let holder = operation.claimed_by.as_deref().unwrap_or("whoever claims it next");
                (format!("{holder}, whose claim ends then unless it is extended"), operation.until_ms)
            }
            (OperationKind::Task, _) if deadline.is_some() => {
                let pool = operation.pool.rsplit(':').next().unwrap_or_default();
                self.remedy(format!("Start a worker of pool {pool}: POST /api/pools/{pool}/claim."));
                (format!("a worker of pool {pool}; then it ends with TIMEOUT"), deadline)
            }
            (OperationKind::Task, _) => ("an executor".to_owned(), None),
        };
        let link = self.link("operation", format!("{tool} ({id}) waits for {whom}")).since(operation.created_at_ms);
        if let Some(until) = until {
            link.until(until);
        }
    }

    /// Executors take their work within a moment, unless there are none.
    fn lacks_executor(&self, operation: &Operation) -> bool {
        let is_ours = operation.kind == OperationKind::Task && operation.pool == POOL;
        is_ours && !self.facts.has_executor && self.facts.now_ms - operation.due_at_ms > SLOW_MS
    }

    pub fn has_live_owner(&self) -> bool {
        self.facts.shard.as_ref().is_none_or(|shard| shard.live_owner().is_some())
    }

    /// Who runs it. Nobody is a cause, and the last one.
    pub fn shard(&mut self) {
        let number = self.facts.row.shard;
        let Some(shard) = &self.facts.shard else {
            self.link("shard", format!("shard {number}: its owner could not be read"));
            return;
        };
        match shard.live_owner() {
            Some(owner) => {
                self.link("shard", format!("shard {number} is owned by worker {owner}"));
                self.slow_owner(owner.to_owned());
            }
            None => {
                let detail = match &shard.owner {
                    Some(owner) => format!("shard {number}: the lease of worker {owner} has ended"),
                    None => format!("shard {number} has no owner"),
                };
                self.link("shard", detail);
                self.remedy("Start a worker; a live one takes the shard within seconds.");
            }
        }
    }

    /// Names the shard only if it is a problem: nothing is to be done right now.
    pub fn shard_if_idle(&mut self) {
        if !self.has_live_owner() {
            self.shard();
        }
    }

    fn slow_owner(&mut self, owner: String) {
        let pending = self.facts.control.iter().chain(self.facts.work).map(|action| action.accepted_at_ms).min();
        if pending.is_some_and(|since| self.facts.now_ms - since > SLOW_MS) {
            self.remedy(format!("Worker {owner} is late: look at its load and its log."));
        }
    }
}

pub(super) fn stop_reason(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Done => "because it was done",
        StopReason::Destroyed => "because it was destroyed",
        StopReason::MaxSteps => "at max_steps",
        StopReason::MaxRuntime => "at max_runtime_s",
        StopReason::Failed => "because a step failed",
    }
}
