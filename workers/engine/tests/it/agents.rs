//! An agent in one conversation: rounds of tools, memory, resuming.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use domain::chat::{
    CallContext, ErrorCategory, Message, Part, Role, ToolCall, ToolChoice, ToolError, ToolErrorCode, ToolResult,
    ToolSpec,
};
use domain::failure::Failure;
use engine::{
    Agent, AgentDeps, AgentMemory, AgentSettings, ConversationId, ConversationMessage, EngineError, MemoryBlock,
    MemoryStore, MemoryTier, MessageKind, NO_RESPONSE, NewMessage, Page, ProviderChatResult, Tools, create_agent,
};
use serde_json::json;

use crate::fakes::{Log, Mock, Say, lines, paused};

pub fn deps(mock: &Arc<Mock>) -> AgentDeps {
    AgentDeps::new("ana", Arc::new(MemoryStore::new()), mock.clone(), "m-1")
}

async fn agent(deps: AgentDeps) -> Agent {
    create_agent(deps, None).await.expect("an agent")
}

fn shown(messages: &[ConversationMessage]) -> Vec<String> {
    lines(&messages.iter().map(ConversationMessage::for_model).collect::<Vec<Message>>())
}

pub async fn history(agent: &Agent) -> Vec<String> {
    shown(&agent.conversation_history().await.expect("a history"))
}

/// S-155, A-AGT-06 to A-AGT-08, A-MSG-07.
#[tokio::test]
async fn s_155_an_agent_opens_or_resumes_exactly_one_conversation() {
    let mock = Mock::new(vec![Say::Text("hello"), Say::Text("again")]);
    let deps = deps(&mock);
    let mut first = agent(deps.clone()).await;
    assert_eq!(first.process_message("hi").await.expect("an answer"), "hello");
    assert_eq!(history(&first).await, ["user: hi", "assistant: hello"]);
    let id = first.conversation_id().clone();
    drop(first);
    let mut second = create_agent(deps.clone(), Some(id.clone())).await.expect("an agent");
    assert_eq!((second.conversation_id(), history(&second).await.len()), (&id, 2));
    assert_eq!(second.process_message("still there?").await.expect("an answer"), "again");
    assert_eq!(mock.last_request(), ["user: hi", "assistant: hello", "user: still there?"]);
    let mine = ConversationId::parse("mine").expect("an id");
    let third = create_agent(deps.clone(), Some(mine.clone())).await.expect("an agent");
    assert_eq!((third.conversation_id(), history(&third).await), (&mine, vec![]));
    let other = agent(deps.clone()).await;
    assert!(other.conversation_id() != &id && other.conversation_id() != &mine, "without an id it is a new one");
    assert_eq!(deps.store.list_turns(&id, Page::all()).await.expect("turns").len(), 2);
    let mut guest = create_agent(AgentDeps { name: "bo".into(), ..deps }, Some(id.clone())).await.expect("an agent");
    guest.process_message("who is there?").await.expect("an answer");
    let turns = guest.engine().list_turns(&id, Page::newest(1)).await.expect("turns");
    assert_eq!(turns[0].agent, "bo", "a conversation has one primary agent, and room for others");
}

/// `look` sees a cat, `fail` fails; both say when they are called.
struct Toolbox(Log);

#[async_trait]
impl Tools for Toolbox {
    fn specs(&self) -> Vec<ToolSpec> {
        ["look", "fail"]
            .map(|name| ToolSpec {
                name: name.into(),
                description: String::new(),
                input_schema: json!({"type": "object"}),
            })
            .to_vec()
    }

    async fn call(&self, call: &ToolCall, context: &CallContext) -> ToolResult {
        self.0.note(format!("{} by {}", call.id, context.agent));
        if call.name == "fail" {
            let error =
                ToolError { code: ToolErrorCode::ExecutionFailed, message: "it is dark".into(), retriable: false };
            return ToolResult::failed(&*call.id, error);
        }
        // A wrong id must not reach the provider.
        ToolResult::ok("another", json!("a cat"))
    }
}

fn with_tools(mock: &Arc<Mock>, max_tool_rounds: u32) -> (AgentDeps, Log) {
    let log = Log::default();
    let settings = AgentSettings { max_tool_rounds, ..AgentSettings::default() };
    (AgentDeps { tools: Some(Arc::new(Toolbox(log.clone()))), settings, ..deps(mock) }, log)
}

/// A-MSG-06: message, calls, results and answer are stored.
#[tokio::test]
async fn s_155_every_round_of_tools_is_stored() {
    let mock = Mock::new(vec![Say::Calls(&["look", "fail"]), Say::Calls(&["look"]), Say::Text("A cat, in the dark.")]);
    let (deps, log) = with_tools(&mock, 20);
    let mut agent = agent(deps).await;
    assert_eq!(agent.process_message("what is there?").await.expect("an answer"), "A cat, in the dark.");
    assert_eq!(log.take(), ["look-1 by ana", "fail-1 by ana", "look-2 by ana"]);
    let error = r#"error {"error":{"code":"EXECUTION_FAILED","message":"it is dark","retriable":false}}"#;
    let failed = format!("tool: {error}");
    let expected = [
        "user: what is there?",
        "assistant: call look | call fail",
        "tool: result a cat",
        failed.as_str(),
        "assistant: call look",
        "tool: result a cat",
        "assistant: A cat, in the dark.",
    ];
    assert_eq!(history(&agent).await, expected);
    assert_eq!(mock.last_request(), expected[..6]);
    let messages = agent.conversation_history().await.expect("a history");
    let kinds: Vec<MessageKind> = messages.iter().map(|one| one.kind).collect();
    assert_eq!(kinds[1..4], [MessageKind::ToolCall, MessageKind::ToolResult, MessageKind::ToolResult]);
    let result_of = |n: usize| match &messages[n].content.parts()[0] {
        Part::ToolResult { call_id, .. } => call_id.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!((result_of(2), result_of(3)), ("look-1".to_owned(), "fail-1".to_owned()), "as they were called");
    let turns = agent.engine().list_turns(agent.conversation_id(), Page::all()).await.expect("turns");
    let triggers: Vec<&str> = turns.iter().filter_map(|turn| turn.trigger_type.as_deref()).collect();
    assert_eq!(triggers, ["user_message", "tool_result", "tool_result"]);
    assert_eq!(turns[1].input_messages.len(), 2);
}

/// K-14: rounds never exceed the limit, and the last call must answer.
#[tokio::test]
async fn after_the_last_round_the_model_must_answer() {
    for (last, answer, rounds) in [(Say::Text("enough"), "enough", 2), (Say::Calls(&["look"]), NO_RESPONSE, 2)] {
        let mock = Mock::new(vec![Say::Calls(&["look"]), Say::Calls(&["look"]), last]);
        let (deps, log) = with_tools(&mock, 2);
        let mut agent = agent(deps).await;
        assert_eq!(agent.process_message("look!").await.expect("an answer"), answer);
        assert_eq!(log.take().len(), rounds);
        let choices: Vec<Option<ToolChoice>> =
            mock.asked().into_iter().map(|asked| asked.request.parameters.tool_choice).collect();
        assert_eq!(choices, [None, None, Some(ToolChoice::None)]);
        assert_eq!(mock.asked()[2].request.tools.len(), 2, "in sight, since the history has calls of them");
        let history = history(&agent).await;
        assert_eq!(history.last(), Some(&format!("assistant: {answer}")), "A-MSG-07");
        let open = domain::context::unanswered_calls(&agent.conversation_history().await.expect("a history"));
        assert_eq!(open, [], "a call that was not carried out has a result that says so");
    }
    let mock = Mock::new(vec![Say::Text("at once")]);
    let mut none = agent(with_tools(&mock, 0).0).await;
    none.process_message("hi").await.expect("an answer");
    assert_eq!(mock.asked()[0].request.parameters.tool_choice, Some(ToolChoice::None));
}

#[tokio::test]
async fn calls_that_cannot_be_carried_out_are_told_to_the_model() {
    let part = Part::ToolCall(ToolCall {
        id: "k".into(),
        name: "look".into(),
        input: json!({}),
        invalid: Some("{".into()),
        signature: None,
    });
    let message = NewMessage::from(Message::new(Role::Assistant, vec![part]));
    let invalid = Box::new(ProviderChatResult { messages: vec![message], ..ProviderChatResult::default() });
    for (say, code, words) in [
        (Say::Calls(&["fly"]), "NOT_FOUND", "no tool fly"),
        (Say::Result(invalid), "INVALID_INPUT", "not a JSON object"),
        (Say::Calls(&["compact_context"]), "NOT_FOUND", "not configured"),
    ] {
        let mock = Mock::new(vec![say, Say::Text("sorry")]);
        let (deps, log) = with_tools(&mock, 5);
        let mut agent = agent(deps).await;
        assert_eq!(agent.process_message("do it").await.expect("an answer"), "sorry");
        let result = history(&agent).await[2].clone();
        assert!(result.starts_with("tool: error") && result.contains(code) && result.contains(words), "{result}");
        assert_eq!(log.take().len(), 0);
    }
}

#[tokio::test]
async fn calls_left_open_by_a_crash_are_closed_and_not_repeated() {
    let mock = Mock::new(vec![Say::Calls(&["look"]), Say::Hang]);
    let (deps, log) = with_tools(&mock, 5);
    let id = {
        let mut agent = agent(deps.clone()).await;
        // The turn ends with a call; then everything stops.
        agent.engine().append_messages(agent.conversation_id(), vec![NewMessage::user("look")]).await.expect("added");
        agent.engine().run_turn(engine::RunTurn::new(agent.conversation_id())).await.expect("a turn");
        mock.was_asked.notified().await;
        tokio::select! {
            answer = agent.process_message("are you there?") => panic!("{answer:?}"),
            () = mock.was_asked.notified() => {}
        }
        agent.conversation_id().clone()
    };
    let answering = Mock::new(vec![Say::Text("I am.")]);
    let mut again = create_agent(AgentDeps { provider: answering.clone(), ..deps }, Some(id)).await.expect("an agent");
    assert_eq!(again.process_message("hello?").await.expect("an answer"), "I am.");
    let history = history(&again).await;
    assert!(
        history[2].starts_with("tool: error") && history[2].contains("may or may not have happened"),
        "{history:?}"
    );
    assert_eq!((history.len(), log.take().len()), (6, 0), "{history:?}");
}

#[tokio::test]
async fn a_failed_turn_is_told_and_the_conversation_goes_on() {
    let mock = Mock::new(vec![Say::Fail(ErrorCategory::Quota, "nothing is left"), Say::Text("back")]);
    let mut agent = agent(deps(&mock)).await;
    let failure = agent.process_message("hi").await.expect_err("it fails");
    assert!(matches!(&failure, EngineError::TurnFailed(_)) && failure.to_string().contains("nothing is left"));
    assert_eq!(history(&agent).await, ["user: hi"]);
    assert_eq!(agent.process_message("and now?").await.expect("an answer"), "back");
    assert_eq!(mock.last_request(), ["user: hi", "user: and now?"]);
}

#[tokio::test]
async fn a_model_that_pauses_goes_on_by_itself() {
    let mock = Mock::new(vec![Say::Result(paused("Searching.")), Say::Text("Found it.")]);
    let mut agent = agent(deps(&mock)).await;
    assert_eq!(agent.process_message("find it").await.expect("an answer"), "Found it.");
    assert_eq!(mock.last_request(), ["user: find it", "assistant: Searching."]);
    let endless = Mock::new(vec![Say::Result(paused("…"))]);
    let settings = AgentSettings { max_tool_rounds: 3, ..AgentSettings::default() };
    let mut agent = create_agent(AgentDeps { settings, ..deps(&endless) }, None).await.expect("an agent");
    assert_eq!(agent.process_message("go").await.expect("an answer"), "…");
    assert_eq!(endless.asked().len(), 4, "pauses are rounds, too");
}

/// Memory with some blocks; keeps what is archived.
#[derive(Default)]
pub struct Blocks {
    pub blocks: Vec<MemoryBlock>,
    pub archived: Mutex<Vec<(String, String)>>,
    pub fails: bool,
}

#[async_trait]
impl AgentMemory for Blocks {
    async fn blocks(&self, agent: &str) -> Result<Vec<MemoryBlock>, Failure> {
        assert_eq!(agent, "ana");
        if self.fails { Err(Failure::unavailable("the memory is away")) } else { Ok(self.blocks.clone()) }
    }

    async fn archive(&self, _: &str, label: &str, content: &str) -> Result<(), Failure> {
        if self.fails {
            return Err(Failure::unavailable("the memory is away"));
        }
        self.archived.lock().expect("unpoisoned").push((label.to_owned(), content.to_owned()));
        Ok(())
    }
}

/// A-LOOP-12.
#[tokio::test]
async fn memory_is_in_every_request_and_not_in_the_history() {
    let blocks = vec![
        MemoryBlock::new(MemoryTier::Core, "human", "Likes cats."),
        MemoryBlock::new(MemoryTier::Working, "task", "Count ships."),
    ];
    let mock = Mock::new(vec![Say::Text("ok")]);
    let memory = Arc::new(Blocks { blocks, ..Blocks::default() });
    let deps = AgentDeps {
        system_prompt: "You are Ana.".into(),
        instructions: Some("Be brief.".into()),
        memory: Some(memory),
        ..deps(&mock)
    };
    let mut agent = agent(deps).await;
    for n in 1..=2 {
        agent.process_message("hi").await.expect("an answer");
        let request = mock.last_request();
        assert_eq!(request[0], "system: You are Ana.\n\nBe brief.\n\n## human\nLikes cats.");
        assert_eq!(request[1], "user: [Working memory]\n\n## task\nCount ships.");
        assert_eq!(request.len(), 2 + 2 * n - 1);
    }
    assert_eq!(history(&agent).await.len(), 4);
}

#[tokio::test]
async fn an_agent_that_cannot_remember_does_not_answer() {
    let mock = Mock::new(vec![Say::Text("who am I?")]);
    let memory = Arc::new(Blocks { fails: true, ..Blocks::default() });
    let mut agent = agent(AgentDeps { memory: Some(memory), ..deps(&mock) }).await;
    let failure = agent.process_message("hi").await.expect_err("it fails");
    assert!(failure.to_string().contains("the memory cannot be read"), "{failure}");
    assert_eq!(mock.asked().len(), 0);
}

#[tokio::test]
async fn wrong_settings_are_refused() {
    let mock = Mock::new(vec![Say::Text("x")]);
    let mut wrong = deps(&mock);
    wrong.settings.max_tool_rounds = 1_001;
    let refused = create_agent(wrong, None).await.err().expect("too many");
    assert!(matches!(&refused, EngineError::Invalid(told) if told.contains("1000 is the most")), "{refused:?}");
    let mut wrong = deps(&mock);
    wrong.settings.budget.context_budget = 1.5;
    assert!(matches!(create_agent(wrong, None).await, Err(EngineError::Invalid(_))));
}
