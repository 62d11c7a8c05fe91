//! `approvals`, `approve`, `deny`: what agents ask people for.

use anyhow::{Result, anyhow, bail};
use clap::Args;
use schemas::conversation::ApprovalAnswer;
use serde_json::{Value, json};

use super::confirm;
use crate::client::Client;
use crate::output::{Output, cell, facts, print, table};

/// Characters of a hash that lists show, and the fewest that name one.
const HASH_SHOWN: usize = 12;
const HASH_MIN: usize = 8;

/// What waits for a person: tool, arguments, and what counts without an answer.
#[derive(Debug, Args)]
pub struct Approvals {
    /// One of them, with its whole arguments
    operation: Option<String>,
}

impl Approvals {
    pub async fn run(self, client: &Client, out: Output) -> Result<()> {
        let Some(id) = &self.operation else { return list(client, out).await };
        let asked = read(client, id).await?;
        if out.json { print(&serde_json::to_string_pretty(&asked)?) } else { print(&told(&asked)) }
    }
}

async fn list(client: &Client, out: Output) -> Result<()> {
    let query = [("state", "pending".to_owned()), ("kind", "approval".to_owned()), ("limit", "1000".to_owned())];
    let page: Value = client.get("/api/operations", &query).await?;
    out.show(&page, |page| {
        let mut rows = table(&["operation", "conversation", "tool", "asks for", "without an answer", "hash"]);
        for one in page["items"].as_array().into_iter().flatten() {
            let hash: String = hash_of(one).unwrap_or_default().chars().take(HASH_SHOWN).collect();
            rows.add_row([
                text(one, "operation_id"),
                text(one, "conversation_id"),
                text(one, "tool"),
                cell(&visible(&gist(one))),
                fallback(one),
                hash,
            ]);
        }
        if page["next_cursor"].is_string() {
            rows.add_row(["there are more; these wait the longest"]);
        }
        rows
    })
}

/// Lets an agent do what it asks to do. Without --hash it is shown whole, and asked about.
#[derive(Debug, Args)]
pub struct Approve {
    operation: String,
    /// Why, as the agent is told
    #[arg(long)]
    reason: Option<String>,
    /// Hash of what was looked at, or its beginning, as `approvals` shows it
    #[arg(long, value_name = "PREFIX", alias = "arguments-hash")]
    hash: Option<String>,
    /// To a question that asks for more than a yes: JSON, or else a text; what the agent gets
    #[arg(long, value_name = "JSON|TEXT")]
    answer: Option<String>,
    /// Do not ask; --hash says what was looked at
    #[arg(long, short)]
    yes: bool,
}

impl Approve {
    pub async fn run(self, client: &Client, out: Output) -> Result<()> {
        let answer = self.answer.as_deref().map(answer).transpose()?;
        let asked = read(client, &self.operation).await?;
        let hash = hash_of(&asked)?;
        match &self.hash {
            Some(given) => check(hash, given, &self.operation)?,
            None if self.yes || !confirm::is_possible() => bail!(
                "what is approved must have been seen: look at it with `stepfleet approvals {}`, and give its hash \
                 with --hash",
                self.operation
            ),
            None if asked["state"] != "pending" => {
                bail!("{} is {}: nobody is asked any more", self.operation, text(&asked, "state"))
            }
            None => {
                eprintln!("{}\n", told(&asked));
                if !confirm::is_yes("approve exactly this?")? {
                    return if out.json { Ok(()) } else { print("nothing was answered") };
                }
            }
        }
        let body = json!({ "arguments_hash": hash, "reason": self.reason, "answer": answer });
        send(client, out, &self.operation, "approve", &body).await
    }
}

/// Does not let an agent do what it asks to do.
#[derive(Debug, Args)]
pub struct Deny {
    operation: String,
    /// Why, as the agent is told
    #[arg(long)]
    reason: Option<String>,
    /// Hash of what was looked at, or its beginning [default: that of what waits]
    #[arg(long, value_name = "PREFIX", alias = "arguments-hash")]
    hash: Option<String>,
}

impl Deny {
    /// A no to what nobody looked at does no harm, so nobody is asked.
    pub async fn run(self, client: &Client, out: Output) -> Result<()> {
        let asked = read(client, &self.operation).await?;
        let hash = hash_of(&asked)?;
        if let Some(given) = &self.hash {
            check(hash, given, &self.operation)?;
        }
        let body = json!({ "arguments_hash": hash, "reason": self.reason });
        send(client, out, &self.operation, "deny", &body).await
    }
}

async fn read(client: &Client, id: &str) -> Result<Value> {
    client.get(&format!("/api/operations/{id}"), &[]).await
}

async fn send(client: &Client, out: Output, id: &str, verb: &str, body: &Value) -> Result<()> {
    let answer: ApprovalAnswer = client.post(&format!("/api/operations/{id}/{verb}"), body).await?;
    out.show(&answer, |answer| {
        facts([
            ("operation", answer.operation_id.to_string()),
            ("answer", if answer.approved { "approved".into() } else { "denied".into() }),
            ("by", answer.by.clone()),
            ("accepted", if answer.accepted { "now".into() } else { "before; nothing was changed".into() }),
        ])
    })
}

/// What an answer must name.
fn hash_of(asked: &Value) -> Result<&str> {
    let hash = asked["approval"]["arguments_hash"].as_str().filter(|_| asked["kind"] == "approval");
    let id = text(asked, "operation_id");
    hash.ok_or_else(|| anyhow!("{id} waits for no person; `stepfleet approvals` lists those that do"))
}

/// Whether what was looked at is what an answer would be to. The right hash is not told here: it stands beside
/// what it is of.
fn check(hash: &str, given: &str, id: &str) -> Result<()> {
    let given = given.trim().to_ascii_lowercase();
    if given.len() < HASH_MIN.min(hash.len()) {
        bail!("--hash {given:?} is too short; at least {HASH_MIN} characters are needed");
    }
    if !hash.starts_with(&given) {
        bail!("--hash {given:?} is not of what waits: look at it again with `stepfleet approvals {id}`");
    }
    Ok(())
}

/// An answer that is more than a yes.
fn answer(given: &str) -> Result<Value> {
    match serde_json::from_str(given) {
        Ok(Value::Null) => bail!("--answer null says nothing; leave it out"),
        Ok(value) => Ok(value),
        Err(_) => Ok(given.into()),
    }
}

/// Everything that an answer is about, nothing cut.
fn told(asked: &Value) -> String {
    let request = &asked["request"];
    let target = format!("{} {}", text(request, "target_type"), text(request, "target_id"));
    let mut lines: Vec<String> = [
        ("operation", text(asked, "operation_id")),
        ("state", text(asked, "state")),
        ("conversation", text(asked, "conversation_id")),
        ("turn", text(asked, "turn_id")),
        ("agent", text(&request["context"], "agent_id")),
        ("tool", text(asked, "tool")),
        ("target", target.trim().to_owned()),
        ("effect class", text(asked, "effect_class")),
        ("without an answer", fallback(asked)),
        ("hash", text(&asked["approval"], "arguments_hash")),
    ]
    .into_iter()
    .map(|(name, value)| format!("{name:<18} {}", visible(&value)))
    .collect();
    if let Some(question) = asked["question"].as_str() {
        lines.push("question".to_owned());
        lines.extend(question.lines().map(|line| format!("  {}", visible(line))));
    }
    lines.push("arguments".to_owned());
    let arguments = serde_json::to_string_pretty(&request["input"]).unwrap_or_default();
    lines.extend(arguments.lines().map(|line| format!("  {}", visible(line))));
    lines.join("\n")
}

/// The question, or else the arguments.
fn gist(asked: &Value) -> String {
    asked["question"].as_str().map_or_else(|| asked["request"]["input"].to_string(), str::to_owned)
}

/// What counts if nobody answers, and from when on.
fn fallback(asked: &Value) -> String {
    let what = if asked["approval"]["default_approve"] == true { "approved" } else { "denied" };
    match asked["until"].as_str() {
        Some(until) => format!("{what} at {until}"),
        None => what.to_owned(),
    }
}

/// A text in an answer; empty where there is none.
fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

/// A text as it is, written out where a terminal would obey it, or show it elsewhere or not at all: what a person
/// says yes to is what is there. In JSON, these are the escapes of the very characters.
pub(super) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_hidden(c) {
            let units = c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>();
            shown.push_str(&units);
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Marks of direction, breaks of lines, and what has no width.
fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{200e}'
            | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    const HASH: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn asked(input: Value) -> Value {
        json!({"operation_id": "o1.ask", "conversation_id": "c1", "turn_id": "t1", "kind": "approval", "tool": "pay",
            "state": "pending", "effect_class": "at_most_once", "until": "2026-01-31T12:00:00.000Z",
            "approval": {"arguments_hash": HASH, "expires_ms": 60_000, "default_approve": false},
            "request": {"target_type": "task", "target_id": "pay-task", "input": input, "context": {"agent_id": "ben"}}})
    }

    #[test]
    fn what_is_asked_is_told_whole_and_as_it_is() {
        let long = "x".repeat(5_000);
        let whole = told(&asked(json!({"to": "\u{202e}moc.elpmaxe\u{9b}1m", "note": "a\nb\u{e0041}", "long": long})));
        for part in [
            long.as_str(),
            HASH,
            "\"a\\nb\\udb40\\udc41\"",
            "\"\\u202emoc.elpmaxe\\u009b1m\"",
            "denied at 2026-01-31T12",
            "task pay-task",
        ] {
            assert!(whole.contains(part), "{part} is not in: {whole}");
        }
        assert!(whole.chars().all(|c| c == '\n' || !(c.is_control() || is_hidden(c))), "{whole:?}");
        let mut worded = asked(json!({}));
        worded["question"] = json!("May it go?\nhash               0000");
        let whole = told(&worded);
        assert!(whole.contains("question\n  May it go?\n  hash  "), "its lines are told from ours: {whole}");
        assert_eq!(gist(&worded).lines().next(), Some("May it go?"));
    }

    #[test]
    fn a_hash_is_named_by_its_beginning() {
        for given in [HASH, &HASH[..HASH_MIN], " 0123456789AB "] {
            check(HASH, given, "o1").unwrap();
        }
        for (given, why) in [("0123456", "too short"), ("", "too short"), ("012345678a", "approvals o1")] {
            let refused = check(HASH, given, "o1").unwrap_err().to_string();
            assert!(refused.contains(why) && !refused.contains(HASH), "{given}: {refused}");
        }
        let other = json!({"operation_id": "o2", "kind": "task", "approval": null});
        assert!(hash_of(&other).unwrap_err().to_string().contains("o2 waits for no person"));
    }

    #[test]
    fn an_answer_is_json_or_else_a_text() {
        for (given, meant) in [("blue", json!("blue")), ("7", json!(7)), ("{\"a\":[1]}", json!({"a": [1]}))] {
            assert_eq!(answer(given).unwrap(), meant);
        }
        assert!(answer("null").is_err());
    }

    /// Answers one request with this body; gives its head and body.
    async fn serve(listener: &TcpListener, body: &str) -> String {
        let (mut socket, _) = listener.accept().await.unwrap();
        let request = request(&mut socket).await;
        let length = body.len();
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
        socket.write_all(answer.as_bytes()).await.unwrap();
        request
    }

    async fn request(socket: &mut TcpStream) -> String {
        let (mut text, mut bytes) = (String::new(), [0; 4096]);
        loop {
            let read = socket.read(&mut bytes).await.unwrap();
            text.push_str(&String::from_utf8_lossy(&bytes[..read]));
            if read == 0 || is_whole(&text) {
                return text;
            }
        }
    }

    fn is_whole(request: &str) -> bool {
        let Some((head, body)) = request.split_once("\r\n\r\n") else { return false };
        let head = head.to_ascii_lowercase();
        let length = head.split_once("content-length: ").map(|(_, rest)| rest.lines().next().unwrap_or_default());
        body.len() >= length.map_or(0, |length| length.parse::<usize>().unwrap())
    }

    fn approve(hash: Option<&str>, yes: bool) -> Approve {
        let (operation, answer) = ("o1.ask".to_owned(), Some("blue".to_owned()));
        Approve { operation, reason: None, hash: hash.map(str::to_owned), answer, yes }
    }

    #[tokio::test]
    async fn what_was_seen_is_what_is_approved() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = Client::new(&format!("http://{}", listener.local_addr().unwrap()), "sf_x").unwrap();
        let done =
            json!({"operation_id": "o1.ask", "approved": true, "by": "ana", "action_id": "a1", "accepted": true});
        let heard = tokio::spawn(async move {
            let question = asked(json!({"amount": 5})).to_string();
            let mut heard = Vec::new();
            for body in [&question, &question, &question, &done.to_string()] {
                heard.push(serve(&listener, body).await);
            }
            heard
        });
        let out = Output { json: true };
        for unseen in [approve(None, true), approve(Some("ffffffffffff"), true)] {
            let refused = unseen.run(&client, out).await.unwrap_err().to_string();
            assert!(refused.contains("--hash") && refused.contains("approvals o1.ask"), "{refused}");
        }
        approve(Some(&HASH[..HASH_SHOWN]), false).run(&client, out).await.unwrap();
        let heard = heard.await.unwrap();
        assert!(heard[..3].iter().all(|one| one.starts_with("GET /api/operations/o1.ask ")), "{heard:?}");
        assert!(heard[3].starts_with("POST /api/operations/o1.ask/approve "), "{heard:?}");
        assert!(heard[3].contains(HASH) && heard[3].contains("\"answer\":\"blue\""), "{heard:?}");
    }
}
