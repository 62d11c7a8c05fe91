//! Why a session stands as it stands: the chain from the session to what it waits for (DESIGN 1,
//! idea 5). Pure: the facts are read by the caller, close together but not in one transaction.

mod descent;
mod links;
#[cfg(test)]
mod tests;

use schemas::action::{Action, ActionType};
use schemas::api::WhyBody;
use schemas::conversation::Operation;
use schemas::limits::{DESTROY_GRACE_MS, EFFECT_MS_MAX};
use schemas::session::{Cause, SessionRow, SessionStatus};

use crate::effect::EffectRow;
use crate::time::rfc3339;
pub use descent::Descent;
use links::Chain;

/// What is known about a session at one moment.
#[derive(Debug)]
pub struct Facts<'a> {
    pub row: &'a SessionRow,
    /// Accepted, unprocessed actions, oldest first; the lists may be cut.
    pub control: &'a [Action],
    pub work: &'a [Action],
    /// How many there are in all.
    pub pending: u64,
    pub effects: &'a [EffectRow],
    /// Work of its turns that has not ended, oldest first; the list may be cut.
    pub operations: &'a [Operation],
    /// `None`: the shard could not be read.
    pub shard: Option<ShardFacts>,
    /// Whether a live worker is known that runs operations.
    pub has_executor: bool,
    /// Whether input makes sense for its moniker.
    pub takes_input: bool,
    pub now_ms: i64,
}

/// Who owns the session's shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardFacts {
    pub owner: Option<String>,
    /// Negative once the lease has ended.
    pub lease_ms_left: i64,
}

impl ShardFacts {
    fn live_owner(&self) -> Option<&str> {
        self.owner.as_deref().filter(|_| self.lease_ms_left > 0)
    }
}

/// A wait that has lasted longer than this is worth a hint, in milliseconds.
const SLOW_MS: i64 = 10_000;

/// Explains one session.
pub fn explain(facts: &Facts<'_>) -> WhyBody {
    let head = &facts.row.head;
    let mut chain = Chain::new(facts);
    match head.status {
        SessionStatus::Stopped | SessionStatus::Completed => ended(&mut chain),
        SessionStatus::Error => failed(&mut chain),
        SessionStatus::Starting => starting(&mut chain),
        SessionStatus::Stopping => stopping(&mut chain),
        SessionStatus::Paused => paused(&mut chain),
        SessionStatus::Running => running(&mut chain),
    }
    let (links, summary, remedy) = chain.finish();
    WhyBody {
        session_id: facts.row.key.session_id.clone(),
        status: head.status,
        cause: head.cause.clone(),
        summary,
        chain: links,
        remedy,
    }
}

fn ended(chain: &mut Chain<'_>) {
    let head = &chain.facts.row.head;
    let how = head.stop_reason.map_or("for good", links::stop_reason);
    chain.say(format!("It has ended {how}."));
    chain.link("ended", format!("the session ended {how} after {} steps", head.steps)).since(head.updated_at_ms);
    chain.remedy("Create a new session; an ended one never runs again.");
}

fn failed(chain: &mut Chain<'_>) {
    let head = &chain.facts.row.head;
    let error = head.last_error.as_deref().unwrap_or("no message was kept");
    chain.say(format!("Its step {} failed: {error}", head.next_step_token));
    chain.link("error", error.to_owned()).since(head.updated_at_ms);
    if let Some(resume) = chain.oldest(ActionType::Resume) {
        chain.pending_action(resume, "takes the session up at the failed step");
        chain.shard_if_idle();
        return;
    }
    chain.remedy("Mend the cause, then resume it: it runs the failed step again. Or destroy it.");
}

fn starting(chain: &mut Chain<'_>) {
    match chain.oldest(ActionType::Create) {
        Some(create) => {
            chain.say("Its create action is accepted and not applied yet.".into());
            chain.pending_action(create, "starts the session");
            if let Some(stop) = chain.oldest(ActionType::Destroy) {
                chain.pending_action(stop, "ends the session before its first step");
            }
            chain.shard();
        }
        // The facts are not read in one transaction: it has just been applied.
        None => {
            chain.say("Its create action is being applied at this moment.".into());
            chain.remedy("Ask again.");
        }
    }
}

fn stopping(chain: &mut Chain<'_>) {
    let until = chain.facts.row.head.updated_at_ms + DESTROY_GRACE_MS as i64;
    chain.say("It is being destroyed; its running step has a grace period to end.".into());
    chain.link("stopping", "the running step may end by itself until then, and is cut off after".into()).until(until);
    chain.effects();
    chain.shard_if_idle();
}

fn paused(chain: &mut Chain<'_>) {
    let head = &chain.facts.row.head;
    let (by, reason) = match &head.cause {
        Cause::Paused { by, reason } => (by.as_str(), reason.as_deref()),
        _ => ("somebody", None),
    };
    let because = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    chain.say(format!("It is paused by {by}{because}."));
    chain.link("paused", format!("by {by}{because}")).since(head.updated_at_ms);
    chain.waiting_behind("a pause");
    match chain.oldest(ActionType::Resume) {
        Some(resume) => {
            chain.pending_action(resume, "ends the pause");
            chain.shard_if_idle();
        }
        None => chain.remedy("Resume it."),
    }
}

fn running(chain: &mut Chain<'_>) {
    match &chain.facts.row.head.cause {
        Cause::Timer => timer(chain),
        Cause::Input => input(chain),
        Cause::Operation => operation(chain),
        // The other causes belong to other statuses; with this one they mean a step can run.
        Cause::Runnable | Cause::Paused { .. } | Cause::Ended => runnable(chain),
    }
    for kind in [ActionType::Destroy, ActionType::Pause] {
        if let Some(action) = chain.oldest(kind) {
            chain.pending_action(action, "takes effect when the running step ends");
        }
    }
}

fn runnable(chain: &mut Chain<'_>) {
    let head = &chain.facts.row.head;
    let token = &head.next_step_token;
    let since = head.wake_at_ms.unwrap_or(head.updated_at_ms).max(head.updated_at_ms);
    if !chain.has_live_owner() {
        chain.say(format!("Its step {token} could run, and no worker owns its shard."));
    } else if chain.facts.now_ms - since > SLOW_MS {
        chain.say(format!(
            "Its step {token} has been running or waiting for {} s.",
            (chain.facts.now_ms - since) / 1_000
        ));
        chain.remedy(format!(
            "A step may wait for a model or another service for up to {} s. To end it, destroy the session; to \
             redirect it, interrupt with \"mode\": \"now\".",
            EFFECT_MS_MAX / 1_000
        ));
    } else {
        chain.say(format!("It runs: step {token} is being done."));
    }
    chain.link("step", format!("iteration {}, token {token}", head.steps)).since(since);
    chain.effects();
    chain.shard();
}

fn timer(chain: &mut Chain<'_>) {
    let head = &chain.facts.row.head;
    let Some(until) = head.wake_at_ms else { return runnable(chain) };
    if until <= chain.facts.now_ms {
        return runnable(chain);
    }
    chain.say(format!("It waits for its timer until {}.", rfc3339(until)));
    let what = match chain.facts.row.spec.loop_interval_ms {
        0 => "the next step is tried again then".to_owned(),
        ms => format!("loop_interval_ms is {ms}"),
    };
    chain.link("timer", what).since(head.updated_at_ms).until(until);
    if let Some(error) = &head.last_error {
        chain.link("last error", error.clone());
    }
    chain.shard_if_idle();
}

fn input(chain: &mut Chain<'_>) {
    let head = &chain.facts.row.head;
    let arrived = chain.oldest(ActionType::Input).or_else(|| chain.oldest(ActionType::Interrupt));
    match arrived {
        Some(action) => {
            chain.say(format!("Its {} is accepted and about to be applied.", action.kind.as_str()));
            chain.pending_action(action, "is what the session waits for");
            chain.shard();
        }
        None => {
            chain.say("It waits for input.".into());
            chain.link("input", "none is pending".into()).since(head.updated_at_ms);
            if let Some(until) = head.wake_at_ms {
                chain.link("limit", "max_runtime_s ends the session then".into()).until(until);
            }
            let verb = if chain.facts.takes_input { "Send it an input action." } else { "Interrupt it with guidance." };
            chain.remedy(verb);
            chain.shard_if_idle();
        }
    }
}

fn operation(chain: &mut Chain<'_>) {
    let head = &chain.facts.row.head;
    chain.say("It waits for an operation that is open.".into());
    if chain.facts.operations.is_empty() {
        let result = chain.oldest(ActionType::ToolResult);
        let detail = match result {
            Some(_) => "its result comes as a tool_result action",
            None => "none is open: if that lasts, the auditor ends the turn that waits",
        };
        chain.link("operation", detail.into()).since(head.updated_at_ms);
    }
    for operation in chain.facts.operations {
        chain.operation(operation);
    }
    if let Some(until) = head.wake_at_ms {
        chain.link("limit", "max_runtime_s ends the session then".into()).until(until);
    }
    chain.effects();
    if let Some(result) = chain.oldest(ActionType::ToolResult) {
        chain.pending_action(result, "is a result the session waits for");
        chain.shard();
    }
}
