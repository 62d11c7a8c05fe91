//! Prompts, asked of models that answer as they are told.

use std::sync::Mutex;

use domain::chat::{ChatCall, ChatFailure, ChatOutcome, ChatReply, ErrorCategory, Finish, ModelTarget, Part, Role};
use domain::chat::{Operation, ProviderCallRecord};
use domain::definition::check;
use domain::ports::{Bill, DeltaSink};
use schemas::definition::DefinitionKind;
use schemas::problem::Code;

use super::*;
use crate::action::billed::OnBill;

/// Says one thing, and keeps what it was asked.
struct Says {
    answer: Result<&'static str, ErrorCategory>,
    asked: Mutex<Vec<ChatCall>>,
}

#[async_trait]
impl Models for Says {
    async fn chat(&self, call: &ChatCall, _sink: Option<&dyn DeltaSink>) -> ChatOutcome {
        self.asked.lock().unwrap().push(call.clone());
        let record = ProviderCallRecord {
            id: call.id.clone(),
            conversation_id: String::new(),
            turn_id: String::new(),
            provider: "fake".into(),
            model: "m".into(),
            operation: Operation::Chat,
            request_id: None,
            correlation_id: None,
            parent_correlation_id: None,
            request_metadata: serde_json::Map::new(),
            response_metadata: serde_json::Map::new(),
            usage: None,
            cost: None,
            outcome: None,
            started_at_ms: 0,
            finished_at_ms: None,
        };
        let result = match self.answer {
            Ok(text) => Ok(ChatReply {
                parts: vec![Part::text(text)],
                finish: Finish::Stop,
                raw_finish: None,
                usage: None,
                provider: "fake".into(),
                model: "m".into(),
                message_id: None,
                request_id: None,
                raw: Value::Null,
            }),
            Err(category) => Err(ChatFailure {
                category,
                code: Code::StepFailed,
                message: "no".into(),
                provider: "fake".into(),
                raw: None,
                retriable: category.is_infrastructure(),
                may_have_happened: true,
            }),
        };
        ChatOutcome { record, result }
    }

    fn provider(&self) -> String {
        "fake".into()
    }

    fn cost_of_input(&self, _target: &ModelTarget, _tokens: u64) -> f64 {
        0.0
    }
}

async fn ask(
    answer: Result<&'static str, ErrorCategory>,
    settings: Value,
    input: Value,
) -> (Result<Value, ActionFailure>, Vec<ChatCall>) {
    let (models, store) = (Arc::new(Says { answer, asked: Mutex::default() }), store());
    let definitions = [
        check(
            DefinitionKind::ModelProfile,
            &json!({"id": "fast", "name": "Fast", "provider": "scripted",
            "model_id": "tiny", "parameters": {"max_tokens": 99}}),
        ),
        check(DefinitionKind::Library, &json!({"id": "core", "name": "Core"})),
        check(
            DefinitionKind::PromptSpec,
            &json!({"id": "title", "name": "Title", "library_id": "core",
            "system_prompt": "You name things.", "template": "Name this: {{input.text}}",
            "requires": {"type": "object", "required": ["text"]},
            "produces": {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]},
            "examples": [{"input": "a cat", "output": {"title": "Cat"}}]}),
        ),
    ];
    let new: Vec<_> = definitions.into_iter().map(|found| found.expect("sound").new).collect();
    store.define(&Namespace::default_ns(), &new).await.expect("written");
    let actions = Actions::new(config(false), models.clone(), store).expect("TLS works");
    let result = actions.run(&call(ActionKind::Llm, settings, input)).await;
    let asked = models.asked.lock().unwrap().clone();
    (result, asked)
}

#[tokio::test]
async fn a_prompt_of_the_action_is_filled_in_and_asked() {
    let settings = json!({"prompt": "Say {{input.word}} & {{word}}", "system_prompt": "As {{context.agent_id}}.",
        "model_profile_id": "fast"});
    let (result, asked) = ask(Ok("hello"), settings, json!({"word": "<hi>"})).await;
    assert_eq!(result.unwrap(), json!("hello"));
    let [asked] = asked.as_slice() else { panic!("asked once") };
    assert_eq!(asked.id, "t1.1.0.llm.1", "each attempt is a call of its own");
    assert_eq!(asked.request.system(), "As ana.");
    assert_eq!(asked.request.messages[1].plain_text(), "Say <hi> & <hi>");
    let ModelTarget::Profile(profile) = &asked.target else { panic!("{:?}", asked.target) };
    assert_eq!((profile.model.as_str(), profile.parameters.max_tokens), ("tiny", Some(99)));
}

#[tokio::test]
async fn a_prompt_spec_has_examples_and_a_schema_for_the_answer() {
    let settings = json!({"prompt_spec_id": "title"});
    let (result, asked) =
        ask(Ok("```json\n{\"title\": \"Dog\"}\n```"), settings.clone(), json!({"text": "a dog"})).await;
    assert_eq!(result.unwrap(), json!({"title": "Dog"}));
    let request = &asked[0].request;
    let roles: Vec<Role> = request.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::User]);
    assert!(request.parameters.json && request.system().contains("JSON Schema"));
    let (result, asked) = ask(Ok("{}"), settings.clone(), json!({})).await;
    assert_eq!((result.unwrap_err().error.code, asked.len()), (ToolErrorCode::InvalidInput, 0));
    for answer in ["no JSON", "{\"title\": 3}"] {
        let failed = ask(Ok(answer), settings.clone(), json!({"text": "x"})).await.0.unwrap_err();
        assert_eq!((failed.trouble, failed.error.retriable), (None, true), "{answer}");
    }
}

#[tokio::test]
async fn failures_of_the_provider_are_infrastructure_or_answers() {
    let ask = |category| ask(Err(category), json!({"prompt": "x"}), json!({}));
    assert_eq!(ask(ErrorCategory::Transient).await.0.unwrap_err().trouble, Some(Trouble::ServerError));
    assert_eq!(ask(ErrorCategory::RateLimit).await.0.unwrap_err().trouble, Some(Trouble::RateLimit));
    assert_eq!(ask(ErrorCategory::Safety).await.0.unwrap_err().trouble, None);
}

#[tokio::test]
async fn what_is_not_there_is_named() {
    let (result, _) = ask(Ok(""), json!({"prompt": "x", "model_profile_id": "gone"}), json!({})).await;
    assert!(result.unwrap_err().error.message.contains("there is no model profile gone"));
}

/// Keeps what is put on it.
#[derive(Default)]
pub(super) struct Kept(pub(super) Mutex<Vec<ProviderCallRecord>>);

impl Bill for Kept {
    fn add(&self, record: ProviderCallRecord) {
        self.0.lock().unwrap().push(record);
    }
}

impl Kept {
    pub(super) fn ids(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|record| record.id.clone()).collect()
    }
}

#[tokio::test]
async fn what_models_are_asked_is_on_the_bill_whatever_comes_of_it() {
    let models = |answer| Arc::new(Says { answer, asked: Mutex::default() });
    let prompt = call(ActionKind::Llm, json!({"prompt": "x"}), json!({}));
    for answer in [Ok("fine"), Err(ErrorCategory::Transient), Err(ErrorCategory::Safety)] {
        let (actions, kept) =
            (Actions::new(config(false), models(answer), store()).expect("TLS works"), Kept::default());
        assert_eq!(actions.run_billed(&prompt, &kept).await.is_ok(), answer.is_ok());
        assert_eq!(kept.ids(), ["t1.1.0.llm.1"], "{answer:?}");
        // A program's calls are on the bill of the program.
        let second = ActionCall { attempt: 2, ..prompt.clone() };
        let of_program = OnBill { runner: &actions, bill: &kept, attempt: 1 };
        assert_eq!(of_program.run(&second).await.is_ok(), answer.is_ok());
        assert_eq!(kept.ids(), ["t1.1.0.llm.1", "t1.1.0.llm.2"], "{answer:?}");
        // A program that runs again counts anew, and pays again.
        let again = OnBill { runner: &actions, bill: &kept, attempt: 2 };
        assert_eq!(again.run(&second).await.is_ok(), answer.is_ok());
        assert_eq!(kept.ids()[2], "t1.1.0.llm.2.run.2", "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_broken_off_has_used_what_its_model_was_asked() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let script = folder.path().join("script.json");
    std::fs::write(&script, json!({"otherwise": {"text": "late", "delay_ms": 60_000}}).to_string()).expect("written");
    let performer = Performer::new(&ProvidersConfig { script: Some(script), ..ProvidersConfig::default() });
    let actions = Actions::new(config(false), Arc::new(performer.expect("valid")), store()).expect("TLS works");
    let (prompt, kept) = (call(ActionKind::Llm, json!({"prompt": "12345678"}), json!({})), Kept::default());
    let attempt = tokio::time::timeout(std::time::Duration::from_secs(1), actions.run_billed(&prompt, &kept));
    assert!(attempt.await.is_err(), "broken off");
    assert_eq!(kept.ids(), ["t1.1.0.llm.1"]);
    let record = kept.0.lock().unwrap()[0].clone();
    let usage = record.usage.expect("estimated");
    assert_eq!((usage.input_tokens, usage.output_tokens, record.outcome.expect("an end").ok), (2, 0, false));
    assert_eq!(record.response_metadata["lost_attempts"][0]["estimated"], true);
}

#[tokio::test]
async fn an_action_that_names_no_profile_has_that_of_its_agents_project() {
    let (models, store) = (Arc::new(Says { answer: Ok("hello"), asked: Mutex::default() }), store());
    let profile = |id: &str| {
        let value = json!({"id": id, "name": id, "provider": "scripted", "model_id": format!("model-{id}")});
        check(DefinitionKind::ModelProfile, &value)
    };
    let definitions = [
        profile("fast"),
        profile("slow"),
        check(DefinitionKind::Project, &json!({"id": "plain", "name": "Plain"})),
        check(DefinitionKind::Project, &json!({"id": "quick", "name": "Quick", "default_model_profile_id": "fast"})),
        check(
            DefinitionKind::Agent,
            &json!({"id": "ana", "name": "Ana", "project_ids": ["plain", "quick"],
                "persona_inline": {"system_prompt": "You help.", "model_profile_id": "slow"}}),
        ),
    ];
    let new: Vec<_> = definitions.into_iter().map(|found| found.expect("sound").new).collect();
    store.define(&Namespace::default_ns(), &new).await.expect("written");
    let actions = Actions::new(config(false), models.clone(), store).expect("TLS works");
    for config in [json!({"prompt": "x"}), json!({"prompt": "x", "model_profile_id": "slow"})] {
        actions.run(&call(ActionKind::Llm, config, json!({}))).await.expect("an answer");
    }
    let mut nobody = call(ActionKind::Llm, json!({"prompt": "x"}), json!({}));
    nobody.request.context.agent_id = Some(AgentId::parse("undefined").expect("an id"));
    actions.run(&nobody).await.expect("an answer");
    let model = |asked: &ChatCall| match &asked.target {
        ModelTarget::Profile(profile) => profile.model.clone(),
        other => format!("{other:?}"),
    };
    let asked: Vec<String> = models.asked.lock().unwrap().iter().map(model).collect();
    assert_eq!(asked, ["model-fast", "model-slow", "Default"]);
}
