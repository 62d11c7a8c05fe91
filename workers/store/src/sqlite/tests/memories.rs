//! A corpus that is larger than a search looks at, and content that leaves nothing behind.

use domain::memory::{MemoryFilter, MemoryKey, MemoryQuery, NewMemory, Weights};
use domain::ports::Memories;
use schemas::id::{AgentId, MemoryId, Namespace};
use schemas::limits::MEMORIES_SCANNED_MAX;
use schemas::memory::{MemoryOwner, MemoryTier};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, Row, SqliteConnection};

use super::fresh;

fn owner() -> MemoryOwner {
    MemoryOwner { namespace: Namespace::default_ns(), agent_id: AgentId::parse("agent").expect("an id") }
}

fn query(text: &str) -> MemoryQuery {
    MemoryQuery {
        text: text.into(),
        embedding: None,
        filter: MemoryFilter::default(),
        weights: Weights::default(),
        min_relevance: 0.0,
        limit: 100,
    }
}

#[tokio::test]
async fn a_search_looks_at_the_newest_and_says_that_there_are_more() {
    let (store, path, _directory) = fresh().await;
    let options = SqliteConnectOptions::new().filename(&path);
    let mut connection = SqliteConnection::connect_with(&options).await.expect("a connection");
    // The oldest ones have the smallest numbers, and ids in no order at all.
    let fill = "
        WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1)
        INSERT INTO memories (namespace, agent_id, id, version, tier, type, significance, metadata, content,
            content_hash, body_hash, created_at_ms, updated_at_ms)
        SELECT 'default', 'agent', printf('m%d', (n * 7919) % 1000003), 1, 'archival', 'fact', 0.5, '{}',
            CASE WHEN n IN (1, 2, 3, ?1) THEN 'needle ' || n ELSE 'hay' END, zeroblob(32), zeroblob(32), n, n
        FROM n";
    let count = MEMORIES_SCANNED_MAX as i64 + 2;
    sqlx::query(fill).bind(count).execute(&mut connection).await.expect("filled");
    connection.close().await.expect("closed");
    let found = store.search(&owner(), &query("needle")).await.expect("a search");
    let mut contents: Vec<_> = found.hits.iter().map(|hit| hit.memory.content.clone()).collect();
    contents.sort();
    assert!(found.incomplete);
    assert_eq!(contents, ["needle 3".to_owned(), format!("needle {count}")]);
    // What is too old to be searched is still read.
    let oldest = MemoryKey::Id(MemoryId::parse("m7919").expect("an id"));
    let oldest = store.read(&owner(), &oldest).await.expect("read").expect("it is there");
    assert_eq!(oldest.content, "needle 1");
    assert!(store.delete(&owner(), &MemoryKey::Id(oldest.id)).await.expect("deleted"));
    assert!(store.search(&owner(), &query("needle")).await.expect("a search").incomplete, "one too many is left");
}

#[tokio::test]
async fn nothing_of_a_deleted_memory_is_left() {
    let (store, _, _directory) = fresh().await;
    let memory = NewMemory {
        id: MemoryId::parse("m1").expect("an id"),
        label: Some("secret label".into()),
        tier: MemoryTier::Archival,
        kind: "fact".into(),
        content: "secret ".repeat(1_000),
        significance: 0.5,
        metadata: [("secret".to_owned(), "metadata".into())].into_iter().collect(),
        embedding: None,
        expect_version: None,
    };
    store.write(&owner(), &memory).await.expect("written");
    let count = async || -> (i64, i64) {
        let row = sqlx::query(
            "SELECT (SELECT count(*) FROM blobs) AS blobs,
                (SELECT count(*) FROM memories WHERE coalesce(label, '') || metadata || content LIKE '%secret%') AS kept",
        );
        let row = row.fetch_one(&mut *store.0.readers.lend().await.expect("a connection")).await.expect("a row");
        (row.get("blobs"), row.get("kept"))
    };
    assert_eq!(count().await, (1, 1));
    store.delete(&owner(), &MemoryKey::Id(memory.id.clone())).await.expect("deleted");
    assert_eq!(count().await, (0, 0));
    let again = NewMemory { id: MemoryId::parse("m2").expect("an id"), ..memory };
    store.write(&owner(), &again).await.expect("written");
    store.write(&owner(), &NewMemory { content: "short".into(), ..again }).await.expect("written");
    assert_eq!(count().await.0, 0, "what no longer overflows leaves no overflow");
}

#[tokio::test]
async fn what_searches_keep_in_memory_is_bounded() {
    const BYTES_MAX: usize = 32 << 20;
    let (store, path, _directory) = fresh().await;
    let options = SqliteConnectOptions::new().filename(&path);
    let mut connection = SqliteConnection::connect_with(&options).await.expect("a connection");
    // Ten memories of 600 kB each for every agent: the rows of five agents have room, those of six do not.
    let fill = "
        WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 59)
        INSERT INTO memories (namespace, agent_id, id, version, tier, type, significance, metadata, content,
            content_hash, body_hash, created_at_ms, updated_at_ms)
        SELECT 'default', printf('agent%d', n / 10), printf('m%d', n), 1, 'archival', 'fact', 0.5,
            json_object('large', hex(zeroblob(300000))), 'needle', zeroblob(32), zeroblob(32), n, n
        FROM n";
    sqlx::query(fill).execute(&mut connection).await.expect("filled");
    connection.close().await.expect("closed");
    let search = async |n: usize| {
        let agent_id = AgentId::parse(&format!("agent{n}")).expect("an id");
        let found = store.search(&MemoryOwner { agent_id, ..owner() }, &query("needle")).await.expect("a search");
        let mut ids: Vec<_> = found.hits.iter().map(|hit| hit.memory.id.to_string()).collect();
        ids.sort();
        assert_eq!(ids, (0..10).map(|m| format!("m{}", 10 * n + m)).collect::<Vec<_>>());
        store.0.seen.kept()
    };
    for n in 0..5 {
        let (agents, bytes) = search(n).await;
        assert_eq!(agents, n + 1, "there is room");
        assert!((agents * 6_000_000..BYTES_MAX).contains(&bytes), "{agents} agents take {bytes} bytes");
    }
    for n in [5, 0] {
        let (agents, bytes) = search(n).await;
        assert_eq!(agents, if n == 5 { 1 } else { 2 }, "all but those of the search are forgotten, and read again");
        assert!(bytes < BYTES_MAX, "{bytes} bytes");
    }
}
