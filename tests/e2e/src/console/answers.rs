//! What agents ask people for, in the console: questions that want more than a yes, and bounds that are met.

use super::Scene;
use super::webdriver::Result;
use crate::cli::conversing;
use crate::talk::desk;

#[tokio::test]
async fn a_question_is_read_and_answered_in_words() -> Result<()> {
    let scene = Scene::on(conversing::open().await).await;
    let browser = &scene.browser;
    desk::converse(&scene.fleet, "c1", &["ben"]).await;
    desk::say(&scene.fleet, "c1", "which colour?").await;
    scene.log_in().await?;
    scene.show("#/approvals").await?;
    browser.see(".inbox .ask", "asks you").await?;
    browser.see(".inbox .ask-question", "Which colour for the door?").await?;
    browser.see(".inbox .ask-arguments", "the door").await?;
    browser.fill(".inbox .answer", "blue").await?;
    browser.click(".inbox .approve").await?;
    browser.see(".approvals .empty", "Nothing waits for you").await?;
    scene.show("#/conversations/c1").await?;
    browser.see(".told", "It came to blue.").await?;
    scene.assert_no_complaints().await;
    Ok(())
}

#[tokio::test]
async fn a_bound_that_is_met_is_told_where_it_holds_up_the_turn() -> Result<()> {
    let scene = Scene::on(conversing::open().await).await;
    let browser = &scene.browser;
    desk::converse(&scene.fleet, "c1", &["eve"]).await;
    desk::say(&scene.fleet, "c1", "have a look").await;
    scene.log_in().await?;
    scene.show("#/conversations/c1").await?;
    browser.see(".turn-item .ask-question", "This turn has used 20000 of 20000 tokens").await?;
    browser.see(".turn-item .ask", "Eve has met a bound").await?;
    browser.see(".turn-item .ask-arguments", "max_tokens_per_turn").await?;
    assert_eq!(browser.script("return document.querySelectorAll('.ask .answer').length").await?, 0, "a yes is enough");
    browser.click(".turn-item .ask .approve").await?;
    browser.see(".told", "It came to").await?;
    scene.assert_no_complaints().await;
    Ok(())
}
