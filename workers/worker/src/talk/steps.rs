//! One answer of a model for a step of a session without turns (SPEC Q-MON-12): by the same adapters as replies of
//! turns, under the same budgets, and with the same records.

use domain::context::estimate_request;
use domain::effect::{Asked, EffectCall, EffectFailure, ModelRequest, Outcome};
use domain::moniker::model::asking;
use schemas::definition::Budgets;
use schemas::problem::Code;
use tokio::sync::Notify;

use super::budgets::Allowance;
use super::{TalkDeps, ask_until_cut, persona};

pub(super) async fn ask(deps: &TalkDeps, call: &EffectCall, request: &ModelRequest, cut: &Notify) -> Outcome {
    asked(deps, call, request, cut).await.map_or_else(|outcome| outcome, Outcome::from)
}

async fn asked(deps: &TalkDeps, call: &EffectCall, request: &ModelRequest, cut: &Notify) -> Result<Asked, Outcome> {
    let namespace = &call.session.namespace;
    let unbound = Budgets::default();
    let checks = asking::checks(request, deps.budgets.get(namespace).map_or(&unbound, |budget| &budget.each));
    let (target, allowance) = tokio::try_join!(
        persona::target(deps, namespace, request.profile.as_deref()),
        Allowance::read(deps, namespace, &checks),
    )?;
    let chat = asking::call_of(call, request, target);
    let over = allowance.over(request.unrecorded, Some((&chat.target, estimate_request(&chat.request))));
    if over.is_some() {
        let answer = Err(unasked("a budget does not allow the call"));
        return Ok(Asked { answer, record: None, over });
    }
    Ok(match ask_until_cut(deps, &chat, cut).await {
        Ok(outcome) => asking::answered(outcome),
        Err(record) => Asked { answer: Err(unasked("the call was cut short")), record, over: None },
    })
}

fn unasked(message: &str) -> EffectFailure {
    EffectFailure { code: Code::ProviderFailed, message: message.to_owned(), retriable: true, may_have_happened: false }
}
