//! The console, used as people use it: a real browser against the real binary.

mod answers;
mod definitions;
mod figures;
mod leaving;
mod modules;
mod talk;
mod webdriver;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use webdriver::{Result, WebDriver};

use crate::harness::Harness;

/// Keys without a character (W3C WebDriver, 17.4.2).
const ENTER: &str = "\u{E007}";
const ESCAPE: &str = "\u{E00C}";

/// A fleet and a browser that looks at it.
pub struct Scene {
    fleet: Harness,
    pub browser: WebDriver,
    http: reqwest::Client,
}

impl Scene {
    async fn open() -> Self {
        Self::on(Harness::start().await).await
    }

    pub async fn on(fleet: Harness) -> Self {
        let browser = WebDriver::start().await.expect("a browser");
        browser.screen(1280, 800, "light").await.expect("a screen");
        let http = reqwest::Client::builder().timeout(Duration::from_secs(30)).build().expect("a client");
        Self { fleet, browser, http }
    }

    fn address(&self, hash: &str) -> String {
        format!("{}/{hash}", self.fleet.base_url.trim_end_matches('/'))
    }

    /// Logs in by the link that the binary prints.
    pub async fn log_in(&self) -> Result<()> {
        self.browser.goto(&self.address(&format!("#token={}", self.fleet.token))).await?;
        self.browser.wait("document.querySelector('.page.sessions h1')").await.map(drop)
    }

    pub async fn show(&self, hash: &str) -> Result<()> {
        self.browser.script(&format!("location.hash = {}", json!(hash))).await.map(drop)
    }

    /// Creates a session over HTTP and gives its id.
    async fn create(&self, agent: &str, payload: Value) -> String {
        let answer = self
            .http
            .post(self.address("api/actions"))
            .bearer_auth(&self.fleet.token)
            .json(&json!({"type": "create", "agent_id": agent, "payload": payload}))
            .send()
            .await
            .expect("an answer");
        assert_eq!(answer.status(), 202, "create is accepted");
        let body: Value = answer.json().await.expect("a body");
        body["session_id"].as_str().expect("a session id").to_owned()
    }

    /// A session that counts on and on, slowly enough to be watched.
    async fn counting(&self, agent: &str) -> String {
        self.create(agent, json!({"moniker": "count", "loop_interval_ms": 150})).await
    }

    /// The page had no error and the content security policy no violation.
    pub async fn assert_no_complaints(&self) {
        let complaints = self.browser.complaints().await.expect("the log of the browser");
        assert!(complaints.is_empty(), "the browser complains: {complaints:#?}");
    }
}

/// Makes ids of agents unlike those of other runs on the same server.
#[allow(clippy::disallowed_methods, reason = "runs are told apart by the time of day")]
fn unique(name: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    format!("{name}-{}", now.as_nanos() % 1_000_000_000)
}

fn row(session: &str, more: &str) -> String {
    format!("tr[data-session='{session}'] {more}")
}

#[tokio::test]
async fn the_link_logs_in_and_the_list_is_live() -> Result<()> {
    let scene = Scene::open().await;
    let browser = &scene.browser;
    let agent = unique("reader");
    let session = scene.counting(&agent).await;
    scene.log_in().await?;

    browser.see(&row(&session, ".row-link"), &agent).await?;
    browser.see(&row(&session, ".status"), "running").await?;
    let shown = "document.querySelector(\"tr[data-session='ID'] .c-iteration\").textContent".replace("ID", &session);
    let before = browser.wait(&format!("{shown}.startsWith('#') && {shown}")).await?;
    browser.wait(&format!("{shown} !== {before}")).await?;

    let address = browser.script("return location.href + document.title").await?;
    let address = address.as_str().unwrap_or_default();
    assert!(!address.contains(&scene.fleet.token), "the token left the address");
    browser.goto(&scene.address("#/sessions")).await?;
    browser.see(&row(&session, ".row-link"), &agent).await?;

    browser.fill("#search", "no-such-thing").await?;
    browser.see(".empty", "No session matches").await?;
    browser.wait("location.hash.includes('q=no-such-thing')").await?;
    browser.fill("#search", &agent).await?;
    browser.see(&row(&session, ".row-link"), &agent).await?;
    scene.assert_no_complaints().await;
    Ok(())
}

#[tokio::test]
async fn a_wrong_token_is_refused_and_a_right_one_taken() -> Result<()> {
    let scene = Scene::open().await;
    let browser = &scene.browser;
    browser.goto(&scene.address("")).await?;
    browser.fill("#token", "not-the-token").await?;
    browser.click(".login .primary").await?;
    browser.see(".login .field-error", "does not know this token").await?;
    let complaints = browser.complaints().await?;
    assert!(complaints.iter().all(|line| line.contains("401")), "only the refusals: {complaints:#?}");

    browser.fill("#token", &scene.fleet.token).await?;
    browser.click(".login .primary").await?;
    browser.wait("document.querySelector('.page.sessions')").await?;
    browser.click("[aria-label='Log out']").await?;
    browser.wait("document.querySelector('.login')").await?;
    Ok(())
}

#[tokio::test]
async fn many_sessions_are_paused_and_resumed_at_once() -> Result<()> {
    let scene = Scene::open().await;
    let browser = &scene.browser;
    let agent = unique("crowd");
    let mut sessions = Vec::new();
    for _ in 0..3 {
        sessions.push(scene.counting(&agent).await);
    }
    scene.log_in().await?;
    scene.show(&format!("#/sessions?agent_id={agent}")).await?;
    browser.wait("document.querySelectorAll('tbody tr').length === 3").await?;
    for (action, status) in [("pause", "paused"), ("resume", "running")] {
        browser.click("thead input[type=checkbox]").await?;
        browser.see(".bulk-bar", "3 sessions").await?;
        browser.click(&format!(".bulk-{action}")).await?;
        browser.click("dialog .confirm").await?;
        browser.see(".bulk-result", "3 of 3 sessions accepted").await?;
        browser.click("dialog footer .primary").await?;
        for session in &sessions {
            browser.see(&row(session, ".status"), status).await?;
        }
        browser.wait("!document.querySelector('.bulk-bar')").await?;
    }

    browser.click(&row(&sessions[0], "input[type=checkbox]")).await?;
    browser.click(".bulk-pause").await?;
    browser.click("dialog .choice button:last-child").await?;
    browser.fill("#bulk-reason", "quiet hours").await?;
    browser.click("dialog .confirm").await?;
    browser.see(".bulk-result", "3 of 3 sessions accepted").await?;
    browser.click("dialog footer .primary").await?;
    for session in &sessions {
        browser.see(&row(session, ".c-cause"), "quiet hours").await?;
    }
    scene.assert_no_complaints().await;
    Ok(())
}

#[tokio::test]
async fn one_session_is_watched_and_controlled() -> Result<()> {
    let scene = Scene::open().await;
    let browser = &scene.browser;
    let session = scene.counting(&unique("watched")).await;
    scene.log_in().await?;
    browser.click(&row(&session, ".row-link")).await?;

    // Steps arrive by themselves, each once and in order.
    browser.see(".link-state", "live").await?;
    let first = browser.wait("document.querySelector('.step')?.dataset.step").await?;
    browser.wait(&format!("Number(document.querySelector('.step').dataset.step) >= Number({first}) + 3")).await?;
    let shown =
        browser.script("return [...document.querySelectorAll('.step')].map((s) => Number(s.dataset.step))").await?;
    let shown: Vec<u64> = serde_json::from_value(shown).expect("iterations");
    assert!(shown.windows(2).all(|pair| pair[0] == pair[1] + 1), "newest first, no gap, no repeat: {shown:?}");

    browser.click("#toggle").await?;
    browser.see(".who .status", "paused").await?;
    browser.see("#cause", "paused by").await?;
    browser.see(".event[data-kind=paused]", "paused").await?;

    // Guidance that is given while it is paused is seen by exactly one step after the resume.
    browser.press("i").await?;
    browser.fill("#guidance", r#"{"set": 5000}"#).await?;
    browser.click("dialog .confirm").await?;
    browser.wait("!document.querySelector('dialog')").await?;
    browser.see("#toggle", "Resume").await?;
    browser.press("p").await?;
    browser.see(".who .status", "running").await?;
    let guided = browser.wait("document.querySelector('.step:has(.guidance)')?.dataset.step").await?;
    browser.wait(&format!("Number(document.querySelector('.step').dataset.step) >= Number({guided}) + 3")).await?;
    assert_eq!(browser.script("return document.querySelectorAll('.guidance').length").await?, 1);
    browser.see(".guidance", "5000").await?;
    browser.click(".step:has(.guidance) .step-open").await?;
    browser.see(".changes", "5000").await?;

    browser.click("#destroy").await?;
    browser.fill("#reason", "seen enough").await?;
    browser.click("dialog .confirm").await?;
    browser.see(".who .status", "stopped").await?;
    browser.see(".link-state", "ended").await?;
    browser.see(".controls", "Run again").await?;
    scene.assert_no_complaints().await;
    Ok(())
}

#[tokio::test]
async fn a_session_is_created_and_mistakes_are_shown_at_their_field() -> Result<()> {
    let scene = Scene::open().await;
    let browser = &scene.browser;
    let agent = unique("made-here");
    scene.log_in().await?;
    browser.click("#new-session").await?;
    browser.script("const s = document.querySelector('#c-moniker'); s.value = 'echo'; s.dispatchEvent(new Event('change', {bubbles: true}))").await?;
    browser.fill("#c-config", "{not json").await?;
    browser.see("dialog .field-error", "Not JSON at line 1").await?;
    browser.wait("document.querySelector('dialog .confirm').disabled").await?;
    browser.fill("#c-config", "{}").await?;
    browser.fill("#c-agent", "no spaces allowed").await?;
    browser.click("dialog .confirm").await?;
    browser.see("dialog .field.wrong .field-error", "agent_id").await?;
    let complaints = browser.complaints().await?;
    assert!(complaints.iter().all(|line| line.contains("400")), "only the refusal: {complaints:#?}");

    browser.fill("#c-agent", &agent).await?;
    browser.click("dialog .confirm").await?;
    browser.see(".who h1", &agent).await?;
    browser.see("#cause", "waits for input").await?;
    browser.click("#input").await?;
    browser.fill("#input-text", "hello, fleet").await?;
    browser.click("dialog .confirm").await?;
    browser.see(".step .said", "hello, fleet").await?;
    scene.assert_no_complaints().await;
    Ok(())
}

/// What a view shows once it has everything.
const SESSION_READY: &str = "document.querySelector('.link-state[data-link=ended]')
    && document.querySelector('.step') && document.querySelector('.why ol')";
const FLEET_READY: &str = "document.querySelector('.shards .cells')
    && document.querySelector('.workers') && document.querySelector('.numbers.flat')";
const TALK_READY: &str = "document.querySelector('.talk-head .link-state[data-link=live]')
    && document.querySelector('.turn-item:not([aria-busy])')";
const DEFINITIONS_READY: &str = "document.querySelector('.definitions-list tr[data-definition], .definitions .empty')";
const DEFINITION_READY: &str = "document.querySelector('.definition .content .json')
    && document.querySelector('.versions li')";
const SIDEWAYS: &str = "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
const PAPER: &str = "return getComputedStyle(document.body).backgroundColor";

#[tokio::test]
async fn every_view_fits_laptops_and_phones_in_both_themes() -> Result<()> {
    let scene = Scene::open().await;
    let browser = &scene.browser;
    let long = "a".repeat(100);
    let payload = json!({"moniker": "count", "config": {"until": 3}, "state": {"long": long.repeat(5)}});
    let session = scene.create(&unique(&long[..90]), payload).await;
    scene.log_in().await?;
    let one = format!("#/sessions/{session}");
    let seats = json!([{"agent_id": "a1", "config": {"system_prompt": "You help."}}]);
    let mut defined = definitions::shelf("plain");
    defined.as_array_mut().expect("a list").push(json!({"kind": "persona", "definition": {"id": long, "name": long,
        "library_id": "shelf", "system_prompt": long.repeat(5), "model_profile_id": "plain"}}));
    let persona = format!("#/definitions/persona/{long}");
    for (path, body) in [
        ("/api/definitions", defined),
        ("/api/conversations", json!({"conversation_id": "c1", "title": long, "agents": seats})),
        ("/api/conversations/c1/messages", json!({"text": long.repeat(3)})),
    ] {
        let answer = scene.fleet.post(path, &body).await;
        assert!(answer.status.is_success(), "{answer:?}");
    }
    let views = [
        ("#/sessions", "document.querySelector('tbody tr')"),
        (&one, SESSION_READY),
        ("#/conversations", "document.querySelector('tr[data-conversation=c1]')"),
        ("#/conversations/c1", TALK_READY),
        ("#/approvals", "document.querySelector('.approvals .empty')"),
        ("#/definitions", DEFINITIONS_READY),
        ("#/definitions/persona", "document.querySelector('tr[data-definition^=aaaa]')"),
        (&persona, DEFINITION_READY),
        ("#/fleet", FLEET_READY),
    ];
    let mut papers = Vec::new();
    for (width, height) in [(1440, 900), (1280, 800), (390, 844)] {
        for theme in ["light", "dark"] {
            browser.screen(width, height, theme).await?;
            for (hash, ready) in views {
                scene.show(hash).await?;
                browser.wait(ready).await?;
                let over = browser.script(SIDEWAYS).await?;
                assert_eq!(over, 0, "{hash} at {width} px, {theme}: no sideways scrolling");
            }
            papers.push(browser.script(PAPER).await?);
        }
    }
    assert_eq!(papers[0], papers[2], "one light theme");
    assert_ne!(papers[0], papers[1], "light and dark differ");

    // The button overrules the system: from its dark to light.
    browser.click("#theme").await?;
    assert_eq!(browser.script(PAPER).await?, papers[0], "the chosen theme is light");
    assert!(browser.screenshot().await?.len() > 10_000, "the page is painted");
    scene.assert_no_complaints().await;
    Ok(())
}

#[tokio::test]
async fn everything_is_reached_by_keys_and_the_past_on_demand() -> Result<()> {
    let scene = Scene::open().await;
    let browser = &scene.browser;
    let agent = unique("keys");
    let session = scene.create(&agent, json!({"moniker": "count", "config": {"until": 250}})).await;
    scene.log_in().await?;
    browser.see(&row(&session, ".status"), "completed").await?;

    browser.press("/").await?;
    browser.wait("document.activeElement.id === 'search'").await?;
    browser.press(&agent).await?;
    // Applied a moment after the last key; the list is drawn anew then, and loses its focus.
    browser.wait(&format!("location.hash.includes('{agent}')")).await?;
    browser.see(".count", "1 match").await?;
    browser.wait("document.querySelectorAll('tbody tr').length === 1").await?;
    browser.script("document.activeElement.blur()").await?;
    browser.press("?").await?;
    browser.see("dialog[open]", "Interrupt with guidance").await?;
    browser.press(ESCAPE).await?;
    browser.wait("!document.querySelector('dialog')").await?;
    browser.press("j").await?;
    browser.press(ENTER).await?;
    browser.see(".who h1", &agent).await?;

    // The newest events are read at first; the rest in order, down to the very first.
    browser.see(".link-state", "ended").await?;
    browser.wait("document.querySelector('.step')?.dataset.step === '249'").await?;
    while browser.script("return Boolean(document.querySelector('#older'))").await? == true {
        let shown = browser.script("return document.querySelectorAll('.timeline li').length").await?;
        browser.click("#older").await?;
        browser.wait(&format!("document.querySelectorAll('.timeline li').length > {shown}")).await?;
    }
    let offsets = "return [...document.querySelectorAll('.timeline li')].map((line) => Number(line.dataset.offset))";
    let offsets: Vec<u64> = serde_json::from_value(browser.script(offsets).await?).expect("offsets");
    assert!(offsets.windows(2).all(|pair| pair[0] == pair[1] + 1), "no gap, no repeat: {offsets:?}");
    assert_eq!(offsets.last(), Some(&1));
    assert_eq!(browser.script("return document.querySelectorAll('.step').length").await?, 250);
    scene.assert_no_complaints().await;
    Ok(())
}
