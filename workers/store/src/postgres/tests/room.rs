//! What is trimmed takes no room any more.

use domain::ports::Journal;
use sqlx::{Connection, PgConnection};
use testkit::services::Server;

use super::{execute, fresh_url_on, open};

/// Rows of about a kilobyte, archived long ago. The server's own upkeep stays away.
const FILL: &str = "
    ALTER TABLE journal SET (autovacuum_enabled = off, toast.autovacuum_enabled = off);
    UPDATE shards SET seq = 10000, archived_seq = 10000 WHERE shard = 0;
    INSERT INTO journal (shard, seq, namespace, session_id, first_offset, last_offset, committed_at_ms, body)
    SELECT 0, n, 'default', 's1', n, n, 1, repeat(md5(n::text), 32) FROM generate_series(1, 2000) AS n";
const FILL_A_LITTLE: &str = "
    INSERT INTO journal (shard, seq, namespace, session_id, first_offset, last_offset, committed_at_ms, body)
    SELECT 0, n, 'default', 's1', n, n, 1, repeat(md5(n::text), 32) FROM generate_series(2001, 2200) AS n";

/// The server is the test's own: a transaction of anybody else in the database keeps what was deleted.
#[tokio::test]
async fn the_journal_is_small_again_after_a_trim() {
    let server = Server::start("postgres");
    let url = fresh_url_on(&server.told("STEPFLEET_DATABASE_URL")).await;
    let store = open(&url).await;
    let mut connection = PgConnection::connect(&url).await.expect("a connection");
    let mut bytes = async || -> i64 {
        let size = sqlx::query_scalar("SELECT pg_relation_size('journal')").fetch_one(&mut connection).await;
        size.expect("a size")
    };
    execute(&url, FILL).await;
    let long = bytes().await;
    assert!(long > 1_000_000, "{long} bytes");
    for portion in [700, 700] {
        assert_eq!(store.trim(0, i64::MAX, 700).await.expect("trimmed"), portion);
        assert_eq!(bytes().await, long, "there is more to trim");
    }
    assert_eq!(store.trim(0, i64::MAX, 700).await.expect("trimmed"), 600);
    assert_eq!(bytes().await, 0, "at the end of the walk its room goes back");
    execute(&url, FILL_A_LITTLE).await;
    let short = bytes().await;
    assert_eq!(store.trim(0, i64::MAX, 700).await.expect("trimmed"), 200);
    assert_eq!(bytes().await, short, "so little is not worth it");
    store.close().await;
}
