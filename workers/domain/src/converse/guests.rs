//! What agents cost that were looped in. They stay when their turns are over and nobody waits for them, so a guest's
//! turn tells at its end what it has used: once, because it takes along where, and under an id of the call.

use schemas::conversation::{Caller, TurnUsage};
use schemas::definition::Budgets;
use schemas::id::{ActionId, OperationId};
use serde::Deserialize;
use serde_json::{Value, json};

use super::agents::{self, AgentCall, From, SPENT};
use super::apply::Applying;
use super::ids;
use super::state::{Lane, SpentTo, Stage};
use crate::moniker::FollowUp;
use crate::spending::NANOS;

/// Field of what was spent: where it counts.
const TO: &str = "to";

/// Where it counts what the guest of a turn uses: there; or, as a delegate ends with its turn, at whoever called it.
pub(super) fn account(call: &AgentCall, from: &From<'_>, lane: Option<&Lane>) -> SpentTo {
    let own = SpentTo {
        session_id: from.session.clone(),
        operation_id: call.operation_id.clone(),
        turn_id: from.turn.clone(),
        then: None,
        tokens_left: None,
        cost_nanos_left: None,
    };
    let Some(lane) = lane else { return own };
    match (&lane.reply_to, &lane.turn.caller) {
        (Some(to), Caller::Agent { turn_id, .. }) => {
            SpentTo { session_id: to.session_id.clone(), turn_id: turn_id.clone(), ..own }
        }
        _ => SpentTo { then: lane.spent_to.as_ref().map(|to| Box::new(to.unbound())), ..own },
    }
}

impl SpentTo {
    /// What the turn may use: what its caller had left. Who had nothing left may begin, and then asks a person.
    pub(super) fn bounds(&self) -> Budgets {
        Budgets {
            max_tokens_per_turn: self.tokens_left,
            max_cost_per_turn: self.cost_nanos_left.map(|nanos| nanos as f64 / NANOS),
            ..Budgets::default()
        }
    }

    fn unbound(&self) -> Self {
        Self { tokens_left: None, cost_nanos_left: None, ..self.clone() }
    }
}

/// The end of a guest's turn, as whoever called it is told; `None` if it has used nothing.
pub(super) fn told(to: &SpentTo, used: TurnUsage) -> Option<FollowUp> {
    let action_id = ids::action_id(to.operation_id.as_str(), SPENT);
    (used != TurnUsage::default()).then(|| tells(action_id, &to.operation_id, to, used))
}

fn tells(action_id: ActionId, of: &OperationId, to: &SpentTo, used: TurnUsage) -> FollowUp {
    let spent = json!({"operation_id": of, "usage": used, TO: to.unbound()});
    agents::tells(action_id, &to.session_id, &spent)
}

/// Counts what a guest has used, if that is what is told. Before the end of the turn that called it, it is among what
/// that turn tells; after that, it is told further from here.
pub(super) fn counted(step: &mut Applying, spent: &Value) -> bool {
    let to = spent.get(TO).and_then(|to| SpentTo::deserialize(to).ok());
    let (Some(to), Some(of)) = (to, agents::operation_of(spent)) else { return false };
    let used = agents::usage_in(spent);
    let is_over = step.state.lane(&to.turn_id).is_none_or(|lane| lane.stage == Stage::Extract);
    if let Some(then) = to.then.as_ref().filter(|_| is_over) {
        let action_id = ids::action_id(of.as_str(), &format!("{SPENT}.{}", then.operation_id));
        step.emits.follow_ups.push(tells(action_id, &of, then, used));
    }
    step.state.spend(&to.turn_id, used);
    step.emits.turn = Some(to.turn_id);
    true
}
