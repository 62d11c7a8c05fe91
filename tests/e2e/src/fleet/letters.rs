//! Dead letters, attended to by somebody at the console.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Fleet;
use super::commands::enqueue;
use crate::cli::{assert_says, read, told};
use crate::console::Scene;
use crate::harness::{Harness, wait};

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

/// Beyond what a list shows.
const RUBBISH: usize = 1_050;
/// Inputs that come before their session is there.
const EARLY: usize = 20;

#[tokio::test]
#[ignore = "needs PostgreSQL and RabbitMQ: `ops/test fleet` runs it"]
async fn more_letters_than_are_shown_are_sent_again_and_thrown_away_at_once() -> Result<(), Box<dyn std::error::Error>>
{
    let fleet = Fleet::start().await;
    let (here, there) = (fleet.here(), fleet.there());
    let early = |n| json!({ "type": "input", "session_id": "late", "payload": { "text": format!("early {n}") } });
    let bodies: Vec<String> = (0..EARLY).map(|n| early(n).to_string()).collect();
    let rubbish: Vec<String> = (0..RUBBISH).map(|n| format!("rubbish {n}")).collect();
    enqueue(&fleet.services, bodies.iter().chain(&rubbish).map(String::as_str));
    wait("all are dead letters", || async { (count(here).await == EARLY + RUBBISH).then_some(()) }).await;
    // Two gateways that look at a time hide nothing from each other.
    let (one, two) = tokio::join!(count(here), count(there));
    assert_eq!((one, two), (EARLY + RUBBISH, EARLY + RUBBISH));

    here.create("late", json!({ "moniker": "echo" })).await;
    here.wait_status("late", "running").await;
    let swept = read(there, &["dead", "redrive", "--all", "--reason", "session_not_found"]).await;
    assert_eq!(swept, json!({ "done": "redriven", "letters": EARLY, "kept": RUBBISH, "stuck": 0, "finished": true }));
    let steps = here.wait_steps("late", EARLY).await;
    let texts: BTreeSet<&str> = steps.iter().filter_map(|step| step["text"].as_str()).collect();
    assert_eq!((texts.len(), steps.len()), (EARLY, EARLY), "each was taken once");
    // What is of no use dies again, and is not sent again for ever.
    assert_says(&told(here, &["dead", "redrive", "--all"]).await, &["redriven", &RUBBISH.to_string()]);
    wait("all are back", || async { (count(there).await == RUBBISH).then_some(()) }).await;

    let scene = Scene::on(fleet.client(fleet.gateways[0].url())).await;
    let browser = &scene.browser;
    scene.log_in().await?;
    scene.show("#/fleet").await?;
    browser.see(".dead h2", "the first 50").await?;
    browser.click("#drop-all").await?;
    browser.see("dialog", "not shown here as well").await?;
    browser.click("dialog .confirm").await?;
    browser.see("body", "Thrown away: 1,050").await?;
    browser.see(".dead", NONE).await?;
    assert_eq!((count(there).await, letters(here).await), (0, 0));
    scene.assert_no_complaints().await;
    Ok(())
}

/// How many there are: all that a sweep for a reason that none has leaves where they are.
async fn count(client: &Harness) -> usize {
    let swept = read(client, &["dead", "drop", "--all", "--reason", "no such reason"]).await;
    assert_eq!((&swept["letters"], &swept["finished"]), (&json!(0), &json!(true)), "{swept}");
    swept["kept"].as_u64().expect("a number") as usize
}

/// How many a list shows.
async fn letters(client: &Harness) -> usize {
    let found: Value = client.get("/api/dead").await;
    found.as_array().expect("a list").len()
}
