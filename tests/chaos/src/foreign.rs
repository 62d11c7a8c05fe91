//! The foreign AMQP client (`foreign.py`) as a child process: one order at a time.

use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex;

const SCRIPT: &str = include_str!("../foreign.py");

pub struct Foreign {
    inner: Mutex<Inner>,
}

struct Inner {
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    number: u64,
    _child: Child,
}

impl Foreign {
    /// Debian's Python, for which pika is packaged.
    ///
    /// # Errors
    /// Python cannot be started.
    pub async fn start(url: &str) -> Result<Self> {
        let mut child = Command::new("/usr/bin/python3")
            .args(["-u", "-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("/usr/bin/python3 cannot be started; install python3 and python3-pika")?;
        let mut orders = child.stdin.take().context("no standard input")?;
        let answers = BufReader::new(child.stdout.take().context("no standard output")?).lines();
        // Not as an argument, which everybody on the machine can read.
        orders.write_all(format!("{url}\n").as_bytes()).await?;
        Ok(Self { inner: Mutex::new(Inner { orders, answers, number: 0, _child: child }) })
    }

    /// Whether the broker has confirmed it. A repeat with the same ids does no harm.
    ///
    /// # Errors
    /// The client has ended.
    pub async fn publish(&self, queue: &str, body: &str, id: &str, times: u32) -> Result<bool> {
        let order = json!({ "op": "publish", "key": queue, "body": body, "message_id": id, "times": times });
        Ok(self.order(order).await?["ok"] == true)
    }

    /// # Errors
    /// The client has ended.
    pub async fn meddle(&self, queues: &[String], seconds: f64, seed: u64) -> Result<Value> {
        self.order(json!({ "op": "meddle", "queues": queues, "seconds": seconds, "seed": seed })).await
    }

    async fn order(&self, mut order: Value) -> Result<Value> {
        let mut inner = self.inner.lock().await;
        inner.number += 1;
        let number = inner.number;
        order["n"] = number.into();
        inner.orders.write_all(format!("{order}\n").as_bytes()).await.context("the AMQP client has ended")?;
        loop {
            let Some(line) = inner.answers.next_line().await? else { bail!("the AMQP client has ended") };
            let answer: Value = serde_json::from_str(&line).with_context(|| line.clone())?;
            // An answer whose order was given up may come first.
            if answer["n"] == number {
                return Ok(answer);
            }
        }
    }
}
