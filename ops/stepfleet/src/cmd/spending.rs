//! `spending`

use anyhow::Result;
use comfy_table::Table;
use schemas::api::SpendingBody;
use serde_json::json;

use crate::client::Client;
use crate::output::{Output, or_dash, table};

/// Shows what the namespace of the token has used of models, and what it may use.
pub async fn run(client: &Client, out: Output) -> Result<()> {
    let spending: SpendingBody = client.get("/api/spending", &[]).await?;
    out.show(&spending, rows)
}

fn rows(spending: &SpendingBody) -> Table {
    let mut rows = table(&["of the namespace", "used", "allowed"]);
    let budget = spending.budget.clone().unwrap_or_default();
    rows.add_row(["namespace".to_owned(), spending.namespace.to_string(), String::new()]);
    rows.add_row(["tokens".to_owned(), spending.tokens.to_string(), or_dash(budget.max_tokens)]);
    rows.add_row(["cost".to_owned(), spending.cost.to_string(), or_dash(budget.max_cost)]);
    rows.add_row(["moves".to_owned(), spending.moves.to_string(), or_dash(budget.max_moves)]);
    // Bounds of one turn or session: what these have used is told with them.
    for (name, bound) in json!(budget.each).as_object().into_iter().flatten() {
        rows.add_row([name.clone(), "-".to_owned(), bound.to_string()]);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_stand_beside_their_bounds() {
        let body = json!({"namespace": "default", "tokens": 30, "cost": 0.5, "moves": 2,
            "budget": {"max_tokens": 1_000, "each": {"max_depth": 3}}});
        let text = rows(&serde_json::from_value(body).unwrap()).to_string();
        let line = |name: &str| text.lines().find(|line| line.contains(name)).unwrap_or_default().to_owned();
        assert!(line("tokens").contains("30") && line("tokens").contains("1000"), "{text}");
        assert!(line("cost").contains("0.5") && line("cost").contains('-'), "{text}");
        assert!(line("max_depth").contains('3'), "{text}");
        let unbounded = json!({"namespace": "other", "tokens": 0, "cost": 0.0, "moves": 0, "budget": null});
        assert!(rows(&serde_json::from_value(unbounded).unwrap()).to_string().contains("other"));
    }
}
