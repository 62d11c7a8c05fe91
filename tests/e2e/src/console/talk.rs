//! Conversations in the console: said, streamed, with tools, questions and several turns at once.

use reqwest::{Method, StatusCode};
use serde_json::json;

use super::webdriver::Result;
use super::{ENTER, Scene};
use crate::talk::desk::{self, LAST_WORD};

const NOBODY_WORKS: &str = "!document.querySelector('.turn-item[aria-busy]')";

impl Scene {
    /// Says something as a user does.
    async fn say(&self, text: &str) -> Result<()> {
        self.browser.fill("#say", &format!("{text}{ENTER}")).await
    }

    /// Opens a conversation with `ben`, begun over HTTP.
    async fn talk(&self, id: &str) -> Result<()> {
        desk::converse(&self.fleet, id, &["ben"]).await;
        self.log_in().await?;
        self.show(&format!("#/conversations/{id}")).await?;
        self.browser.see(".talk-head .link-state", "live").await
    }
}

#[tokio::test]
async fn a_conversation_is_begun_and_the_answer_streams_in() -> Result<()> {
    let scene = Scene::on(desk::open().await).await;
    let browser = &scene.browser;
    scene.log_in().await?;
    scene.show("#/conversations").await?;
    browser.see(".empty", "No conversations yet").await?;
    browser.press("n").await?;
    browser.click("label[data-agent=ben]").await?;
    browser.fill("#t-title", "First words").await?;
    browser.click("dialog .confirm").await?;
    browser.see(".talk-head h1", "First words").await?;
    browser.see(".talk-head .link-state", "live").await?;
    browser.see(".transcript .empty", "Say something to Ben").await?;

    scene.say("tell it at length").await?;
    let part = format!(
        "(text => text.includes('word') && !text.includes('{LAST_WORD}') && text)\
         (document.querySelector('.draft .md').textContent)"
    );
    let before = browser.wait(&part).await?;
    let more = "document.querySelector('.draft .md').textContent.length";
    browser.wait(&format!("{more} > {}", before.as_str().unwrap_or_default().len())).await?;
    browser.see(".told", LAST_WORD).await?;
    browser.wait(NOBODY_WORKS).await?;
    let shown = "return [document.querySelectorAll('.said-item').length, document.querySelectorAll('.told').length,
        document.querySelectorAll('.draft').length]";
    assert_eq!(browser.script(shown).await?, json!([1, 1, 0]), "each once, and nothing left over");
    browser.see(".meter", "tokens").await?;

    // The same after it was read again, from the log instead of the stream.
    browser.goto(&scene.address("#/conversations")).await?;
    browser.click("tr[data-conversation] .row-link").await?;
    browser.see(".told", LAST_WORD).await?;
    assert_eq!(browser.script(shown).await?, json!([1, 1, 0]));
    scene.assert_no_complaints().await;
    Ok(())
}

/// From the link of the banner on.
#[tokio::test]
async fn a_new_user_talks_to_the_guide_with_one_click() -> Result<()> {
    let scene = Scene::open().await;
    let browser = &scene.browser;
    browser.goto(&scene.address(&format!("#token={}&conversations", scene.fleet.token))).await?;
    browser.see(".empty .begin", "Talk to Guide").await?;
    browser.click(".empty .begin").await?;
    browser.see(".talk-head .link-state", "live").await?;
    browser.see(".transcript .empty", "Say something to Guide").await?;
    browser.see(".model-hint", "No model is connected").await?;
    scene.say("What can you do?").await?;
    browser.see(".told", "This answer is scripted").await?;
    browser.see(".told", "OPENAI_BASE_URL").await?;
    browser.wait(NOBODY_WORKS).await?;
    scene.assert_no_complaints().await;
    Ok(())
}

#[tokio::test]
async fn a_step_of_a_conversation_names_its_turn() -> Result<()> {
    let scene = Scene::on(desk::open().await).await;
    let browser = &scene.browser;
    scene.talk("cturn").await?;
    scene.say("hello").await?;
    browser.see(".told", "I heard hello").await?;
    let turns = scene.fleet.get("/api/conversations/cturn/turns").await;
    let of_turn = |name: &str| turns["items"][0][name].as_str().expect("a turn").to_owned();
    scene.show(&format!("#/sessions/{}", of_turn("session_id"))).await?;
    browser.see(".step .step-turn", &of_turn("turn_id")).await?;
    scene.assert_no_complaints().await;
    Ok(())
}

#[tokio::test]
async fn who_comes_and_goes_is_a_line_of_the_transcript() -> Result<()> {
    let scene = Scene::on(desk::open().await).await;
    let browser = &scene.browser;
    scene.talk("cseats").await?;
    scene.say("hello").await?;
    browser.see(".told", "I heard hello").await?;
    let path = "/api/conversations/cseats/participants";
    for (id, body) in [("p-ana", json!({"user_id": "ana"})), ("p-dev", json!({"agent_id": "dev"}))] {
        let mut body = body;
        body["participant_id"] = json!(id);
        let answer = scene.fleet.post(path, &body).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
        let left = scene.fleet.try_request(Method::DELETE, &format!("{path}/{id}"), None).await.expect("an answer");
        assert_eq!(left.status, StatusCode::OK, "{left:?}");
    }
    let lines = "[...document.querySelectorAll('.line-item[data-event^=participant_]')].map(line => \
                 line.querySelector('span').textContent)";
    browser.wait(&format!("{lines}.join() === 'ana joined,ana left,Dev joined,Dev left'")).await?;
    scene.assert_no_complaints().await;
    Ok(())
}

#[tokio::test]
async fn tools_are_cards_and_questions_are_answered_where_they_are_asked() -> Result<()> {
    let scene = Scene::on(desk::open().await).await;
    let browser = &scene.browser;
    scene.talk("ctools").await?;
    scene.say("use the tool").await?;
    browser.see(".call[data-tool=look][data-state=done] .call-brief", "q: x").await?;
    browser.click(".call[data-tool=look] .call-head").await?;
    browser.see(".call[data-tool=look] .call-body", "found").await?;
    browser.see(".told", "The tool said").await?;
    browser.wait(NOBODY_WORKS).await?;

    scene.say("please pay").await?;
    browser.see(".call[data-state=asks] .ask-arguments", "\"x\"").await?;
    browser.see(".phase", "waits for your answer").await?;
    browser.see(".top .badge", "1").await?;
    browser.click(".ask .approve").await?;
    browser.wait("document.querySelector('.call[data-tool=pay][data-state=done]')").await?;
    browser.wait(NOBODY_WORKS).await?;

    scene.say("pay once more").await?;
    browser.wait("document.querySelector('.call[data-state=asks]')").await?;
    scene.show("#/approvals").await?;
    browser.see(".inbox .ask", "Ben").await?;
    browser.click(".inbox .deny").await?;
    browser.fill(".inbox .reason", "not today").await?;
    browser.click(".inbox .deny-now").await?;
    browser.see(".approvals .empty", "Nothing waits for you").await?;
    scene.show("#/conversations/ctools").await?;
    browser.see(".call[data-state=refused]", "not today").await?;

    browser.click(".turn-item:last-of-type .meter").await?;
    browser.see(".inspector", "Calls of the model").await?;
    browser.see(".inspector .context", "You help.").await?;
    browser.click(".inspector .choice button:last-child").await?;
    browser.see(".inspector .memories", "Ben remembers").await?;
    browser.fill(".memories input", "what was paid\u{e007}").await?;
    browser.wait("document.querySelector('.memories .relevance')?.textContent.includes('%')").await?;
    scene.assert_no_complaints().await;
    Ok(())
}

#[tokio::test]
async fn several_turns_are_told_apart_and_each_is_steered_or_cancelled() -> Result<()> {
    let scene = Scene::on(desk::open().await).await;
    let browser = &scene.browser;
    scene.talk("cmany").await?;
    scene.say("tell it at length").await?;
    browser.wait("document.querySelector('.turn-item[aria-busy]')").await?;
    scene.say("once more at length").await?;
    browser.wait("document.querySelectorAll('.turn-item[aria-busy] .draft').length === 2").await?;
    browser.see(".at-once", "2 turns at once").await?;

    browser.click(".turn-item[aria-busy] .cancel").await?;
    browser.wait("document.querySelectorAll('.turn-item[data-state=cancelled]').length === 1").await?;
    browser.click(".turn-item[aria-busy] .steer").await?;
    browser.wait("document.querySelector('.busy [aria-pressed=true]').textContent === 'Steer'").await?;
    scene.say("mention the weather").await?;
    browser.see(".turn-note", "mention the weather").await?;
    browser.see(".as-guidance", "guidance").await?;
    browser.wait(NOBODY_WORKS).await?;
    assert_eq!(
        browser.script("return document.querySelectorAll('.turn-item').length").await?,
        2,
        "guidance begins no turn of its own"
    );

    browser.click("#complete").await?;
    browser.click("dialog .confirm").await?;
    browser.see(".composer.closed", "completed").await?;
    scene.assert_no_complaints().await;
    Ok(())
}

/// The newest are read at first, and what came before when one scrolls up to it.
#[tokio::test]
async fn the_past_is_read_when_it_is_scrolled_to() -> Result<()> {
    const MESSAGES: usize = 150;
    /// Pixels of the transcript below the window.
    const BELOW: &str =
        "(el => el.scrollHeight - el.scrollTop - el.clientHeight)(document.querySelector('.transcript'))";
    let scene = Scene::on(desk::open().await).await;
    let browser = &scene.browser;
    desk::converse(&scene.fleet, "clong", &[]).await;
    for n in 0..MESSAGES {
        scene.fleet.post("/api/conversations/clong/messages", &json!({"text": format!("number {n}")})).await;
    }
    scene.log_in().await?;
    scene.show("#/conversations/clong").await?;
    browser.see(".said-item:last-of-type", &format!("number {}", MESSAGES - 1)).await?;
    let shown = "document.querySelectorAll('.said-item').length";
    let at_first = browser.script(&format!("return {shown}")).await?.as_u64().unwrap_or_default();
    assert!(at_first < MESSAGES as u64, "not all at once: {at_first}");
    browser.script("document.querySelector('.transcript').scrollTop = 0").await?;
    browser.wait(&format!("{shown} === {MESSAGES}")).await?;
    let texts =
        browser.script("return [...document.querySelectorAll('.bubble')].map((one) => one.textContent)").await?;
    let expected: Vec<String> = (0..MESSAGES).map(|n| format!("number {n}")).collect();
    assert_eq!(texts, json!(expected), "in order, each once");
    // Somebody who goes up a little is not taken back by what is said meanwhile.
    browser.script("document.querySelector('.to-end').click()").await?;
    browser.wait(&format!("{BELOW} < 2")).await?;
    browser.script("document.querySelector('.transcript').scrollTop -= 30").await?;
    scene.fleet.post("/api/conversations/clong/messages", &json!({"text": "meanwhile"})).await;
    browser.wait(&format!("{shown} === {}", MESSAGES + 1)).await?;
    assert!(browser.script(&format!("return {BELOW}")).await?.as_f64() >= Some(30.0), "it stays where it was");
    scene.assert_no_complaints().await;
    Ok(())
}
