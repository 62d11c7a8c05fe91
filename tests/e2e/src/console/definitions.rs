//! Definitions in the console: written with their mistakes shown while they are typed, read, compared.

use serde_json::{Value, json};

use super::Scene;
use super::webdriver::{Result, WebDriver};

/// One field a line, so that problems have lines of their own.
fn typed(prompt: (&str, &str), profile: &str) -> String {
    let (name, prompt) = (json!(prompt.0), json!(prompt.1));
    format!(
        "{{\n\"id\": \"keeper\",\n\"name\": \"Keeper\",\n\"library_id\": \"shelf\",\n{name}: {prompt},\n\
         \"model_profile_id\": {}\n}}",
        json!(profile)
    )
}

/// Waits until a problem is told at its line.
async fn told(browser: &WebDriver, line: u32, parts: &[&str]) -> Result<Value> {
    let all = format!(
        "[...document.querySelectorAll('.at-lines li')].some((one) => one.querySelector('.link').textContent === {}
           && {}.every((part) => one.textContent.includes(part)))",
        json!(format!("line {line}")),
        json!(parts)
    );
    browser.wait(&all).await
}

const MAY_SAVE: &str = "!document.querySelector('dialog .confirm').disabled";

#[tokio::test]
async fn a_persona_is_written_with_its_mistakes_shown_while_it_is_typed() -> Result<()> {
    let scene = Scene::open().await;
    let browser = &scene.browser;
    let answer = scene.fleet.post("/api/definitions", &shelf("plain")).await;
    assert!(answer.status.is_success(), "{answer:?}");
    scene.log_in().await?;
    scene.show("#/definitions/persona").await?;
    browser.see(".kinds [aria-current=page]", "Personas").await?;
    browser.click("#new-definition").await?;
    told(browser, 2, &["id", "must not be blank"]).await?;

    // What it lacks by itself first, then what only the fleet knows; nothing can be saved meanwhile.
    browser.fill("#d-text", &typed(("system_promt", "You help."), "nowhere")).await?;
    told(browser, 5, &["system_promt", "did you mean \"system_prompt\"?"]).await?;
    told(browser, 1, &["system_prompt", "is missing"]).await?;
    assert_eq!(browser.script(&format!("return {MAY_SAVE}")).await?, false);
    browser.click(".at-lines li:first-child .link").await?;
    let chosen =
        "((area) => area === document.activeElement && area.value.slice(area.selectionStart, area.selectionEnd))
        (document.querySelector('#d-text'))";
    assert_eq!(browser.wait(chosen).await?, "\"You help.\"", "the click goes to the place");
    browser.fill("#d-text", &typed(("system_prompt", "You help."), "nowhere")).await?;
    told(browser, 6, &["model_profile_id", "there is no model profile nowhere"]).await?;
    browser.fill("#d-text", &typed(("system_prompt", "You help."), "plain")).await?;
    browser.see(".plan[data-change=created]", "A save creates this persona").await?;
    browser.wait(MAY_SAVE).await?;
    browser.click("dialog .confirm").await?;
    browser.see(".definition .page-head h1", "Keeper").await?;
    browser.see(".definition .page-head", "persona, version 1").await?;

    browser.click("#edit-definition").await?;
    browser.wait("document.querySelector('#d-text').value.includes('You help.')").await?;
    browser.fill("#d-text", &typed(("system_prompt", "You help much."), "plain")).await?;
    browser.see(".plan[data-change=updated]", "A save makes version 2").await?;
    browser.see(".plan .changes ins", "You help much.").await?;
    browser.wait(MAY_SAVE).await?;
    browser.click("dialog .confirm").await?;
    browser.see(".definition .page-head", "persona, version 2").await?;
    compare(browser).await?;
    scene.show("#/definitions/persona").await?;
    browser.see("tr[data-definition=keeper] .c-iteration", "2").await?;
    let complaints = browser.complaints().await?;
    assert!(complaints.iter().all(|line| line.contains("422")), "only the refusals: {complaints:#?}");
    Ok(())
}

/// Each kind has its place, and a beginning in which only values are missing.
#[tokio::test]
async fn every_kind_can_be_begun() -> Result<()> {
    let scene = Scene::open().await;
    let browser = &scene.browser;
    browser.goto(&scene.address("")).await?;
    let kinds = browser.module("/js/kinds.js", "m.KINDS").await?;
    let kinds = kinds.as_array().map(Vec::as_slice).unwrap_or_default();
    assert_eq!(kinds.len(), 9, "{kinds:?}");
    for kind in kinds {
        let list = scene.fleet.get(&format!("/api/{}", kind["path"].as_str().unwrap_or_default())).await;
        assert!(list["items"].is_array(), "{kind}: {list}");
        let begun = json!([{"kind": kind["kind"], "definition": kind["start"]}]);
        let answer = scene.fleet.post("/api/definitions?dry_run=true", &begun).await;
        assert_eq!(answer.body["code"], "definition_invalid", "{kind}: {answer:?}");
        let wrong = answer.body["errors"].to_string();
        assert!(!wrong.contains("is not a known field"), "{kind}: {wrong}");
    }
    Ok(())
}

/// The two versions are there, and what changed between them.
async fn compare(browser: &WebDriver) -> Result<()> {
    browser.wait("document.querySelectorAll('.versions li').length === 2").await?;
    browser.click(".content .choice button:last-child").await?;
    browser.see(".content .changes del", "You help.").await?;
    browser.see(".content .changes ins", "You help much.").await?;
    assert_eq!(browser.script("return document.querySelectorAll('.content .changes > div').length").await?, 1);
    browser.click(".versions li[data-version='1'] .link").await?;
    browser.see(".content", "There is no version before this one").await?;
    browser.click(".content .choice button:first-child").await?;
    browser.see(".content .json", "\"You help.\"").await.map(drop)
}

/// A library and a model profile to write personas with.
pub fn shelf(profile: &str) -> Value {
    json!([
        {"kind": "library", "definition": {"id": "shelf", "name": "Shelf"}},
        {"kind": "model_profile", "definition": {"id": profile, "name": "Plain", "provider": "scripted",
            "model_id": "scripted"}}
    ])
}
