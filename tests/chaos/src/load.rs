//! The load: a client for each session and each conversation, which follows its story and notes what
//! it was told.

mod bulk;
mod clerk;
mod client;
mod desk;
mod follow;
mod garbage;
pub mod talk;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::follow::Subject;
use crate::api::Api;
use crate::diary::Diary;
use crate::foreign::Foreign;
use crate::plan::{Plan, Story};
use crate::seen::talk::{Talk, Verdict};
use crate::seen::{Sent, Stream};

/// How long a client goes on trying before it counts as unheard.
pub const PATIENCE: Duration = Duration::from_secs(150);
/// Clients that do the work of agents in the background.
const DESKS: u64 = 3;

/// What all clients share.
pub struct World {
    pub api: Api,
    pub foreign: Foreign,
    pub diary: Arc<Diary>,
    pub step_port: u16,
    pub documents: std::path::PathBuf,
    pub shards: u64,
    /// Set when the time is over: no new story begins, and deeds no longer wait.
    pub over: watch::Receiver<bool>,
    pub sent: Mutex<Vec<Sent>>,
    pub garbage: Mutex<Vec<String>>,
    pub streams: Mutex<Vec<Stream>>,
    /// What users posted, by conversation.
    pub talks: Mutex<BTreeMap<String, Talk>>,
    pub talk_streams: Mutex<Vec<Stream>>,
    /// What was said to agents that asked, by the id of the question.
    pub verdicts: Mutex<BTreeMap<String, Verdict>>,
    pub accepted: AtomicU64,
    pub created: AtomicU64,
}

impl World {
    pub fn note(&self, sent: Sent) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
        if let Ok(mut all) = self.sent.lock() {
            all.push(sent);
        }
    }

    /// Whether a result or an answer for this operation may be refused so: its turn was to be cancelled, so
    /// nobody waits for it any more.
    pub fn may_be_over(&self, operation: &str, code: &str) -> bool {
        let is_of = |turn: &String| operation.strip_prefix(turn.as_str()).is_some_and(|rest| rest.starts_with('.'));
        let is_cancelled = || self.talks.lock().is_ok_and(|talks| talks.values().flat_map(|t| &t.cancels).any(is_of));
        matches!(code, "no_open_operation" | "session_ended") && is_cancelled()
    }

    pub fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    /// Sleeps, but not beyond the end of the run.
    pub async fn rest(&self, ms: u64) {
        let mut over = self.over.clone();
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(ms)) => {}
            _ = over.wait_for(|over| *over) => {}
        }
    }
}

/// All clients of a plan; it ends when all stories are told.
pub struct Load {
    pub clients: JoinSet<()>,
    /// They go on until their sessions and conversations have ended.
    pub followers: JoinSet<()>,
}

pub fn start(world: &Arc<World>, plan: &Plan) -> Load {
    let mut load = Load { clients: JoinSet::new(), followers: JoinSet::new() };
    let began = Instant::now();
    for (number, story) in plan.stories.iter().enumerate() {
        load.clients.spawn(tell(world.clone(), story.clone(), began));
        if story.followed {
            load.followers.spawn(follow::run(
                world.clone(),
                (Subject::Session, story.id.clone(), story.start_ms),
                plan.shape.dice(1_000 + number as u64),
                began,
            ));
        }
    }
    talks(&mut load, world, plan, began);
    load.clients.spawn(bulk::run(world.clone(), plan.shape.dice(4)));
    load.clients.spawn(garbage::run(world.clone(), plan.shape.dice(5)));
    load
}

/// Conversations, and the desks and the clerk that work for them until the last one has ended.
fn talks(load: &mut Load, world: &Arc<World>, plan: &Plan, began: Instant) {
    let (open, is_open) = watch::channel(());
    for (number, story) in plan.talks.iter().enumerate() {
        load.clients.spawn(talk::run(world.clone(), story.clone(), began, is_open.clone()));
        if story.followed {
            load.followers.spawn(follow::run(
                world.clone(),
                (Subject::Conversation, story.id.clone(), story.start_ms),
                plan.shape.dice(1_000_000 + number as u64),
                began,
            ));
        }
    }
    let open = Arc::new(open);
    for number in 0..DESKS {
        load.clients.spawn(desk::run(world.clone(), plan.shape.dice(7 + number), open.clone()));
    }
    load.clients.spawn(clerk::run(world.clone(), plan.shape.dice(7 + DESKS), open));
}

async fn tell(world: Arc<World>, story: Story, began: Instant) {
    let wait = story.start_ms.saturating_sub(began.elapsed().as_millis() as u64);
    world.rest(wait).await;
    if world.is_over() {
        return;
    }
    client::Client::new(&world, &story).run().await;
}

/// Tries until the answer is final; `None` when patience has run out.
pub async fn post(world: &World, path: &str, body: &Value) -> Option<crate::api::Answer> {
    match world.api.post_until(path, body, PATIENCE).await {
        Ok(answer) => Some(answer),
        Err(error) => {
            world.diary.tell("unheard", &json!(format!("{error:#}")));
            None
        }
    }
}

/// The code of a problem; any other body as it is.
fn code_of(body: &Value) -> String {
    body["code"].as_str().map_or_else(|| body.to_string(), str::to_owned)
}
