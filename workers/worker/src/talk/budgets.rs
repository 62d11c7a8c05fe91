//! What calls of models are held against before they are made.

use domain::chat::ModelTarget;
use domain::converse::{Checks, Next, Over};
use domain::effect::Outcome;
use domain::spending::Spent;
use schemas::definition::NamespaceBudget;
use schemas::id::Namespace;

use super::{TalkDeps, stored};

/// The budgets of a turn, of its session and of their namespace, and what was used of them when they were read.
pub(super) struct Allowance<'a> {
    deps: &'a TalkDeps,
    checks: &'a Checks,
    /// What the namespace may use, and has used; `None` if it has no bound.
    pub namespace: Option<(&'a NamespaceBudget, Spent)>,
}

impl<'a> Allowance<'a> {
    pub async fn read(deps: &'a TalkDeps, namespace: &Namespace, checks: &'a Checks) -> Result<Self, Outcome> {
        let namespace = match deps.budgets.get(namespace) {
            Some(budget) => Some((budget, stored(|| deps.conversations.spent(namespace)).await?)),
            None => None,
        };
        Ok(Self { deps, checks, namespace })
    }

    /// What is used up, if anything is. `unrecorded`: what was used since, and is in no record yet. `request`: whom
    /// the next one is for, and its tokens, if one is to be made.
    pub fn over(&self, unrecorded: Spent, request: Option<(&ModelTarget, u64)>) -> Option<Over> {
        let next = match request {
            Some((target, tokens)) => Next { tokens, cost: self.deps.models.cost_of_input(target, tokens) },
            None => Next::default(),
        };
        let mut checks = self.checks.clone();
        checks.known.iter_mut().for_each(|known| known.charge(unrecorded));
        let namespace = self.namespace.map(|(budget, mut spent)| {
            spent.add(unrecorded);
            (budget, spent)
        });
        let held = namespace.as_ref().map(|(budget, spent)| (*budget, spent));
        checks.over(self.deps.clock.now_ms(), next, held)
    }
}
