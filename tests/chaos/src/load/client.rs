//! One client with one session. It sends one action after the other, under ids of its own, and
//! sends one again until it has an answer.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{PATIENCE, World, code_of, post};
use crate::diary::now_ms;
use crate::plan::{Act, Kind, Story};
use crate::seen::{Sent, Told};

const INGRESS: &str = "stepfleet.ingress";
const STEPS_MAX: u64 = 12;

pub struct Client<'w> {
    world: &'w World,
    story: &'w Story,
    number: u64,
    /// The last action, as it was sent and answered.
    last: Option<(Value, Told)>,
}

impl<'w> Client<'w> {
    pub fn new(world: &'w World, story: &'w Story) -> Self {
        Self { world, story, number: 0, last: None }
    }

    pub async fn run(mut self) {
        let create = json!({ "agent_id": self.story.agent, "payload": self.creation() });
        if !self.act("create", None, create).await || !self.is_there().await {
            return;
        }
        self.world.created.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        for deed in self.story.deeds.clone() {
            self.world.rest(deed.after_ms).await;
            let begun = self.story.kind == Kind::Ordered;
            // What remains of a story when the time is over is left out, but for the long ones.
            if self.world.is_over() && !begun {
                return;
            }
            let goes_on = match deed.act {
                Act::Input => {
                    let mark = format!("i-{}-{}", self.story.id, self.number);
                    self.act("input", Some(mark.clone()), json!({ "payload": { "text": mark } })).await
                }
                Act::Guide { set, now } => self.guide(set, now).await,
                Act::Pause => self.act("pause", None, json!({ "payload": { "reason": "chaos" } })).await,
                Act::Resume => self.act("resume", None, json!({})).await,
                Act::Destroy => self.act("destroy", None, json!({})).await,
                Act::Again => self.again().await,
                Act::Conflict => self.conflict().await,
            };
            if !goes_on {
                return;
            }
        }
    }

    fn creation(&self) -> Value {
        let (world, interval) = (self.world, self.story.interval_ms);
        let mut payload = match self.story.kind {
            Kind::Pulse | Kind::Endless => json!({ "moniker": "count" }),
            Kind::Count { until } => json!({ "moniker": "count", "config": { "until": until } }),
            Kind::Ordered | Kind::Echo => json!({ "moniker": "echo" }),
            Kind::Digest { set } => {
                let path = world.documents.join(set.to_string());
                json!({ "moniker": "digest", "config": { "paths": [path.to_string_lossy()], "sentences": 1 } })
            }
            Kind::Model { task } => json!({ "moniker": "run_step", "task": task, "max_steps": STEPS_MAX }),
            Kind::Http { once } => {
                let (path, effect) = if once { ("once", "at_most_once") } else { ("often", "idempotent") };
                let url = format!("http://127.0.0.1:{}/{path}", world.step_port);
                json!({ "moniker": "http", "max_steps": STEPS_MAX,
                        "config": { "url": url, "effect": effect, "timeout_ms": 4_000 } })
            }
        };
        if interval > 0 {
            payload["loop_interval_ms"] = interval.into();
        }
        payload
    }

    async fn guide(&mut self, set: Option<i64>, now: bool) -> bool {
        let mark = format!("g-{}-{}", self.story.id, self.number);
        let mut guidance = json!({ "mark": mark });
        if let Some(set) = set {
            guidance["set"] = set.into();
        }
        let mut payload = json!({ "guidance": guidance });
        if now {
            payload["mode"] = "now".into();
        }
        self.act("interrupt", Some(mark), json!({ "payload": payload })).await
    }

    /// Sends an action and notes what came of it. False when the session has ended, or nobody hears.
    async fn act(&mut self, kind: &str, mark: Option<String>, mut body: Value) -> bool {
        let id = format!("{}-a{}", self.story.id, self.number);
        self.number += 1;
        body["type"] = kind.into();
        body["action_id"] = id.clone().into();
        body["session_id"] = self.story.id.clone().into();
        let at_ms = now_ms();
        let told = if self.story.amqp { self.over_amqp(&id, &body).await } else { self.over_http(&body).await };
        let goes_on = matches!(told, Told::Accepted | Told::Confirmed);
        self.world.note(Sent {
            id,
            session: self.story.id.clone(),
            kind: kind.to_owned(),
            mark,
            told: told.clone(),
            amqp: self.story.amqp,
            at_ms,
        });
        self.last = Some((body, told));
        goes_on
    }

    async fn over_http(&self, body: &Value) -> Told {
        match post(self.world, "/api/actions", body).await {
            None => Told::Nothing,
            Some(answer) if answer.status == 202 => Told::Accepted,
            Some(answer) => Told::Refused(code_of(&answer.body)),
        }
    }

    async fn over_amqp(&self, id: &str, body: &Value) -> Told {
        let (started, text) = (Instant::now(), body.to_string());
        // Now and then twice: the action id makes one action of them.
        let times = 1 + u32::from(self.number.is_multiple_of(3));
        // Also straight on the queue of a shard, of whatever shard.
        let shard = format!("stepfleet.shard.{}.work", self.number * 7 % self.world.shards.max(1));
        let queue = if self.number % 5 == 4 { shard.as_str() } else { INGRESS };
        while started.elapsed() < PATIENCE {
            match self.world.foreign.publish(queue, &text, id, times).await {
                Ok(true) => return Told::Confirmed,
                Ok(false) => tokio::time::sleep(Duration::from_millis(300)).await,
                Err(error) => {
                    self.world.diary.complain(format!("{error:#}"));
                    break;
                }
            }
        }
        Told::Nothing
    }

    /// Over AMQP nobody answers: the session is there when it can be seen.
    async fn is_there(&self) -> bool {
        if !self.story.amqp {
            return true;
        }
        let (path, started) = (format!("/api/sessions/{}", self.story.id), Instant::now());
        while started.elapsed() < PATIENCE {
            if self.world.api.get(&path, PATIENCE).await.is_ok_and(|answer| answer.status == 200) {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        self.world
            .diary
            .complain(format!("{} was created over AMQP and is not there after {PATIENCE:?}", self.story.id));
        false
    }

    /// A repeat is answered alike, and says that it is one.
    async fn again(&mut self) -> bool {
        let Some((body, told)) = self.last.clone().filter(|_| !self.story.amqp) else { return true };
        let Some(answer) = post(self.world, "/api/actions", &body).await else { return false };
        let alike = match &told {
            Told::Accepted => answer.status == 202 && answer.body["accepted"] == false,
            Told::Refused(code) => code_of(&answer.body) == *code,
            _ => true,
        };
        if !alike {
            self.complain("a repeat", &body, &answer.body);
        }
        true
    }

    /// The same id for something else is refused.
    async fn conflict(&mut self) -> bool {
        let Some((mut body, told)) = self.last.clone().filter(|_| !self.story.amqp) else { return true };
        body["metadata"] = json!({ "other": true });
        let Some(answer) = post(self.world, "/api/actions", &body).await else { return false };
        if told == Told::Accepted && code_of(&answer.body) != "action_conflict" {
            self.complain("another action under a used id", &body, &answer.body);
        }
        true
    }

    fn complain(&self, what: &str, body: &Value, answer: &Value) {
        self.world.diary.complain(format!("{what} ({}) was answered with {answer}", body["action_id"]));
    }
}
