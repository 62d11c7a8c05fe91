//! Prompts, asked of models that answer as they are told.

use std::sync::Mutex;

use domain::chat::{ChatCall, ChatFailure, ChatOutcome, ChatReply, ErrorCategory, Finish, ModelTarget, Part, Role};
use domain::chat::{Operation, ProviderCallRecord};
use domain::definition::check;
use domain::ports::DeltaSink;
use schemas::definition::DefinitionKind;
use schemas::problem::Code;

use super::*;

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
    assert_eq!(asked.id, "default:t1.1.0");
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
