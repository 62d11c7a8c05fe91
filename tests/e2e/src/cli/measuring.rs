//! Measurements in a fleet that runs already.

use serde_json::Value;
use tempfile::TempDir;

use super::{assert_says, told};
use crate::harness::Harness;

#[tokio::test]
async fn a_move_is_measured_in_the_fleet_that_is_named() {
    // The profile of the model is the fleet's, so where the model will answer must be known before.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let model = listener.local_addr().expect("an address").to_string();
    drop(listener);
    let scratch = TempDir::new().expect("a directory");
    let file = scratch.path().join("bench.toml");
    let settings =
        format!("[models.bench]\nprovider = \"openai\"\nmodel = \"bench\"\nbase_url = \"http://{model}/v1\"\n");
    std::fs::write(&file, settings).expect("the settings");
    let fleet = Harness::start_in(&[("STEPFLEET_CONFIG", file.to_str().expect("a path"))]).await;

    let out = told(&fleet, &["bench", "talk", "--quick", "--fleet", &model]).await;
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    assert_eq!(lines.len(), 2, "{out}");
    for line in &lines {
        assert_eq!(line["metric"], "overhead_per_move_ms", "{line}");
        assert_eq!(line["mode"], "fleet", "{line}");
        let of = |name: &str| line[name].as_f64().unwrap_or_else(|| panic!("no {name}: {line}"));
        assert!(0.0 < of("before_model_p50") && 0.0 < of("p50") && of("p50") <= of("p99"), "{line}");
    }

    // It was this fleet that did the work: 20 turns to warm up and 20 that counted, of either kind.
    let sessions = fleet.get("/api/sessions?q=bench-").await;
    let id = sessions["items"][0]["session_id"].as_str().expect("its session");
    let turns = fleet.get(&format!("/api/conversations/{id}/turns?status=completed&limit=200")).await;
    assert_eq!(turns["items"].as_array().map(Vec::len), Some(80), "{turns}");

    let (ok, out, err) = fleet.cli(&["bench", "lone", "--fleet", &model]).await;
    assert!(!ok, "{out}");
    assert_says(&err, &["talk and streams", "leave out --fleet"]);
}
