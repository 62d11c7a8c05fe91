//! Pages that are left before they are there: what they still wait for starts nothing any more.

use super::webdriver::Result;
use super::{Scene, unique};

/// Answers about single sessions are held back until `release()`; `streams` has the addresses of the event
/// streams that were opened.
const HOLD: &str = r"
    const real = window.fetch;
    const held = [];
    let holds = true;
    window.streams = [];
    window.waiting = () => held.length;
    window.release = () => { holds = false; held.forEach((go) => go()); };
    window.fetch = async (path, options) => {
      if (/\/events(\?|$)/.test(path)) window.streams.push(path);
      const answer = await real(path, options);
      if (holds && /^\/api\/sessions\/[^/?]+$/.test(path)) await new Promise((go) => held.push(go));
      return answer;
    };";

/// A browser has few connections per server: a stream that nobody looks at would keep one.
#[tokio::test]
async fn a_page_that_was_left_while_it_loaded_opens_no_stream() -> Result<()> {
    let scene = Scene::open().await;
    let browser = &scene.browser;
    let (left, shown) = (scene.counting(&unique("left")).await, scene.counting(&unique("shown")).await);
    scene.log_in().await?;
    browser.script(HOLD).await?;
    scene.show(&format!("#/sessions/{left}")).await?;
    // The head of the page asks, and its timeline.
    browser.wait("window.waiting() >= 2").await?;
    scene.show("#/fleet").await?;
    browser.see(".page.fleet h1", "Fleet").await?;
    browser.script("window.release()").await?;
    scene.show(&format!("#/sessions/{shown}")).await?;
    // Its steps are on the page before its stream is asked for.
    browser.wait(&format!("window.streams.some((path) => path.includes('{shown}'))")).await?;
    let streams = browser.script("return window.streams").await?;
    let of_the_left = streams.as_array().into_iter().flatten().any(|path| path.to_string().contains(&left));
    assert!(!of_the_left, "{streams}");
    scene.assert_no_complaints().await;
    Ok(())
}
