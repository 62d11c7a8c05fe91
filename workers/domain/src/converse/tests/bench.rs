//! A session that converses, without a world: its state, its log, and everything it has caused.

use schemas::action::ActionType;
use schemas::conversation::{LogKind, LogRecord, LogRow, Operation, Participant, Turn};
use schemas::definition::{AgentConstraints, Budgets, EffectClass};
use schemas::frame::{FrameIn, StepToken};
use schemas::id::{ActionId, AgentId, ConversationId, DefinitionId, Namespace, SessionId, SessionKey};
use schemas::json::Json;
use schemas::session::SessionSpec;
use serde_json::{Value, json};

use crate::chat::{ChatReply, ChatRequest, Finish, ModelTarget, Parameters, Part, ToolCall};
use crate::compact::Entry;
use crate::context::estimate_request;
use crate::converse::{
    Assembly, CONVERSE, Compacted, Limits, Placed, Reply, Seat, Shown, Summarised, Summary, TalkState, heard,
};
use crate::effect::{Effect, Outcome, TalkCall, TalkWork};
use crate::memory::NewMemory;
use crate::moniker::{Answer, Arrival, ArrivalKind, Call, Decision, Emits, FollowUp, Moniker, StepInput};
use crate::tool::{self, ResolvedTool};

pub struct Bench {
    spec: SessionSpec,
    session: SessionKey,
    agent: AgentId,
    pub state: Value,
    pub log: Vec<LogRow>,
    pub turns: Vec<Turn>,
    pub operations: Vec<Operation>,
    pub follow_ups: Vec<FollowUp>,
    pub names: Vec<String>,
    pub tools: Vec<ResolvedTool>,
    pub constraints: AgentConstraints,
    pub limits: Limits,
    /// Agents that take part.
    pub seats: Vec<Seat>,
    /// Who takes part, as whoever summarises finds it.
    pub here: Vec<Participant>,
    /// Of the agent.
    pub projects: Vec<DefinitionId>,
    /// What was said before the turns.
    pub history: Vec<Entry>,
    /// What summaries were archived.
    pub archive: Vec<NewMemory>,
    /// What the models that summarise were asked.
    pub summarised: Vec<ChatRequest>,
    token: StepToken,
    arrivals: u32,
    /// The calls of the last step, each with how long the log was when it began.
    asked: Vec<(String, u64)>,
    pub done: bool,
}

impl Bench {
    pub fn new(config: Value) -> Self {
        let spec = SessionSpec {
            moniker: "converse".to_owned(),
            task: None,
            config: Json::of(&config),
            stop_on_done: true,
            max_steps: None,
            max_runtime_ms: None,
            loop_interval_ms: 0,
            conversation_id: Some(ConversationId::parse("c-1").unwrap()),
            parent: None,
        };
        Self {
            spec,
            session: SessionKey::new(Namespace::default_ns(), SessionId::parse("s-1").unwrap()),
            agent: AgentId::parse("ada").unwrap(),
            state: json!({}),
            log: Vec::new(),
            turns: Vec::new(),
            operations: Vec::new(),
            follow_ups: Vec::new(),
            names: Vec::new(),
            tools: Vec::new(),
            constraints: AgentConstraints::default(),
            limits: Limits { max_rounds: 20, budgets: Budgets::default(), context: None, per_call: false },
            seats: Vec::new(),
            here: Vec::new(),
            projects: Vec::new(),
            history: Vec::new(),
            archive: Vec::new(),
            summarised: Vec::new(),
            token: StepToken::start(),
            arrivals: 0,
            asked: Vec::new(),
            done: false,
        }
    }

    /// A tool named `name` that runs an action.
    pub fn with_tool(mut self, name: &str, change: Value) -> Self {
        let mut tool = json!({"id": name, "name": name, "description": "d", "library_id": "l",
            "input_schema": {"type": "object"}, "target_type": "task", "target_id": "t"});
        merge(&mut tool, &change);
        let is_agent = tool["target_type"] == "agent";
        let target = if is_agent {
            json!({"type": "agent", "agent_id": tool["target_id"], "version": 1})
        } else {
            json!({"type": "action", "target_id": "t", "version": 1, "action_id": "a", "action_version": 1,
                "kind": "mock", "operation": "return", "effect_class": EffectClass::Pure, "execution": {}})
        };
        let resolved = json!({"tool": tool, "version": 1, "target": target});
        self.tools.push(serde_json::from_value(resolved).expect("a resolved tool"));
        self
    }

    /// The session of this agent in that conversation.
    pub fn sits(mut self, agent: &str, session: &str, conversation: &str) -> Self {
        self.agent = AgentId::parse(agent).unwrap();
        self.session = SessionKey::new(Namespace::default_ns(), SessionId::parse(session).unwrap());
        self.spec.conversation_id = Some(ConversationId::parse(conversation).unwrap());
        self
    }

    /// Takes an input, or guidance, of another session if it is for this one: by its name, or by the agent's seat.
    pub fn takes(&mut self, sent: &FollowUp) -> bool {
        let is_at_seat = sent.agent_id.as_ref() == Some(&self.agent) && sent.seat == self.spec.conversation_id;
        if sent.session_id != self.session.session_id && !is_at_seat {
            return false;
        }
        let payload = sent.payload.to_value();
        match sent.kind {
            ActionType::Input => _ = self.input(payload),
            ActionType::Interrupt => _ = self.guide(payload["guidance"].clone()),
            _ => return false,
        }
        true
    }

    pub fn talk(&self) -> TalkState {
        serde_json::from_value(self.state.clone()).unwrap()
    }

    /// The calls that are to be under way.
    pub fn calls(&self) -> Vec<Call> {
        CONVERSE.calls(&self.spec, &self.state)
    }

    /// The calls that urgent guidance ends before their time.
    pub fn cuts(&self, guidance: Value) -> Vec<String> {
        CONVERSE.cuts(&self.spec, &self.state, &[Some(guidance)])
    }

    /// Those that the end of the session does.
    pub fn cut_at_the_end(&self) -> Vec<String> {
        CONVERSE.cuts(&self.spec, &self.state, &[None])
    }

    pub fn input(&mut self, payload: Value) -> Decision {
        let arrival = self.arrival(ArrivalKind::Input, payload);
        self.step(None, Some(arrival), None)
    }

    pub fn say(&mut self, text: &str) {
        let decision = self.input(json!({ "text": text }));
        assert!(matches!(decision, Decision::Emit { .. }), "{decision:?}");
    }

    pub fn result(&mut self, operation: &str, result: Value) -> Decision {
        self.ended(json!({"operation_id": operation, "result": result}))
    }

    pub fn failure(&mut self, operation: &str, error: Value) -> Decision {
        self.ended(json!({"operation_id": operation, "error": error}))
    }

    /// A result that names the model's call.
    pub fn called(&mut self, call: &str, result: Value) -> Decision {
        self.ended(json!({"tool_call_id": call, "result": result}))
    }

    pub fn ended(&mut self, payload: Value) -> Decision {
        let arrival = self.arrival(ArrivalKind::ToolResult, payload);
        self.step(None, Some(arrival), None)
    }

    pub fn guide(&mut self, guidance: Value) -> Decision {
        self.step(Some(guidance), None, None)
    }

    fn arrival(&mut self, kind: ArrivalKind, payload: Value) -> Arrival {
        self.arrivals += 1;
        let action_id = ActionId::parse(&format!("in-{}", self.arrivals)).unwrap();
        Arrival { action_id, kind, payload, accepted_at_ms: 1_000 }
    }

    /// Answers the call of this kind that is under way, of the oldest turn that has one.
    pub fn answer(&mut self, kind: &str, outcome: Outcome) -> Decision {
        let call = self.calls().into_iter().find(|call| call.effect.kind() == kind);
        let key = call.unwrap_or_else(|| panic!("no {kind} is under way")).key;
        self.step(None, None, Some(Answer { key, outcome }))
    }

    pub fn assemble(&mut self) -> Decision {
        self.answer("assemble", self.context().into())
    }

    /// The context that a turn would begin with.
    fn context(&self) -> Assembly {
        let mut request = ChatRequest { tools: tool::specs(&self.tools), ..ChatRequest::ask("be brief", "hello") };
        let placed = |(n, entry): (usize, &Entry)| Placed { at: n + 1, offset: entry.key, at_ms: entry.at_ms };
        let history = self.history.iter().enumerate().map(placed).collect();
        request.messages.splice(1..1, self.history.iter().map(|entry| entry.message.clone()));
        Assembly {
            agent_name: "Ada".to_owned(),
            target: ModelTarget::Default,
            summariser: None,
            request,
            tools: self.tools.clone(),
            constraints: self.constraints.clone(),
            project_ids: self.projects.clone(),
            limits: self.limits.clone(),
            recent_turns: Vec::new(),
            summary: None,
            summary_at: 1,
            history,
        }
    }

    /// The call of this kind that is under way, with what its performer reads: the context of the turn, the
    /// newest summary and the turn's records.
    fn under_way(&self, kind: &str) -> (TalkCall, Assembly, Option<Summary>, Vec<LogRow>) {
        let call = self.calls().into_iter().find(|call| call.effect.kind() == kind);
        let Effect::Talk(talk) = call.unwrap_or_else(|| panic!("no {kind} is under way")).effect else {
            panic!("{kind} is talk")
        };
        let rows: Vec<LogRow> =
            self.log.iter().filter(|row| row.record.turn_id.as_ref() == Some(&talk.turn)).cloned().collect();
        let assembly = rows.iter().rfind(|row| row.record.kind == LogKind::Assembly).expect("a context");
        let (TalkWork::Chat { summary, .. } | TalkWork::Compact { summary, .. }) = &talk.what else {
            panic!("{kind} has no context")
        };
        let newest = summary.as_ref().map(|id| {
            let row = self.log.iter().find(|row| row.record.id == *id).expect("a known summary");
            row.record.body.to().expect("a summary")
        });
        (*talk, assembly.record.body.to().expect("an assembly"), newest, rows)
    }

    /// The request that the model under way is asked with.
    pub fn request(&self) -> ChatRequest {
        let (talk, assembly, newest, rows) = self.under_way("chat");
        let TalkWork::Chat { without_tools, .. } = talk.what else { panic!("a chat") };
        Shown::of(&assembly, newest.as_ref(), &rows).request(without_tools)
    }

    /// Whether the next request should, and can, be shorter. If so, the moniker is told instead of the model.
    pub fn is_over_budget(&mut self) -> bool {
        let (talk, assembly, newest, rows) = self.under_way("chat");
        let TalkWork::Chat { may_compact, .. } = talk.what else { panic!("a chat") };
        let shown = Shown::of(&assembly, newest.as_ref(), &rows);
        let tokens = estimate_request(&shown.request(false));
        let Some(limits) = assembly.limits.context.as_ref().filter(|limits| may_compact && tokens > limits.tokens)
        else {
            return false;
        };
        if shown.due((&talk.conversation, &talk.turn), limits, false).is_none() {
            return false;
        }
        let reply = Reply { over_budget: Some(tokens), ..self.blank() };
        self.answer("chat", reply.into());
        true
    }

    /// One piece of a compaction, as it is made and archived; not told to the moniker yet. A model that is
    /// asked for a summary says `answer`.
    pub fn piece(&mut self, answer: Result<&str, &str>) -> Compacted {
        let (talk, assembly, newest, rows) = self.under_way("compact");
        let TalkWork::Compact { summary: base, asked, without_model, .. } = talk.what else { panic!("a compaction") };
        let shown = Shown::of(&assembly, newest.as_ref(), &rows);
        let mut compacted = Compacted { tokens: estimate_request(&shown.request(false)), ..Compacted::default() };
        let limits = assembly.limits.context.as_ref().expect("limits");
        let Some(due) = shown.due((&talk.conversation, &talk.turn), limits, asked) else { return compacted };
        let due = due.of_session((&talk.agent, &self.session.session_id), &self.here);
        let job = due.job(&talk.conversation, limits, "Ada");
        let piece = job.next().expect("what is due is a piece");
        let text = match (without_model, answer) {
            (true, _) => job.extract(piece),
            (false, answer) => {
                self.summarised.push(job.request(piece));
                match answer {
                    Ok(text) => text.to_owned(),
                    Err(message) => return Compacted { failure: Some(message.to_owned()), ..compacted },
                }
            }
        };
        let made = job.close(piece, &text).expect("a text");
        let summary = Summary::after(due.scope, due.upto, &made, &limits.compaction);
        compacted.made = Some(Summarised { summary, base, messages: made.messages });
        self.archive.push(made.archive);
        compacted
    }

    /// An answer that comes under this key.
    pub fn take_answer(&mut self, key: &str, outcome: Outcome) -> Decision {
        self.step(None, None, Some(Answer { key: key.to_owned(), outcome }))
    }

    /// Compacts to the end; each model says `answer`.
    pub fn compact(&mut self, answer: Result<&str, &str>) {
        while self.calls().iter().any(|call| call.effect.kind() == "compact") {
            let piece = self.piece(answer);
            self.answer("compact", piece.into());
        }
    }

    /// The model replies with a text and calls of tools: `(id, name, input)`.
    pub fn reply(&mut self, text: &str, calls: &[(&str, &str, Value)]) -> Decision {
        let mut parts: Vec<Part> = Vec::new();
        if !text.is_empty() {
            parts.push(Part::text(text));
        }
        parts.extend(calls.iter().map(|(id, name, input)| {
            let (id, name) = ((*id).to_owned(), (*name).to_owned());
            Part::ToolCall(ToolCall { id, name, input: input.clone(), invalid: None, signature: None })
        }));
        let finish = if calls.is_empty() { Finish::Stop } else { Finish::ToolUse };
        self.replies(parts, finish)
    }

    pub fn replies(&mut self, parts: Vec<Part>, finish: Finish) -> Decision {
        let heard = self.heard(parts, finish);
        self.answer("chat", heard.into())
    }

    /// What a model came to; not told to the moniker yet.
    pub fn heard(&self, parts: Vec<Part>, finish: Finish) -> Reply {
        let reply = ChatReply {
            parts,
            finish,
            raw_finish: None,
            usage: None,
            provider: "scripted".to_owned(),
            model: "script".to_owned(),
            message_id: None,
            request_id: None,
            raw: json!({}),
        };
        Reply { reply: Some(reply), ..self.blank() }
    }

    /// The calls that are to be under way begin now: until then something else was done first.
    pub fn begins_now(&mut self) {
        let begins = self.log.len() as u64;
        self.asked.iter_mut().for_each(|(_, at)| *at = begins);
    }

    pub fn blank(&self) -> Reply {
        let asked = self.calls().into_iter().find(|call| call.effect.kind() == "chat");
        let seen = asked.as_ref().and_then(|call| self.asked.iter().find(|(key, _)| *key == call.key));
        let seen = seen.map_or(self.log.len() as u64, |(_, at)| *at);
        let turn = asked.and_then(|call| match call.effect {
            Effect::Talk(talk) => Some(talk.turn),
            _ => None,
        });
        let shown = |row: &&LogRow| row.offset <= seen && row.record.turn_id == turn;
        let rows: Vec<LogRow> = self.log.iter().filter(shown).cloned().collect();
        Reply { seats: self.seats.clone(), ..Reply::blank(&self.context(), seen, heard(&rows)) }
    }

    pub fn extract(&mut self) -> Decision {
        self.answer("extract", Outcome::Ok(json!({"written": 0})))
    }

    fn step(&mut self, guidance: Option<Value>, arrival: Option<Arrival>, answer: Option<Answer>) -> Decision {
        let frame = FrameIn { step: self.token.clone(), state: self.state.clone(), guidance };
        let input = StepInput {
            session: &self.session,
            agent: &self.agent,
            frame: &frame,
            spec: &self.spec,
            arrival: arrival.as_ref(),
            answer: answer.as_ref(),
            outcomes: &[],
        };
        let decision = CONVERSE.decide(&input);
        assert_eq!(decision, CONVERSE.decide(&input), "planning is deterministic");
        if let Decision::Emit { out, emits, .. } = &decision {
            self.state = out.state.clone();
            self.token = out.next_step.clone();
            self.done = out.done;
            let names = out.data.as_ref().and_then(|data| data["decisions"].as_array()).expect("decisions");
            self.names.extend(names.iter().filter_map(Value::as_str).map(str::to_owned));
            self.take(emits);
            let begins = self.log.len() as u64;
            let began = |key: &str| self.asked.iter().find(|(one, _)| one == key).map_or(begins, |(_, at)| *at);
            self.asked = self.calls().into_iter().map(|call| (call.key.clone(), began(&call.key))).collect();
        }
        decision
    }

    fn take(&mut self, emits: &Emits) {
        for record in &emits.talk.log {
            if self.log.iter().all(|row| row.record.id != record.id) {
                self.log.push(LogRow { offset: self.log.len() as u64 + 1, record: record.clone() });
            }
        }
        for turn in &emits.talk.turns {
            self.turns.retain(|known| known.turn_id != turn.turn_id);
            self.turns.push(turn.clone());
        }
        for operation in &emits.talk.operations {
            match self.operations.iter_mut().find(|known| known.operation_id == operation.operation_id) {
                Some(known) => known.state = operation.state,
                None => self.operations.push(operation.clone()),
            }
        }
        self.follow_ups.extend(emits.follow_ups.iter().cloned());
    }

    pub fn farewell(&mut self) {
        let frame = FrameIn { step: self.token.clone(), state: self.state.clone(), guidance: None };
        let emits = CONVERSE.farewell(&StepInput {
            session: &self.session,
            agent: &self.agent,
            frame: &frame,
            spec: &self.spec,
            arrival: None,
            answer: None,
            outcomes: &[],
        });
        if let Some(emits) = emits {
            self.take(&emits);
        }
    }

    pub fn token(&self) -> &str {
        self.token.as_str()
    }

    /// Records of a kind, oldest first.
    pub fn records(&self, kind: LogKind) -> Vec<&LogRecord> {
        self.log.iter().map(|row| &row.record).filter(|record| record.kind == kind).collect()
    }

    /// What was said, with who said it.
    pub fn said(&self) -> Vec<(String, String)> {
        let messages = self.records(LogKind::Message).into_iter().map(|record| record.body.to_value());
        let text = |message: &Value, key: &str| message[key].as_str().unwrap_or_default().to_owned();
        messages.map(|message| (text(&message, "sender_type"), text(&message, "text"))).collect()
    }

    /// Names of the events so far.
    pub fn events(&self) -> Vec<String> {
        let events = self.records(LogKind::Event).into_iter().map(|record| record.body.to_value());
        events.map(|event| event["type"].as_str().unwrap_or_default().to_owned()).collect()
    }

    pub fn turn(&self, index: usize) -> &Turn {
        let mut turns: Vec<&Turn> = self.turns.iter().collect();
        turns.sort_by_key(|turn| turn.turn_id.clone());
        turns[index]
    }

    pub fn with_parameters(&self) -> Parameters {
        self.request().parameters
    }
}

fn merge(into: &mut Value, from: &Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        for (key, value) in from {
            into.insert(key.clone(), value.clone());
        }
    }
}
