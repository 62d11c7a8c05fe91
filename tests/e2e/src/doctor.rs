//! `doctor` and `token`, on a running fleet and on a stopped one.

use serde_json::{Value, json};

use crate::harness::Harness;

#[tokio::test]
async fn the_doctor_works_beside_a_fleet_and_without_one() {
    let mut fleet = Harness::start().await;
    fleet.create("seen", json!({ "moniker": "count", "config": { "until": 20 } })).await;
    fleet.wait_status("seen", "completed").await;
    let check = async |fleet: &Harness| {
        let (ok, out, err) = fleet.cli(&["doctor", "--verify-history", "--json"]).await;
        assert!(ok, "{out}{err}");
        let report: Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(report["well"], true, "{report}");
        assert_eq!(report["history"]["sessions"], 1, "{report}");
        assert_eq!(report["history"]["steps"], 20, "{report}");
    };
    check(&fleet).await;
    assert!(fleet.stop().await.success());
    check(&fleet).await;
}

#[tokio::test]
async fn a_token_is_made_used_and_revoked_while_the_fleet_runs() {
    let fleet = Harness::start().await;
    let (ok, out, err) = fleet.cli(&["token", "create", "reader", "--scopes", "read", "--json"]).await;
    assert!(ok, "{err}");
    let token = serde_json::from_str::<Value>(&out).expect("JSON")["token"].as_str().expect("a token").to_owned();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let read = || http.get(format!("{}/api/sessions", fleet.base_url)).bearer_auth(&token).send();
    let status = async || read().await.unwrap().status().as_u16();
    crate::harness::wait("the token is known", || async { (status().await == 200).then_some(()) }).await;
    let act = http.post(format!("{}/api/actions", fleet.base_url)).bearer_auth(&token);
    let body = json!({ "type": "create", "payload": { "moniker": "echo" } });
    assert_eq!(act.json(&body).send().await.unwrap().status().as_u16(), 403);
    let (ok, out, _) = fleet.cli(&["token", "list"]).await;
    assert!(ok && out.contains("reader") && !out.contains(&token), "{out}");
    assert!(fleet.cli(&["token", "revoke", "reader"]).await.0);
    crate::harness::wait("the token is worthless", || async { (status().await == 401).then_some(()) }).await;
}
