//! `GET /api/spending`: what a namespace has used of models, and what it may use.

use axum::Json;
use axum::extract::State;
use axum::routing::get;
use schemas::api::SpendingBody;

use crate::answer::Answer;
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::routes::Route;

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/spending", get(read))
            .summary(
                "What the calls of models have used that conversations of the token's namespace have made since the \
                 beginning, and the budget that is configured for it.",
            )
            .answers(200, "SpendingBody"),
    ]
}

async fn read(State(gateway): State<Gateway>, caller: Caller) -> Answer<Json<SpendingBody>> {
    let spent = gateway.conversations.spent(&caller.namespace).await?;
    let budget = gateway.config.budgets.get(&caller.namespace).cloned();
    Ok(Json(SpendingBody {
        namespace: caller.namespace,
        tokens: spent.tokens,
        cost: spent.cost(),
        moves: spent.calls,
        budget,
    }))
}
