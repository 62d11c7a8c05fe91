//! One user in one conversation: says one thing after the other, some of them twice, pauses the agent and
//! lets it go on, gives it guidance, cancels turns, and leaves when all turns have ended.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{PATIENCE, World, code_of, post};
use crate::diary::now_ms;
use crate::fleet::agents;
use crate::plan::{TalkAct, TalkStory, Word};
use crate::seen::talk::{Posted, Talk};
use crate::seen::{Sent, Told};

/// After the last fault, until all turns have ended. What a claim lost comes back within 20 s.
const ENDS_MAX: Duration = Duration::from_secs(150);
const LOOK: Duration = Duration::from_millis(700);

/// Writes down who takes part.
///
/// # Errors
/// The fleet does not take the definitions.
pub async fn define(world: &World) -> Result<()> {
    let definitions = agents::definitions(world.step_port);
    let answer = world.api.post_until("/api/definitions", &definitions, PATIENCE).await?;
    ensure!((200..300).contains(&answer.status), "the definitions were answered with {}", answer.body);
    Ok(())
}

/// `_open` is held until all turns have ended: so long there may be work for the desks.
pub async fn run(world: Arc<World>, story: TalkStory, began: Instant, _open: watch::Receiver<()>) {
    let wait = story.start_ms.saturating_sub(began.elapsed().as_millis() as u64);
    world.rest(wait).await;
    if world.is_over() {
        return;
    }
    let Some(session) = begin(&world, &story.id).await else { return };
    let talker = Talker { world: &world, story: &story, session, number: 0, taken: 0, last: None, paused: false };
    talker.run().await;
}

/// The session of the agent.
async fn begin(world: &World, id: &str) -> Option<String> {
    let body = json!({ "conversation_id": id, "agents": [{ "agent_id": agents::TALKER }] });
    let answer = post(world, "/api/conversations", &body).await;
    let seats = answer.as_ref().and_then(|answer| answer.body["participants"].as_array());
    let session = seats.into_iter().flatten().find_map(|seat| seat["session_id"].as_str()).map(str::to_owned);
    if session.is_none() {
        let said = answer.map(|answer| answer.body);
        world.diary.complain(format!("{id} cannot begin: {said:?}"));
        return None;
    }
    world.with_talk(id, |_| {});
    session
}

struct Talker<'w> {
    world: &'w World,
    story: &'w TalkStory,
    session: String,
    number: u64,
    /// Messages that start a turn.
    taken: usize,
    /// The last message that was taken, as it was sent and answered.
    last: Option<(Value, Value)>,
    paused: bool,
}

impl Talker<'_> {
    async fn run(mut self) {
        let story = self.story;
        for deed in &story.deeds {
            self.world.rest(deed.after_ms).await;
            if self.world.is_over() {
                break;
            }
            match deed.act {
                TalkAct::Say { word, again } => {
                    self.say(word).await;
                    if again {
                        self.again().await;
                        self.conflict().await;
                    }
                }
                TalkAct::Pause => self.control("pause").await,
                TalkAct::Resume => self.control("resume").await,
                TalkAct::Cancel => self.cancel().await,
                TalkAct::Guide { now } => self.guide(now).await,
            }
        }
        if self.paused {
            self.control("resume").await;
        }
        self.await_ends().await;
        self.leave().await;
    }

    fn path(&self, rest: &str) -> String {
        format!("/api/conversations/{}{rest}", self.story.id)
    }

    async fn say(&mut self, word: Word) {
        let id = format!("{}-m{}", self.story.id, self.number);
        self.number += 1;
        let text = format!("please {} ({id})", word.as_str());
        let body = json!({ "message_id": id, "text": text });
        let answer = post(self.world, &self.path("/messages"), &body).await;
        let (mut offset, mut turn) = (0, String::new());
        let told = match answer {
            None => Told::Nothing,
            Some(answer) if answer.status == 202 => {
                offset = answer.body["offset"].as_u64().unwrap_or(0);
                turn = answer.body["responders"][0]["turn_id"].as_str().unwrap_or_default().to_owned();
                self.taken += 1;
                self.last = Some((body, answer.body));
                Told::Accepted
            }
            Some(answer) => Told::Refused(code_of(&answer.body)),
        };
        let posted = Posted { id, word, text, told, offset, turn };
        self.world.with_talk(&self.story.id, |talk| talk.posts.push(posted));
    }

    /// A repeat is answered alike, and says that it is one.
    async fn again(&self) {
        let Some((body, first)) = &self.last else { return };
        let Some(answer) = post(self.world, &self.path("/messages"), body).await else { return };
        let (now, then) = (&answer.body["responders"][0], &first["responders"][0]);
        let alike = answer.status == 202
            && answer.body["offset"] == first["offset"]
            && now["turn_id"] == then["turn_id"]
            && now["accepted"] == false;
        if !alike {
            let id = &body["message_id"];
            self.world.diary.complain(format!("{id} was answered with {first}, and its repeat with {}", answer.body));
        }
    }

    /// The same id for something else is refused.
    async fn conflict(&self) {
        let Some((body, _)) = &self.last else { return };
        let mut other = body.clone();
        other["text"] = "something else".into();
        let Some(answer) = post(self.world, &self.path("/messages"), &other).await else { return };
        if code_of(&answer.body) != "message_conflict" {
            let id = &body["message_id"];
            self.world.diary.complain(format!("another message under {id} was answered with {}", answer.body));
        }
    }

    async fn control(&mut self, kind: &str) {
        let told = self.act(kind, None, &json!({ "reason": "chaos" })).await;
        // What nobody answered may have happened.
        self.paused = kind == "pause" && !matches!(told, Told::Refused(_));
    }

    async fn guide(&mut self, now: bool) {
        // Before it is sent: from now on a model may be shown it.
        self.world.with_talk(&self.story.id, |talk| talk.guided = true);
        let mark = format!("g-{}-{}", self.story.id, self.number);
        let mut payload = json!({ "guidance": { "mark": mark, "note": format!("be brief ({mark})") } });
        if now {
            payload["mode"] = "now".into();
        }
        self.act("interrupt", Some(mark), &payload).await;
    }

    /// Sends the session an action, and notes what came of it.
    async fn act(&mut self, kind: &str, mark: Option<String>, payload: &Value) -> Told {
        let id = format!("{}-a{}", self.story.id, self.number);
        self.number += 1;
        let body = json!({ "type": kind, "action_id": id, "session_id": self.session, "payload": payload });
        let at_ms = now_ms();
        let told = match post(self.world, "/api/actions", &body).await {
            None => Told::Nothing,
            Some(answer) if answer.status == 202 => Told::Accepted,
            Some(answer) => Told::Refused(code_of(&answer.body)),
        };
        let (session, kind) = (self.session.clone(), kind.to_owned());
        self.world.note(Sent { id, session, kind, mark, told: told.clone(), amqp: false, at_ms });
        told
    }

    /// Ends the turn of what was said last, if it has begun and not ended.
    async fn cancel(&self) {
        let turn = self.last.as_ref().and_then(|(_, answer)| answer["responders"][0]["turn_id"].as_str());
        let Some(turn) = turn else { return };
        // Before it is sent: from now on it may have happened, whatever the answer is.
        self.world.with_talk(&self.story.id, |talk| talk.cancels.push(turn.to_owned()));
        let at_ms = now_ms();
        let Some(answer) = post(self.world, &format!("/api/turns/{turn}/cancel"), &json!({})).await else {
            return self.world.diary.complain(format!("the end of {turn} was wanted, and nobody answered"));
        };
        if answer.status == 202 {
            let text = |name: &str| answer.body[name].as_str().unwrap_or_default().to_owned();
            let (id, session, kind) = (text("action_id"), text("session_id"), "interrupt".to_owned());
            self.world.note(Sent { id, session, kind, mark: None, told: Told::Accepted, amqp: false, at_ms });
        } else if !matches!(code_of(&answer.body).as_str(), "turn_not_found" | "turn_ended") {
            self.world.diary.complain(format!("the end of {turn} was refused: {}", answer.body));
        }
    }

    /// Until no turn is under way, or the time for it is over; the checker has the rest.
    async fn await_ends(&self) {
        let (path, mut healed) = (self.path("/turns?limit=1000"), None);
        loop {
            let page = self.world.api.must_get(&path, PATIENCE).await.unwrap_or_default();
            let ended = page["items"].as_array().into_iter().flatten().filter(|turn| turn["status"] != "active");
            if ended.count() >= self.taken {
                return;
            }
            if self.world.is_over() && healed.get_or_insert_with(Instant::now).elapsed() > ENDS_MAX {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Closes the conversation; its messages are known all the same.
    async fn leave(&self) {
        let body = json!({ "status": "completed" });
        match self.world.api.patch_until(&self.path(""), &body, PATIENCE).await {
            Ok(answer) if answer.status == 200 => self.again().await,
            Ok(answer) => self.world.diary.complain(format!("{} cannot end: {}", self.story.id, answer.body)),
            Err(error) => self.world.diary.complain(format!("{} cannot end: {error:#}", self.story.id)),
        }
    }
}

impl World {
    fn with_talk(&self, id: &str, change: impl FnOnce(&mut Talk)) {
        if let Ok(mut talks) = self.talks.lock() {
            change(talks.entry(id.to_owned()).or_insert_with(|| Talk { id: id.to_owned(), ..Talk::default() }));
        }
    }
}
