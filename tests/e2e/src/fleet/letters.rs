//! Dead letters, attended to by somebody at the console.

use serde_json::{Value, json};

use super::Fleet;
use super::commands::enqueue;
use crate::console::Scene;
use crate::harness::Harness;

const NONE: &str = "None: every message that came could be taken.";
const REDRIVE: &str = ".dead .letter-acts button:nth-child(1)";
const DROP: &str = ".dead .letter-acts button:nth-child(2)";

#[tokio::test]
#[ignore = "needs PostgreSQL and RabbitMQ: `ops/test fleet` runs it"]
async fn dead_letters_are_read_and_sent_again_and_thrown_away_at_the_console() -> Result<(), Box<dyn std::error::Error>>
{
    let fleet = Fleet::start().await;
    let client = fleet.here();
    let scene = Scene::on(fleet.client(fleet.gateways[0].url())).await;
    let browser = &scene.browser;
    scene.log_in().await?;
    scene.show("#/fleet").await?;
    browser.see(".dead", NONE).await?;

    // What comes too early is there for whoever looks, and is taken once it can be.
    let early = json!({ "type": "input", "session_id": "late", "payload": { "text": "early" } }).to_string();
    enqueue(&fleet.services, [early.as_str()]);
    browser.see(".dead .letter-head", "session_not_found").await?;
    browser.see(".dead li", "stepfleet.ingress").await?;
    browser.see(".dead .letter-body", &early).await?;
    browser.see(".dead h2", "1").await?;
    client.create("late", json!({ "moniker": "echo" })).await;
    client.wait_status("late", "running").await;
    browser.click(REDRIVE).await?;
    browser.see("body", "Sent back to its queue").await?;
    browser.see(".dead", NONE).await?;
    assert_eq!(client.wait_steps("late", 1).await[0]["text"], "early");
    // The note of it may lie over what is clicked next.
    browser.wait("!document.querySelector('.toast')").await?;

    // Nothing is thrown away before it is confirmed. What others write is shown as they wrote it.
    let rubbish = "no JSON, <b>bold</b>";
    enqueue(&fleet.services, [rubbish]);
    browser.see(".dead .letter-head", "invalid_json").await?;
    browser.see(".dead .letter-body", rubbish).await?;
    browser.click(DROP).await?;
    browser.see("dialog", "thrown away for good").await?;
    browser.click("dialog footer button:not(.confirm)").await?;
    browser.wait("!document.querySelector('dialog')").await?;
    assert_eq!(letters(client).await, 1);
    browser.click(DROP).await?;
    browser.click("dialog .confirm").await?;
    browser.see("body", "Thrown away").await?;
    browser.see(".dead", NONE).await?;
    assert_eq!(letters(client).await, 0);
    scene.assert_no_complaints().await;
    Ok(())
}

/// How many there are.
async fn letters(client: &Harness) -> usize {
    let found: Value = client.get("/api/dead").await;
    found.as_array().expect("a list").len()
}
