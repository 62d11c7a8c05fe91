//! `doctor` and `token`, on a running fleet and on a stopped one.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Harness, command};

/// One of the checks of a report: whether it is well, and what is said of it.
fn check(report: &Value, name: &str) -> (bool, String) {
    let checks = report["checks"].as_array().expect("checks");
    let found = checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no {name}: {report}"));
    (found["well"] == true, found["detail"].as_str().expect("a detail").to_owned())
}

#[tokio::test]
async fn the_doctor_works_beside_a_fleet_and_without_one() {
    let mut fleet = Harness::start().await;
    fleet.create("seen", json!({ "moniker": "count", "config": { "until": 20 } })).await;
    fleet.wait_status("seen", "completed").await;
    let look = async |fleet: &Harness| {
        let (ok, out, err) = fleet.cli(&["doctor", "--verify-history", "--json"]).await;
        assert!(ok, "{out}{err}");
        let report: Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(report["well"], true, "{report}");
        assert_eq!(report["history"]["sessions"], 1, "{report}");
        assert_eq!(report["history"]["steps"], 20, "{report}");
        report
    };
    let running = look(&fleet).await;
    assert!(check(&running, "leases").1.starts_with("all "), "{running}");
    let (_, roles) = check(&running, "roles");
    assert!(roles.contains("is archivist") && roles.contains("is auditor"), "{running}");
    let (_, workers) = check(&running, "workers");
    assert!(workers.contains("1 alive") && workers.contains(env!("CARGO_PKG_VERSION")), "{running}");
    assert!(fleet.stop().await.success());
    // Nobody holds a shard of a fleet that does not run.
    let stopped = look(&fleet).await;
    assert!(!stopped.to_string().contains("leases"), "{stopped}");
    // As people see it: a row for each check.
    let (ok, table, err) = fleet.cli(&["doctor"]).await;
    assert!(ok, "{table}{err}");
    let row = table.lines().find(|line| line.trim_start().starts_with("database ")).expect("a row");
    for part in [" true ", "SQLite 3.", "schema version "] {
        assert!(row.contains(part), "{part:?}: {table}");
    }
}

#[tokio::test]
async fn a_budget_in_money_that_counts_nothing_is_told() {
    let fleet = Harness::start().await;
    let look = async || {
        let (ok, out, err) = fleet.cli(&["doctor", "--json"]).await;
        assert!(ok, "{out}{err}");
        let report: Value = serde_json::from_str(&out).expect("JSON");
        let checks = report["checks"].as_array().expect("checks");
        let found = checks.iter().find(|check| check["name"] == "budgets").expect("the check").clone();
        (found["warning"] == true, found["detail"].as_str().expect("a detail").to_owned())
    };
    let item = |kind: &str, definition: Value| json!({ "kind": kind, "definition": definition });
    let define = async |price: f64| {
        let persona = json!({ "id": "saver", "name": "Saver", "project_id": "p1", "system_prompt": "You help.",
            "model_profile_id": "m", "constraints": { "budgets": { "max_cost_per_turn": 1.0 } } });
        let profile = json!({ "id": "m", "name": "M", "provider": "scripted", "model_id": "scripted",
            "cost_per_1k_output_tokens": price });
        let agent =
            json!({ "id": "ben", "name": "Ben", "project_ids": ["p1"], "persona_ref": { "persona_id": "saver" } });
        let list = json!([
            item("project", json!({ "id": "p1", "name": "P1" })),
            item("model_profile", profile),
            item("persona", persona),
            item("agent", agent),
        ]);
        let answer = fleet.post("/api/definitions", &list).await;
        assert!(answer.status.is_success(), "{answer:?}");
    };
    assert!(!look().await.0, "a new fleet has no budgets");
    define(0.0).await;
    let (warning, detail) = look().await;
    assert!(warning && detail.contains("agent ben counts nothing of model profile m"), "{detail}");
    define(0.5).await;
    assert!(!look().await.0, "it has a price now");
}

#[tokio::test]
async fn what_is_down_is_part_of_the_report_and_the_rest_is_looked_at() {
    let scratch = TempDir::new().unwrap();
    // Nobody listens on a port that was free a moment ago.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let place = format!("127.0.0.1:{}", listener.local_addr().expect("an address").port());
    drop(listener);
    let mut doctor = command();
    doctor.current_dir(scratch.path()).args(["doctor", "--verify-history", "--json"]);
    doctor.env("STEPFLEET_DATABASE_URL", format!("postgres://me:s3cret@{place}/fleet"));
    doctor.env("STEPFLEET_AMQP_URL", format!("amqp://me:s3cret@{place}/"));
    doctor.env("STEPFLEET_HISTORY_URI", scratch.path());
    let output = tokio::task::spawn_blocking(move || doctor.output()).await.unwrap().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{out}{err}");
    assert!(!out.contains("s3cret") && !err.contains("s3cret"), "{out}{err}");
    let report: Value = serde_json::from_str(&out).expect("JSON, whatever is down");
    assert_eq!(report["well"], false, "{report}");
    for (name, part) in [("database", "cannot be reached"), ("broker", "cannot connect")] {
        let (well, detail) = check(&report, name);
        assert!(!well && detail.contains(part) && detail.contains(&place), "{name}: {report}");
        assert!(err.contains(name), "{err}");
    }
    // What is there is looked at, and what cannot be proven is not claimed.
    assert!(check(&report, "disk space").0, "{report}");
    check(&report, "archive");
    assert!(!check(&report, "history").0, "{report}");
}

#[tokio::test]
async fn where_there_is_nothing_the_doctor_says_what_to_name() {
    let scratch = TempDir::new().unwrap();
    let mut doctor = command();
    doctor.current_dir(scratch.path()).args(["doctor", "--json"]);
    let output = tokio::task::spawn_blocking(move || doctor.output()).await.unwrap().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{out}{err}");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    let (well, detail) = check(&report, "data directory");
    assert!(!well && detail.contains("--data-dir") && detail.contains("STEPFLEET_DATABASE_URL"), "{report}");
    assert!(!out.contains("os error"), "{report}");
    assert_eq!(scratch.path().read_dir().expect("a directory").count(), 0, "nothing is made");
}

#[tokio::test]
async fn of_a_fleet_elsewhere_the_doctor_says_what_its_gateway_says() {
    let mut fleet = Harness::start().await;
    crate::harness::wait("all shards have an owner", || async {
        (fleet.get("/health").await["status"] == "ok").then_some(())
    })
    .await;
    let scratch = TempDir::new().unwrap();
    let (url, place) = (fleet.base_url.clone(), scratch.path().to_owned());
    let look = async |more: &'static [&'static str]| {
        let mut doctor = command();
        doctor.current_dir(&place).args(["doctor", "--json"]).args(more).env("STEPFLEET_URL", &url);
        let output = tokio::task::spawn_blocking(move || doctor.output()).await.unwrap().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (output.status.success(), report)
    };
    let (ok, report) = look(&[]).await;
    let (well, detail) = check(&report, "gateway");
    assert!(ok && well && detail.contains(&url) && detail.contains(env!("CARGO_PKG_VERSION")), "{report}");
    assert!(check(&report, "services").1.contains("STEPFLEET_DATABASE_URL"), "{report}");
    assert!(!report.to_string().contains("data directory"), "there is none to be missed: {report}");
    // What cannot be read is not claimed.
    let (ok, report) = look(&["--verify-history"]).await;
    assert!(!ok && check(&report, "gateway").0 && !check(&report, "history").0, "{report}");
    assert!(fleet.stop().await.success());
    let (ok, report) = look(&[]).await;
    let (well, detail) = check(&report, "gateway");
    assert!(!ok && !well && detail.contains("no fleet answers at"), "{report}");
    assert_eq!(scratch.path().read_dir().expect("a directory").count(), 0, "nothing is made");
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
