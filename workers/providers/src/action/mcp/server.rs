//! The configured servers, and one shared connection to each.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use schemas::limits::TOOL_ANSWER_BYTES_MAX;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::http::HttpLink;
use super::stdio::StdioLink;
use super::{McpError, message};
use crate::net::Net;

/// A server as in `[mcp.<name>]` of `stepfleet.toml`: either a command or a url.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpServer {
    /// A program that speaks MCP on its standard input and output.
    #[serde(default)]
    pub command: Option<PathBuf>,
    #[serde(default)]
    pub args: Vec<String>,
    /// Names of variables that the program gets from our environment; besides them, only `PATH`,
    /// `HOME`, `LANG` and `TMPDIR`.
    #[serde(default)]
    pub env: Vec<String>,
    /// Where it runs; our own directory if absent.
    #[serde(default)]
    pub directory: Option<PathBuf>,
    /// The address of a server that speaks streamable HTTP.
    #[serde(default)]
    pub url: Option<String>,
    /// Variable that holds the token for the header `Authorization: Bearer`.
    #[serde(default)]
    pub token_env: Option<String>,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum Transport {
    Stdio { command: PathBuf, args: Vec<String>, env: Vec<String>, directory: Option<PathBuf> },
    Http { url: String, token_env: Option<String> },
}

impl McpServer {
    /// # Errors
    /// What is missing or too much, in words.
    pub fn transport(&self) -> Result<Transport, String> {
        match (&self.command, &self.url) {
            (Some(command), None) if self.token_env.is_none() => Ok(Transport::Stdio {
                command: command.clone(),
                args: self.args.clone(),
                env: self.env.clone(),
                directory: self.directory.clone(),
            }),
            (None, Some(url)) if url.starts_with("https://") || url.starts_with("http://") => {
                Ok(Transport::Http { url: url.clone(), token_env: self.token_env.clone() })
            }
            (None, Some(_)) => Err("url must begin with https:// or http://".to_owned()),
            (Some(_), Some(_)) => Err("command stands beside url; leave one of them out".to_owned()),
            (Some(_), None) => Err("token_env is for servers with a url; use env for a command".to_owned()),
            (None, None) => Err("give command for a program, or url for a server over HTTP".to_owned()),
        }
    }
}

/// How long a server may take to get ready.
const READY: Duration = Duration::from_secs(30);
/// How long it may take to get ready and to tell all that it offers.
const LISTED: Duration = Duration::from_secs(60);
/// Tools that one server may offer, and the pages that it may tell them in.
const TOOLS_MAX: usize = 1_000;
const PAGES_MAX: usize = 50;

/// A connection that is ready for requests.
enum Link {
    Stdio(StdioLink),
    Http(HttpLink),
}

impl Link {
    async fn open(transport: &Transport, client: &reqwest::Client) -> Result<Self, McpError> {
        let open = async {
            match transport {
                Transport::Stdio { command, args, env, directory } => {
                    let link = StdioLink::start(command, args, env, directory.as_deref())?;
                    link.request("initialize", &message::initialize()).await?;
                    link.notify("notifications/initialized").await?;
                    Ok(Self::Stdio(link))
                }
                Transport::Http { url, token_env } => {
                    HttpLink::open(client.clone(), url, token_env.as_deref()).await.map(Self::Http)
                }
            }
        };
        let late = || McpError::broken(format!("it was not ready within {} s", READY.as_secs()), false);
        // What fails before it is ready has had no effect.
        tokio::time::timeout(READY, open).await.unwrap_or_else(|_| Err(late())).map_err(|error| match error {
            McpError::Broken { message, .. } => McpError::broken(message, false),
            other => other,
        })
    }

    fn is_alive(&self) -> bool {
        match self {
            Self::Stdio(link) => link.is_alive(),
            Self::Http(link) => link.is_alive(),
        }
    }

    async fn request(&self, method: &str, parameters: &Value) -> Result<Value, McpError> {
        match self {
            Self::Stdio(link) => link.request(method, parameters).await,
            Self::Http(link) => link.request(method, parameters).await,
        }
    }
}

struct Server {
    transport: Result<Transport, String>,
    link: Mutex<Option<Arc<Link>>>,
}

/// All configured servers.
pub struct Servers {
    servers: BTreeMap<String, Server>,
    client: reqwest::Client,
}

impl Servers {
    /// With a client of its own, to ask what servers offer.
    ///
    /// # Errors
    /// When the TLS set-up of the machine is unusable.
    pub fn to_ask(config: BTreeMap<String, McpServer>) -> Result<Self, String> {
        Ok(Self::new(config, Net::new(false)?.models))
    }

    /// Nothing is started or called before the first request.
    pub fn new(config: BTreeMap<String, McpServer>, client: reqwest::Client) -> Self {
        let server = |config: McpServer| Server { transport: config.transport(), link: Mutex::new(None) };
        Self { servers: config.into_iter().map(|(name, config)| (name, server(config))).collect(), client }
    }

    /// Sends a request and waits for its result. Dropping the future cancels it.
    ///
    /// # Errors
    /// Whether the server broke off, refused, or is not known.
    pub async fn request(&self, name: &str, method: &str, parameters: Value) -> Result<Value, McpError> {
        let link = self.link(name).await?;
        let result = link.request(method, &parameters).await;
        // A session that the server forgot had no effect: once more, in a new one.
        if matches!(&result, Err(McpError::Broken { sent: false, .. })) && !link.is_alive() {
            return self.link(name).await?.request(method, &parameters).await;
        }
        result
    }

    /// What a server offers, as it tells it: `name`, `description`, `inputSchema`, `annotations`.
    ///
    /// # Errors
    /// As of [`Self::request`]; and it tells more, or for longer, than a server may.
    pub async fn tools(&self, name: &str) -> Result<Vec<Value>, McpError> {
        let late = || McpError::broken(format!("it did not tell its tools within {} s", LISTED.as_secs()), true);
        tokio::time::timeout(LISTED, self.pages(name)).await.unwrap_or_else(|_| Err(late()))
    }

    async fn pages(&self, name: &str) -> Result<Vec<Value>, McpError> {
        let (mut tools, mut bytes, mut parameters) = (Vec::new(), 0, json!({}));
        for _ in 0..PAGES_MAX {
            let page = self.request(name, "tools/list", parameters).await?;
            for tool in page.get("tools").and_then(Value::as_array).into_iter().flatten() {
                bytes += tool.to_string().len();
                tools.push(tool.clone());
            }
            if tools.len() > TOOLS_MAX || bytes > TOOL_ANSWER_BYTES_MAX {
                let what = format!("it offers more than {TOOLS_MAX} tools or {TOOL_ANSWER_BYTES_MAX} bytes of them");
                return Err(McpError::Invalid(what));
            }
            match page.get("nextCursor").and_then(Value::as_str) {
                Some(cursor) => parameters = json!({ "cursor": cursor }),
                None => return Ok(tools),
            }
        }
        Err(McpError::Invalid(format!("its list of tools had not ended after {PAGES_MAX} pages")))
    }

    async fn link(&self, name: &str) -> Result<Arc<Link>, McpError> {
        let server = self.servers.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.servers.keys().map(String::as_str).collect();
            let known =
                if known.is_empty() { "none is configured".into() } else { format!("known are {}", known.join(", ")) };
            McpError::Invalid(format!("there is no MCP server {name:?}; {known} (see [mcp.<name>] in stepfleet.toml)"))
        })?;
        let transport = server.transport.as_ref().map_err(|why| McpError::Invalid(format!("[mcp.{name}]: {why}")))?;
        let mut held = server.link.lock().await;
        if let Some(link) = held.as_ref().filter(|link| link.is_alive()) {
            return Ok(Arc::clone(link));
        }
        let link = Arc::new(Link::open(transport, &self.client).await?);
        *held = Some(Arc::clone(&link));
        Ok(link)
    }
}
