//! `llm`: a prompt, rendered and asked, or a request in the provider's own shape; the answer is text, or JSON held to a
//! schema.

use domain::chat::{
    CallContext, ChatCall, ChatFailure, ChatRequest, Message, ModelTarget, NativeRequest, RequestClass, Role,
    ToolErrorCode,
};
use domain::failure::Failure;
use domain::ports::{ActionCall, ActionFailure, Bill, Definitions, Models, Trouble, Unheard};
use domain::template::Escape;
use domain::tool::schema;
use schemas::definition::{self, DefinitionKind, PromptSpec};
use schemas::id::DefinitionId;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::native::{self, Output};
use super::{project, template};

#[derive(Debug, Deserialize)]
struct Settings {
    #[serde(default)]
    model_profile_id: Option<DefinitionId>,
    #[serde(default)]
    prompt_spec_id: Option<DefinitionId>,
    #[serde(default)]
    prompt_spec_version: Option<u64>,
    #[serde(default)]
    prompt: Option<String>,
    #[serde(default)]
    system_prompt: Option<String>,
    /// Instead of all texts.
    #[serde(default)]
    native: Option<NativeRequest>,
    #[serde(default)]
    output: Option<Output>,
}

/// What is asked, before it is rendered.
struct Question {
    system: Option<String>,
    prompt: String,
    examples: Vec<(String, String)>,
    /// The answer is JSON that fits this.
    produces: Option<Map<String, Value>>,
}

pub async fn run(
    models: &dyn Models,
    definitions: &dyn Definitions,
    call: &ActionCall,
    bill: &dyn Bill,
) -> Result<Value, ActionFailure> {
    if call.request.operation != "generate" {
        return Err(super::unavailable(call));
    }
    let mut settings: Settings = super::settings(call)?;
    let target = target(definitions, call, settings.model_profile_id.as_ref()).await?;
    let output = settings.output.unwrap_or_default();
    let (request, produces) = match settings.native.take() {
        Some(own) => (native::request(call, own)?, produces(call)),
        None => {
            let question = question(definitions, call, settings).await?;
            let produces = question.produces.clone();
            (request(call, question)?, produces)
        }
    };
    let is_native = request.native.is_some();
    let once = is_native && native::is_once(call);
    let asked = ChatCall { id: id(call), target, request, context: context(call), once };
    let outcome = models.chat(&asked, Some(&Unheard(bill))).await;
    bill.add(outcome.record);
    let reply = outcome.result.map_err(|failure| if is_native { native::failed(failure) } else { failed(failure) })?;
    if let Some(unfinished) = native::unfinished(&reply).filter(|_| is_native && output == Output::Text) {
        return Err(unfinished);
    }
    match (output, produces) {
        (Output::Raw, _) => Ok(reply.raw),
        (Output::Text, Some(schema)) => structured(&reply.text(), &schema),
        (Output::Text, None) => Ok(reply.text().into()),
    }
}

/// What the answer must fit, if it is passed on as it is.
fn produces(call: &ActionCall) -> Option<Map<String, Value>> {
    call.request.output_schema.clone().filter(|_| call.request.output_mapping.is_none())
}

/// Of the record: each attempt of an operation is a call of its own.
fn id(call: &ActionCall) -> String {
    format!("{}.llm.{}", call.operation_id, call.attempt)
}

fn context(call: &ActionCall) -> CallContext {
    let agent = call.request.context.agent_id.as_ref().map(ToString::to_string);
    CallContext {
        conversation_id: call.conversation_id.to_string(),
        turn_id: call.turn_id.to_string(),
        agent: agent.unwrap_or_else(|| call.tool.clone()),
        request_class: Some(RequestClass::Background),
        ..CallContext::default()
    }
}

async fn target(
    definitions: &dyn Definitions,
    call: &ActionCall,
    id: Option<&DefinitionId>,
) -> Result<ModelTarget, ActionFailure> {
    let of_project = match id {
        Some(_) => None,
        None => project::model_profile(definitions, call).await?,
    };
    let Some(id) = id.or(of_project.as_ref()) else { return Ok(ModelTarget::Default) };
    let profile: definition::ModelProfile = load(definitions, call, DefinitionKind::ModelProfile, id, None).await?;
    Ok(ModelTarget::Profile(Box::new(profile.into())))
}

async fn question(
    definitions: &dyn Definitions,
    call: &ActionCall,
    settings: Settings,
) -> Result<Question, ActionFailure> {
    let Some(id) = settings.prompt_spec_id else {
        let prompt = settings.prompt.ok_or_else(|| ActionFailure::invalid("config.prompt is missing"))?;
        return Ok(Question { system: settings.system_prompt, prompt, examples: Vec::new(), produces: produces(call) });
    };
    let kind = DefinitionKind::PromptSpec;
    let spec: PromptSpec = load(definitions, call, kind, &id, settings.prompt_spec_version).await?;
    let errors = spec.requires.as_ref().map(|schema| schema::check(schema, &call.request.input)).unwrap_or_default();
    if !errors.is_empty() {
        let what = schema::words(&errors);
        return Err(ActionFailure::invalid(format!("the input does not fit what the prompt {id} requires: {what}")));
    }
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let examples = spec.examples.iter().map(|example| (text(&example.input), text(&example.output)));
    Ok(Question {
        system: settings.system_prompt.or(spec.system_prompt),
        prompt: spec.template,
        examples: examples.collect(),
        produces: spec.produces,
    })
}

fn request(call: &ActionCall, question: Question) -> Result<ChatRequest, ActionFailure> {
    let seen = template::context(call);
    let mut system = match &question.system {
        Some(text) => template::text(text, &seen, Escape::Nothing, "system_prompt")?,
        None => String::new(),
    };
    if let Some(schema) = &question.produces {
        let shape = Value::Object(schema.clone());
        system = format!("{system}\n\nAnswer with JSON alone that fits this JSON Schema: {shape}").trim().to_owned();
    }
    let prompt = template::text(&question.prompt, &seen, Escape::Nothing, "prompt")?;
    let mut request = ChatRequest::ask(&system, &prompt);
    let last = request.messages.pop();
    for (input, output) in question.examples {
        request.messages.push(Message::text(Role::User, input));
        request.messages.push(Message::text(Role::Assistant, output));
    }
    request.messages.extend(last);
    request.parameters.json = question.produces.is_some();
    Ok(request)
}

/// The JSON of an answer, which models like to put between fences.
fn structured(text: &str, schema: &Map<String, Value>) -> Result<Value, ActionFailure> {
    let wrong = |what: String| {
        let mut failure = ActionFailure::business(ToolErrorCode::ExecutionFailed, what);
        failure.error.retriable = true;
        failure
    };
    let plain = text.trim();
    let inner = plain.strip_prefix("```json").or_else(|| plain.strip_prefix("```"));
    let plain = inner.and_then(|rest| rest.strip_suffix("```")).unwrap_or(plain).trim();
    let value: Value =
        serde_json::from_str(plain).map_err(|error| wrong(format!("the model did not answer with JSON: {error}")))?;
    let errors = schema::check(schema, &value);
    if errors.is_empty() {
        return Ok(value);
    }
    Err(wrong(format!("the answer of the model does not fit its schema: {}", schema::words(&errors))))
}

/// The model's attempts are used up by now (SPEC W-ERR-02); what is left is infrastructure or an answer.
pub(super) fn failed(failure: ChatFailure) -> ActionFailure {
    if !failure.category.is_infrastructure() {
        return ActionFailure::business(ToolErrorCode::ExecutionFailed, failure.message);
    }
    let trouble = match failure.category {
        domain::chat::ErrorCategory::RateLimit => Trouble::RateLimit,
        _ => Trouble::ServerError,
    };
    // Asking again costs money and changes nothing.
    ActionFailure::trouble(trouble, failure.message, false)
}

async fn load<T: DeserializeOwned>(
    definitions: &dyn Definitions,
    call: &ActionCall,
    kind: DefinitionKind,
    id: &DefinitionId,
    version: Option<u64>,
) -> Result<T, ActionFailure> {
    let key = (kind, id.clone());
    let words = domain::definition::words(kind);
    let away = |failure: Failure| {
        ActionFailure::trouble(Trouble::ServerError, format!("the {words} {id} cannot be read: {failure}"), false)
    };
    let found = match version {
        Some(version) => definitions.definition_at(&call.namespace, &key, version).await,
        None => definitions.definition(&call.namespace, &key).await,
    };
    let row = found
        .map_err(away)?
        .ok_or_else(|| ActionFailure::invalid(format!("there is no {words} {id}; mend the action")))?;
    row.content.to().map_err(|error| ActionFailure::invalid(format!("the {words} {id} cannot be read: {error}")))
}
