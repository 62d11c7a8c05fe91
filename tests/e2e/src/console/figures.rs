//! What the console draws and counts: the latency of steps, and the numbers of the fleet.

use serde_json::{Value, json};

use super::webdriver::{Result, WebDriver};
use super::{Scene, unique};
use crate::harness::Harness;

/// Two paces, so that the line goes up and down. Times in milliseconds.
const SCRIPT: &str = r#"{
  "rules": [
    { "when": { "contains": "watch the clock" },
      "replies": [
        { "frame": { "next_step": "look/{{n}}", "state": {}, "text": "tick" }, "delay_ms": 20 },
        { "frame": { "next_step": "look/{{n}}", "state": {}, "text": "tock" }, "delay_ms": 120 }
      ] }
  ]
}"#;
const STEPS: usize = 6;

/// The part of the plot's width that has something in the colour of its line.
const PLOTTED: &str = "(() => {
    const canvas = document.querySelector('.plot canvas');
    const { data, width } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const probe = document.body.appendChild(document.createElement('i'));
    probe.style.color = 'var(--accent)';
    const [r, g, b] = getComputedStyle(probe).color.match(/[0-9.]+/g).map(Number);
    probe.remove();
    const columns = new Set();
    for (let at = 0; at < data.length; at += 4) {
      const far = Math.abs(data[at] - r) + Math.abs(data[at + 1] - g) + Math.abs(data[at + 2] - b);
      if (data[at + 3] > 250 && far < 12) columns.add((at / 4) % width);
    }
    return columns.size / width;
})()";

/// What the heading of the plot says of these steps.
async fn summary(browser: &WebDriver, steps: &[Value]) -> Result<String> {
    let mut took: Vec<u64> = steps.iter().filter_map(|step| step["latency_ms"].as_u64()).collect();
    took.sort_unstable();
    let mut words = Vec::new();
    for (name, percent) in [("p50", 50), ("p95", 95), ("max", 100)] {
        let ms = took[(percent * took.len() / 100).min(took.len() - 1)];
        let told = browser.module("/js/format.js", &format!("m.duration({ms})")).await?;
        words.push(format!("{name} {}", told.as_str().unwrap_or_default()));
    }
    Ok(words.join(" · "))
}

#[tokio::test]
async fn the_latency_of_steps_is_drawn_and_summed_up() -> Result<()> {
    let script = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(script.path(), SCRIPT).expect("the script");
    let fleet = Harness::start_with(&["--script", script.path().to_str().expect("text")]).await;
    let scene = Scene::on(fleet).await;
    let browser = &scene.browser;
    scene.log_in().await?;
    let idle = scene.create(&unique("idle"), json!({"moniker": "echo"})).await;
    scene.show(&format!("#/sessions/{idle}")).await?;
    browser.see(".who .status", "running").await?;
    browser.wait("document.querySelector('.plot-box[data-empty] canvas')").await?;
    assert_eq!(browser.script(&format!("return {PLOTTED}")).await?, 0, "there is nothing to draw yet");

    let task = json!({"moniker": "run_step", "task": "watch the clock", "max_steps": STEPS});
    let session = scene.create(&unique("paced"), task).await;
    scene.fleet.wait_status(&session, "stopped").await;
    let steps = scene.fleet.steps(&session).await;
    assert_eq!(steps.len(), STEPS, "{steps:?}");
    scene.show(&format!("#/sessions/{session}")).await?;
    browser.wait(&format!("document.querySelectorAll('.step').length === {STEPS}")).await?;
    browser.wait("document.querySelector('.plot-box:not([data-empty]) canvas')").await?;
    browser.wait(&format!("{PLOTTED} > 0.5")).await?;
    browser.see(".plot h2", &summary(browser, &steps).await?).await?;
    scene.assert_no_complaints().await;
    Ok(())
}

/// Waits until a number of the fleet has a value.
async fn figure(browser: &WebDriver, name: &str, value: &str) -> Result<()> {
    let shown = format!(
        "[...document.querySelectorAll('.fleet .number')].some((one) =>
           one.querySelector('dt').textContent === {} && one.querySelector('dd').textContent === {})",
        json!(name),
        json!(value)
    );
    browser.wait(&shown).await.map(drop)
}

#[tokio::test]
async fn the_numbers_of_the_fleet_are_true_and_stay_so() -> Result<()> {
    let scene = Scene::open().await;
    let (browser, fleet) = (&scene.browser, &scene.fleet);
    let ended = scene.create(&unique("ended"), json!({"moniker": "count", "config": {"until": 5}})).await;
    fleet.wait_status(&ended, "completed").await;
    let held = scene.create(&unique("held"), json!({"moniker": "echo"})).await;
    fleet.tell(&held, "pause", json!({})).await;
    fleet.wait_status(&held, "paused").await;
    for text in ["one", "two", "three"] {
        fleet.tell(&held, "input", json!({"text": text})).await;
    }
    scene.log_in().await?;
    scene.show("#/fleet").await?;
    let expected = [
        ("Live sessions", "1"),
        ("Waiting actions", "3"),
        ("Shards owned", "32 of 32"),
        ("Steps", "5"),
        ("Actions accepted", "6"),
        ("Actions refused", "0"),
        ("Broken invariants", "0"),
    ];
    for (name, value) in expected {
        figure(browser, name, value).await?;
    }
    let parts = fleet.get("/health").await["components"].as_array().expect("components").len();
    browser.wait(&format!("document.querySelectorAll('.health-card li[data-ok=true]').length === {parts}")).await?;
    browser.see(".workers h2 .faint", "1").await?;
    browser.see(".workers li", "32 shards").await?;
    browser.see(".shards h2 .faint", "32").await?;
    assert_eq!(browser.script("return document.querySelectorAll('.shards .cells [data-orphan]').length").await?, 0);

    // The shard that the waiting actions are of stands out, and tells how many they are.
    let hot = ".shards .strip:first-of-type .cells [data-heat='1']";
    browser.wait(&format!("document.querySelectorAll({}).length === 1", json!(hot))).await?;
    browser.click(hot).await?;
    browser.see(".shard-one", "Waiting3").await?;

    // Without another look of the reader.
    fleet.tell(&held, "resume", json!({})).await;
    figure(browser, "Waiting actions", "0").await?;
    figure(browser, "Steps", "8").await?;
    scene.assert_no_complaints().await;
    Ok(())
}
