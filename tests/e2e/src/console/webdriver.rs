//! A browser for tests: headless Chromium, driven through chromedriver's WebDriver protocol
//! (W3C WebDriver, HTTP and JSON) with the HTTP client that is here anyway.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// How long a page may take to do what a test waits for, in milliseconds.
const WAIT_MS: u64 = 30_000;
/// How long one command of the protocol may take.
const COMMAND: Duration = Duration::from_secs(60);
/// Key of an element reference (W3C WebDriver, 12).
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

const FLAGS: &[&str] = &[
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
];

/// Control and A, then all modifiers released.
const SELECT_ALL: &str = "\u{E009}a\u{E000}";

/// What went wrong, with what was asked of the browser.
#[derive(Debug)]
pub struct Failure(String);

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

pub type Result<T> = std::result::Result<T, Failure>;

fn failure(what: impl std::fmt::Display, error: impl std::fmt::Display) -> Failure {
    Failure(format!("{what}: {error}"))
}

/// A browser with a profile of its own, gone when it is dropped.
pub struct WebDriver {
    http: reqwest::Client,
    address: SocketAddr,
    session: String,
    driver: Child,
    _profile: TempDir,
}

impl WebDriver {
    /// Starts chromedriver on a free port, and a browser.
    pub async fn start() -> Result<Self> {
        let program = std::env::var("CHROMEDRIVER").unwrap_or_else(|_| "chromedriver".into());
        let mut driver = Command::new(&program)
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|e| failure(format!("cannot start {program}; install chromium and chromium-driver"), e))?;
        let port = announced_port(&mut driver).await?;
        let profile = tempfile::tempdir().map_err(|e| failure("temporary profile", e))?;
        let http = reqwest::Client::builder().timeout(COMMAND).build().map_err(|e| failure("http client", e))?;
        let mut browser =
            Self { http, address: ([127, 0, 0, 1], port).into(), session: String::new(), driver, _profile: profile };
        browser.open().await?;
        Ok(browser)
    }

    async fn open(&mut self) -> Result<()> {
        let mut args: Vec<String> = FLAGS.iter().map(|flag| (*flag).to_owned()).collect();
        args.push(format!("--user-data-dir={}", self._profile.path().display()));
        let capabilities = json!({"alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": args},
            "goog:loggingPrefs": {"browser": "ALL"},
            "timeouts": {"script": WAIT_MS, "implicit": 0},
        }});
        let answer = self.command("POST", "/session", json!({"capabilities": capabilities})).await?;
        let Some(id) = answer["sessionId"].as_str() else {
            return Err(failure("new browser session", answer));
        };
        self.session = id.to_owned();
        Ok(())
    }

    async fn command(&self, method: &str, path: &str, body: Value) -> Result<Value> {
        let url = format!("http://{}{path}", self.address);
        let request = if method == "GET" { self.http.get(url) } else { self.http.post(url).json(&body) };
        let told = || format!("{method} {path} {body}");
        let response = request.send().await.map_err(|e| failure(told(), e))?;
        let status = response.status();
        let mut answer: Value = response.json().await.map_err(|e| failure(told(), e))?;
        let value = answer["value"].take();
        if status.is_success() {
            return Ok(value);
        }
        Err(failure(told(), format!("{}: {}", value["error"], value["message"])))
    }

    async fn ask(&self, path: &str, body: Value) -> Result<Value> {
        self.command("POST", &format!("/session/{}{path}", self.session), body).await
    }

    /// Screen size in CSS pixels, and what the page is told of the user's theme.
    pub async fn screen(&self, width: u32, height: u32, theme: &str) -> Result<()> {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 2, "mobile": width < 600});
        self.devtools("Emulation.setDeviceMetricsOverride", metrics).await?;
        let features = json!({"features": [
            {"name": "prefers-color-scheme", "value": theme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]});
        self.devtools("Emulation.setEmulatedMedia", features).await
    }

    async fn devtools(&self, command: &str, params: Value) -> Result<()> {
        self.ask("/goog/cdp/execute", json!({"cmd": command, "params": params})).await.map(drop)
    }

    /// Opens an address and waits until it has loaded.
    pub async fn goto(&self, url: &str) -> Result<()> {
        self.ask("/url", json!({"url": url})).await.map(drop)
    }

    /// Runs the body of a function in the page and gives what it returns.
    pub async fn script(&self, body: &str) -> Result<Value> {
        self.ask("/execute/sync", json!({"script": body, "args": []})).await
    }

    /// Imports a module of the console in the page and gives what a function of it, `m`, returns.
    pub async fn module(&self, path: &str, expression: &str) -> Result<Value> {
        let script = format!(
            "const done = arguments[arguments.length - 1];
             import({}).then((m) => {expression}).then(done, (error) => done('' + error));",
            json!(path)
        );
        self.ask("/execute/async", json!({"script": script, "args": []})).await
    }

    /// Waits in the page until a JavaScript expression is truthy, and gives its value.
    pub async fn wait(&self, expression: &str) -> Result<Value> {
        let script = format!(
            "const done = arguments[arguments.length - 1];
             const check = () => {{
               let found;
               try {{ found = ({expression}); }} catch (error) {{ if (!(error instanceof TypeError)) throw error; }}
               if (found) done(found); else setTimeout(check, 25);
             }};
             check();"
        );
        match self.ask("/execute/async", json!({"script": script, "args": []})).await {
            Ok(value) => Ok(value),
            Err(error) => {
                let page = self.script("return location.pathname + '\\n' + (document.querySelector('dialog') ?? document.body).innerText").await;
                let page = page.unwrap_or_default();
                let page: String = page.as_str().unwrap_or_default().chars().take(1500).collect();
                Err(failure(format!("waited for {expression} on the page:\n{page}\n"), error))
            }
        }
    }

    /// Waits for an element. Selectors are CSS.
    async fn find(&self, css: &str) -> Result<String> {
        self.wait(&format!("document.querySelector({})", json!(css))).await?;
        let found = self.ask("/element", json!({"using": "css selector", "value": css})).await?;
        found[ELEMENT].as_str().map(str::to_owned).ok_or_else(|| failure(css, "is no element"))
    }

    /// Clicks as a user does: the element must be visible and nothing may lie over it.
    pub async fn click(&self, css: &str) -> Result<()> {
        let element = self.find(css).await?;
        self.ask(&format!("/element/{element}/click"), json!({})).await.map(drop)
    }

    /// Replaces the text of a field, key by key as a user does: emptying it behind the page's back
    /// (WebDriver's `clear`) may be undone by the next rendering.
    pub async fn fill(&self, css: &str, text: &str) -> Result<()> {
        let element = self.find(css).await?;
        self.ask(&format!("/element/{element}/value"), json!({"text": format!("{SELECT_ALL}{text}")})).await.map(drop)
    }

    /// Presses keys where the focus is.
    pub async fn press(&self, keys: &str) -> Result<()> {
        let strokes: Vec<Value> = keys
            .chars()
            .flat_map(|key| [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})])
            .collect();
        self.ask("/actions", json!({"actions": [{"type": "key", "id": "keyboard", "actions": strokes}]}))
            .await
            .map(drop)
    }

    /// Waits until an element contains a text.
    pub async fn see(&self, css: &str, text: &str) -> Result<()> {
        self.wait(&format!("document.querySelector({})?.textContent.includes({})", json!(css), json!(text)))
            .await
            .map(drop)
    }

    /// What the page and the browser complained about since the last call: errors, failed requests,
    /// and violations of the content security policy.
    pub async fn complaints(&self) -> Result<Vec<String>> {
        let log = self.ask("/se/log", json!({"type": "browser"})).await?;
        let lines = log.as_array().cloned().unwrap_or_default();
        Ok(lines
            .iter()
            .filter(|line| line["level"] == "SEVERE")
            .map(|line| line["message"].as_str().unwrap_or_default().to_owned())
            .collect())
    }

    /// The visible page as PNG, in base 64.
    pub async fn screenshot(&self) -> Result<String> {
        let image = self.command("GET", &format!("/session/{}/screenshot", self.session), Value::Null).await?;
        image.as_str().map(str::to_owned).ok_or_else(|| failure("screenshot", "is no text"))
    }
}

/// Reads the port that chromedriver says it listens on.
async fn announced_port(driver: &mut Child) -> Result<u16> {
    let output = driver.stdout.take().ok_or_else(|| failure("chromedriver", "has no output"))?;
    let mut lines = BufReader::new(output).lines();
    let port = async {
        while let Some(line) = lines.next_line().await.map_err(|e| failure("chromedriver", e))? {
            // It first names the port it was asked for, 0, and then the one it got.
            let port = line.rsplit_once("on port ").and_then(|(_, rest)| rest.trim_end_matches('.').parse().ok());
            if let Some(port) = port.filter(|port| *port != 0) {
                return Ok(port);
            }
        }
        Err(failure("chromedriver", "ended before it named its port"))
    };
    let port = tokio::time::timeout(COMMAND, port).await.map_err(|e| failure("start of chromedriver", e))??;
    // Its output is read on, so that it never waits for a full pipe.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Ok(port)
}

impl Drop for WebDriver {
    /// Ends the browser, which is a child of chromedriver and would outlive its SIGKILL.
    fn drop(&mut self) {
        if !self.session.is_empty()
            && let Ok(mut stream) = TcpStream::connect_timeout(&self.address, Duration::from_secs(2))
        {
            let wait = Some(Duration::from_secs(10));
            let request = format!(
                "DELETE /session/{} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
                self.session, self.address
            );
            // Best effort: a browser that is already gone needs no ending.
            let _ = stream.set_read_timeout(wait);
            let _ = stream.write_all(request.as_bytes());
            let _ = stream.read(&mut [0; 512]);
        }
        let _ = self.driver.start_kill();
    }
}
