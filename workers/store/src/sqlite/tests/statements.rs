//! Every statement prepares, uses its index, and the schema is the golden one.

use sqlx::{AssertSqlSafe, Row};

use super::super::statements;
use super::fresh;

const GOLDEN: &str = include_str!("../../../../../migrations/sqlite/schema.sql");

#[tokio::test]
async fn all_statements_prepare_and_none_scans() {
    let (store, _, _directory) = fresh().await;
    // Tables of one row per shard, worker or token are read whole; so are walks and parameters.
    let small = [
        "CONSTANT",
        "shards",
        "roles",
        "s",
        "workers",
        "tokens",
        "meta",
        "j",
        "json_each",
        "walk",
        "w",
        // Sessions with what waits for them, and the two kinds of it.
        "o",
        "m",
        // A page of definitions, and its rows within.
        "d",
        "numbers",
        "sqlite_schema",
    ];
    for (name, sql) in statements() {
        let explain = format!("EXPLAIN QUERY PLAN {sql}");
        let rows = sqlx::query(AssertSqlSafe(explain))
            .fetch_all(&mut *store.0.readers.lend().await.expect("a connection"))
            .await;
        let rows = rows.unwrap_or_else(|error| panic!("{name} does not prepare: {error}"));
        for row in rows {
            let step: String = row.get("detail");
            let scanned = step.strip_prefix("SCAN ").and_then(|rest| rest.split(' ').next());
            // The first row of a walk is a subquery of one row.
            let whole = scanned.is_some_and(|table| !small.contains(&table) && !table.starts_with("(subquery"));
            // Counts read a whole index of what they count, and nothing else; the age of the queue looks
            // into rows of the control lane.
            let counts = ["ledger::stats", "sessions::count_by_status"].contains(&name);
            let of_control = name == "ledger::stats" && step == "SCAN a USING INDEX actions_pending";
            let by_index = step.contains("USING COVERING INDEX") || of_control;
            assert!(!whole || (counts && by_index), "{name} scans: {step}\n{sql}");
        }
    }
}

#[tokio::test]
async fn orders_come_from_indexes() {
    let (store, _, _directory) = fresh().await;
    let ordered = [
        "ledger::pending",
        "ledger::sessions_with_pending",
        "ledger::unpublished",
        "journal::latest",
        "journal::entries",
        "journal::entries_back",
        "journal::above",
        "sessions::newest",
        "sessions::list",
        "sessions::list_of_agent",
        "sessions::list_of_status",
        "sessions::agents",
        "sessions::due",
        "definitions::versions",
        "conversations::list",
        "conversations::list_listed",
        "conversations::list_of_subject",
        "conversations::list_of_tag",
        "conversations::list_of_agent",
        "conversations::list_of_user",
        "conversations::log",
        "conversations::log_back",
        "conversations::log_of_summaries_back",
        "conversations::log_of_turn",
        "conversations::log_of_turn_back",
        "conversations::turns",
        "conversations::turns_back",
        "conversations::turns_of_conversation",
        "conversations::turns_of_conversation_back",
        "conversations::turns_of_session",
        "conversations::turns_of_session_back",
        "conversations::turns_open",
        "conversations::turns_open_back",
        "conversations::active_turns",
        "operations::due",
        "operations::waiting",
        "operations::expired",
        "operations::overdue",
        "operations::list",
        "operations::list_of_conversation",
        "operations::list_of_turn",
        "memories::floor",
        "memories::scan",
        "memories::recent",
        "memories::recent_of_tier",
        "memories::recent_of_type",
        "memories::unembedded",
        "memories::tail",
        "memories::waiting",
        "memories::heavy",
        "memories::of_model",
        "memories::of_later_model",
        "memories::settled",
        "transcripts::unarchived",
        "transcripts::archived_ends",
        "transcripts::heavy_records",
    ];
    for (name, sql) in statements().into_iter().filter(|(name, _)| ordered.contains(name)) {
        let explain = format!("EXPLAIN QUERY PLAN {sql}");
        let rows = sqlx::query(AssertSqlSafe(explain))
            .fetch_all(&mut *store.0.readers.lend().await.expect("a connection"))
            .await
            .expect("a plan");
        let steps: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
        assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE")), "{name} sorts: {steps:#?}");
    }
}

#[tokio::test]
async fn the_schema_is_the_golden_one() {
    let (store, _, _directory) = fresh().await;
    let rows = sqlx::query(
        "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE '\\_sqlx%' ESCAPE '\\'
         ORDER BY type DESC, name",
    )
    .fetch_all(&mut *store.0.readers.lend().await.expect("a connection"))
    .await
    .expect("the schema");
    let schema: Vec<String> = rows.iter().map(|row| row.get::<String, _>("sql") + ";\n").collect();
    let schema = schema.join("\n");
    assert!(schema == GOLDEN, "migrations/sqlite/schema.sql should read:\n\n{schema}");
}
