//! Actions that other programs put on the broker, as the README shows it.

use std::path::Path;
use std::process::Command;

use reqwest::Method;

use crate::harness::{Harness, wait};

/// What stands for a broker in the README.
const SHOWN: &str = "amqp://user:password@localhost/%2f";

#[tokio::test]
#[ignore = "needs a broker: `ops/test fleet` runs it"]
async fn the_example_of_the_readme_is_taken() {
    let fleet = Harness::start().await;
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace").join("README.md");
    let readme = std::fs::read_to_string(readme).expect("the README");
    let blocks = readme.split("```python\n").skip(1).filter_map(|rest| rest.split("```").next());
    let examples: Vec<&str> = blocks.filter(|block| block.contains("pika.BlockingConnection")).collect();
    let [example] = examples[..] else { panic!("one example, not {}", examples.len()) };
    assert!(example.contains(SHOWN), "the example names a broker");
    let program = example.replace(SHOWN, fleet.setting("STEPFLEET_AMQP_URL").expect("a broker"));
    // Twice: the action has an id, so the second is the first.
    for _ in 0..2 {
        let ran = Command::new("/usr/bin/python3").args(["-c", &program]).output().expect("python3 is installed");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }
    let action = wait("the action is processed", || async {
        let answer = fleet.try_request(Method::GET, "/api/actions/nightly-1", None).await.expect("an answer");
        (answer.body["processed"] == true).then_some(answer.body)
    })
    .await;
    assert_eq!(action["outcome"], "ok", "{action}");
    let session = action["session_id"].as_str().expect("a session");
    fleet.wait_status(session, "completed").await;
    assert_eq!(fleet.steps(session).await.len(), 3);
    let list = fleet.get("/api/sessions").await;
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1), "{list}");
    wait("its acceptance was timed", || async {
        let metrics = fleet.get("/metrics").await;
        metrics.as_str().is_some_and(|text| text.contains("\nstepfleet_accept_seconds_count 1\n")).then_some(())
    })
    .await;
}
