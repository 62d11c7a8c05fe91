//! Every statement prepares, writers find rows by key alone, and the schema is the golden one.

use sqlx::{AssertSqlSafe, PgConnection, Row};

use super::super::connect::{Address, connect};
use super::super::statements;
use super::fresh;

const GOLDEN: &str = include_str!("../../../../../migrations/postgres/schema.sql");

async fn rows(connection: &mut PgConnection, sql: String) -> Vec<String> {
    let rows = sqlx::raw_sql(AssertSqlSafe(sql.clone())).fetch_all(connection).await;
    let rows = rows.unwrap_or_else(|error| panic!("{sql}: {error}"));
    rows.iter().map(|row| row.get::<String, _>(0)).collect()
}

fn parameters(sql: &str) -> usize {
    (1..100).rev().find(|n| sql.contains(&format!("${n}"))).unwrap_or(0)
}

/// The plan that serves whatever is asked.
async fn plan(connection: &mut PgConnection, sql: &str) -> Vec<String> {
    rows(connection, format!("PREPARE wanted AS {sql}")).await;
    let nulls = vec!["NULL"; parameters(sql)].join(", ");
    let arguments = if nulls.is_empty() { nulls } else { format!("({nulls})") };
    let plan = rows(connection, format!("EXPLAIN (COSTS OFF) EXECUTE wanted{arguments}")).await;
    rows(connection, "DEALLOCATE wanted".to_owned()).await;
    plan
}

#[tokio::test]
async fn all_statements_prepare() {
    let (store, url) = fresh().await;
    let address = Address::parse(&url).expect("a URL");
    let mut connection = connect(&address.for_reading()).await.expect("a connection");
    for (name, sql) in statements() {
        assert!(!plan(&mut connection, sql).await.is_empty(), "{name}");
    }
    store.close().await;
}

/// Statements that run on connections with one plan for each; of some rooms, all.
const BY_KEY: &[&str] = &[
    "commit::",
    "accept::",
    "talk::",
    "lookup::",
    "scan::",
    "conversations::one",
    "conversations::participants",
    "conversations::log",
    "conversations::log_back",
    "conversations::log_of_turn",
    "conversations::log_of_turn_back",
    "conversations::log_of_summaries",
    "conversations::log_of_summaries_back",
    "conversations::look",
    "conversations::record",
    "conversations::turn",
    "conversations::turns_of_conversation",
    "conversations::turns_of_conversation_back",
    "conversations::turns_open",
    "conversations::turns_open_back",
    "conversations::open_turns",
    "conversations::is_at_work",
    "conversations::spent",
    "definitions::newest",
    "definitions::at",
    "ledger::action",
    "ledger::pending",
    "ledger::pending_count",
    "ledger::mark_published",
    "memories::stamps",
    "memories::scan_some",
    "memories::some",
    "memories::recent",
    "memories::recent_of_tier",
    "memories::recent_of_type",
    "memories::is_near",
    "operations::one",
    "operations::claim",
    "operations::extend",
    "sessions::newest",
    "sessions::rearm",
];

/// The tables have no rows and no statistics, as on a new installation: then as later, a batch must
/// cost what its own rows cost, and must lock sessions in the order it names them in.
#[tokio::test]
async fn writers_find_rows_by_key_in_the_order_given() {
    let (store, url) = fresh().await;
    let address = Address::parse(&url).expect("a URL");
    let mut connection = connect(&address.for_writing(false)).await.expect("a connection");
    let mut wrong = Vec::new();
    let all = statements();
    let is_of = |name: &str, part: &str| name == part || (part.ends_with("::") && name.starts_with(part));
    for part in BY_KEY {
        assert!(all.iter().any(|(name, _)| is_of(name, part)), "there is no {part}");
    }
    for (name, sql) in all.into_iter().filter(|(name, _)| BY_KEY.iter().any(|part| is_of(name, part))) {
        let plan = plan(&mut connection, sql).await;
        if plan.iter().any(|line| line.contains("Seq Scan")) {
            wrong.push(format!("{name} scans:\n{}", plan.join("\n")));
        }
        for pair in plan.windows(2) {
            let Some((_, used)) = pair[0].split_once(" using ") else { continue };
            let is_by_key = [
                ("sessions_pkey ", "session_id ="),
                ("session_specs_pkey ", "session_id ="),
                ("sessions_of_agent ", "agent_id ="),
                ("actions_pkey ", "action_id ="),
                ("shards_pkey ", "shard ="),
                ("session_specs_pkey ", "session_id ="),
                ("conversations_pkey ", "conversation_id ="),
                ("conversation_participants_pkey ", "conversation_id ="),
                ("participants_now ", "conversation_id ="),
                ("conversation_log_namespace_conversation_id_record_id_key ", "record_id ="),
                ("conversation_log_pkey ", "conversation_id ="),
                ("log_of_turn ", "turn_id ="),
                ("log_summaries ", "conversation_id ="),
                ("turns_pkey ", "turn_id ="),
                ("turns_of_conversation ", "conversation_id ="),
                ("turns_open ", "conversation_id ="),
                ("turns_active ", "session_id ="),
                ("spending_pkey ", "namespace ="),
                ("definitions_pkey ", "(id ="),
                ("definition_versions_pkey ", "(id ="),
                // One counts the rows of an agent.
                ("memories_pkey ", if name == "memories::is_near" { "agent_id =" } else { "(id =" }),
                ("memories_far ", "agent_id ="),
                ("memories_recent ", "agent_id ="),
                ("memories_tier ", "tier ="),
                ("memories_type ", "agent_id ="),
                ("operations_pkey ", "operation_id ="),
                ("operations_due ", "pool ="),
                ("actions_pending ", "shard ="),
                ("sessions_wake ", "shard ="),
            ]
            .iter()
            .any(|(index, condition)| used.starts_with(index) && pair[1].contains(condition));
            if !is_by_key {
                wrong.push(format!("{name} reads much:\n{}", plan.join("\n")));
            }
        }
        if ["commit::commit", "commit::speak"].contains(&name) {
            let joined = plan.join("\n");
            let at = joined.find("Update on sessions").expect("it updates sessions");
            let order: Vec<_> = ["Nested Loop", "CTE Scan on given", "Index Scan using sessions_pkey"]
                .iter()
                .map(|part| joined[at..].find(part).unwrap_or_else(|| panic!("no {part} in\n{joined}")))
                .collect();
            assert!(order.is_sorted(), "the commits should lead:\n{joined}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    store.close().await;
}

/// Columns, constraints and indexes as PostgreSQL understood them.
const DESCRIBE: &str = "
    WITH tables AS (
        SELECT c.oid, c.relname, c.reloptions FROM pg_class AS c
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND c.relname <> '_sqlx_migrations')
    SELECT text FROM (
        SELECT t.relname, 1 AS part, lpad(a.attnum::text, 4) AS place,
            '  ' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
            || CASE WHEN a.attcollation = '\"C\"'::regcollation THEN ' COLLATE \"C\"' ELSE '' END
            || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
            || coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), '') AS text
        FROM tables AS t JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
        LEFT JOIN pg_attrdef AS d ON d.adrelid = t.oid AND d.adnum = a.attnum
        UNION ALL SELECT relname, 0, '', 'TABLE ' || relname || coalesce(' WITH (' || array_to_string(reloptions, ', ') || ')', '') FROM tables
        UNION ALL SELECT t.relname, 2, c.conname, '  ' || pg_get_constraintdef(c.oid)
        FROM tables AS t JOIN pg_constraint AS c ON c.conrelid = t.oid AND c.contype <> 'n'
        UNION ALL SELECT t.relname, 3, i.relname, '  ' || replace(pg_get_indexdef(i.oid), quote_ident(current_schema()) || '.', '')
        FROM tables AS t JOIN pg_index AS x ON x.indrelid = t.oid AND NOT x.indisprimary
        JOIN pg_class AS i ON i.oid = x.indexrelid
    ) AS lines ORDER BY relname COLLATE \"C\", part, place COLLATE \"C\"";

#[tokio::test]
async fn the_schema_is_the_golden_one() {
    let (store, url) = fresh().await;
    let address = Address::parse(&url).expect("a URL");
    let mut connection = connect(&address.for_reading()).await.expect("a connection");
    let header = "-- What the migrations make, as PostgreSQL describes it.\n";
    let schema = format!("{header}{}\n", rows(&mut connection, DESCRIBE.to_owned()).await.join("\n"));
    assert!(schema == GOLDEN, "migrations/postgres/schema.sql should read:\n\n{schema}");
    store.close().await;
}
