//! A database that is reached over TLS, and whose certificate is looked at.

use sqlx::{Connection, PgConnection};
use testkit::contract::Ports;
use testkit::contract::build::worker;
use testkit::services::Server;

use super::{fresh_url_on, open, try_open};
use crate::open::OpenError;

#[tokio::test]
async fn tls_is_spoken_and_only_to_who_can_show_a_right_certificate() {
    let server = Server::start_with_tls("postgres");
    let (url, stranger) = (server.told("POSTGRES_TLS_URL"), server.told("TLS_STRANGER"));
    let fresh = fresh_url_on(&url).await;
    let store = open(&fresh).await;
    let ports = Ports::of(store.clone());
    let row = ports.created("s1", "agent").await;
    ports.step(&worker("w1"), &row.key, 3).await;
    assert_eq!(ports.row(&row.key).await.head.steps, 3);
    let mut connection = PgConnection::connect(&url).await.expect("a connection");
    let how = "SELECT count(*) FILTER (WHERE s.ssl), count(*) FROM pg_stat_activity AS a
        JOIN pg_stat_ssl AS s USING (pid) WHERE a.backend_type = 'client backend' AND a.pid <> pg_backend_pid()";
    let (encrypted, all): (i64, i64) = sqlx::query_as(how).fetch_one(&mut connection).await.expect("a row");
    assert!(encrypted > 0 && encrypted == all, "{encrypted} of {all} connections are encrypted");
    store.close().await;

    let (address, ca) = url.split_once("sslrootcert=").expect("ops/services names the authority");
    assert_ne!(ca, stranger);
    let strange = format!("{address}sslrootcert={stranger}");
    let renamed = url.replace("@127.0.0.1:", "@localhost:");
    for (wrong, why) in [(strange, "another authority"), (renamed, "another name")] {
        let Err(error) = try_open(&wrong).await else { panic!("{why}: it opened") };
        assert!(matches!(error, OpenError::Untrusted { .. }), "{why}: {error}");
        let text = error.to_string();
        assert!(text.contains("certificate") && text.contains("sslrootcert=/path"), "{why}: {text}");
        assert!(!error.may_pass(), "{why}: waiting does not help");
        let password = url.split(':').nth(2).and_then(|rest| rest.split('@').next()).expect("a password");
        assert!(!text.contains(password), "{why}: the password is shown");
    }
}
