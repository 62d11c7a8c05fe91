//! `GET /openapi.json`, made from the table of routes.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use schemas::problem::Code;
use schemas::{action, api, conversation, definition, event, frame, memory, problem, record, request, session};
use utoipa::openapi::content::Content;
use utoipa::openapi::path::{HttpMethod, Operation, OperationBuilder, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::schema::{ArrayBuilder, Object, ObjectBuilder, Schema, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{self, Ref, RefOr, Required};
use utoipa::{OpenApi, PartialSchema};

use crate::answer::PROBLEM_JSON;
use crate::routes::{self, Param, Route, Verb};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Stepfleet",
        description = "A durable fleet for AI agents. Every error is a problem document (RFC 9457) with a stable \
                       `code`; `/problems/{code}` says what to do about it.",
        license(name = "Apache-2.0")
    ),
    components(schemas(
        action::ActionType,
        action::ActionView,
        action::ActionOutcome,
        action::Lane,
        action::Urgency,
        api::AcceptedBody,
        api::StepView,
        api::StepPage,
        api::SessionView,
        api::SessionPage,
        api::SessionDetail,
        api::WhyBody,
        api::WhyLink,
        api::AgentView,
        api::AgentPage,
        api::DefinitionView,
        api::DefinitionPage,
        api::VersionView,
        api::VersionPage,
        api::DefinitionChange,
        api::DefinitionWritten,
        api::FieldChange,
        api::DefinitionItem,
        api::DefinitionsAnswer,
        conversation::NewConversationBody,
        conversation::ConversationPatch,
        conversation::JoinBody,
        conversation::PostBody,
        conversation::ApprovalBody,
        conversation::ClientFrame,
        conversation::ConversationView,
        conversation::ConversationPage,
        conversation::ConversationDetail,
        conversation::ConversationCreated,
        conversation::ParticipantView,
        conversation::ParticipantPage,
        conversation::JoinAnswer,
        conversation::MessageView,
        conversation::MessagePage,
        conversation::PostAnswer,
        conversation::TurnView,
        conversation::TurnPage,
        conversation::TurnDetail,
        conversation::TurnContext,
        conversation::MoveView,
        conversation::MovePage,
        conversation::OperationView,
        conversation::OperationPage,
        conversation::ApprovalAnswer,
        conversation::ConversationFrame,
        definition::DefinitionKind,
        definition::Library,
        definition::Project,
        definition::ModelProfile,
        definition::PromptSpec,
        definition::ActionDef,
        definition::Task,
        definition::Tool,
        definition::Persona,
        definition::Agent,
        api::SessionFilter,
        api::BulkBody,
        api::BulkAnswer,
        api::BulkRefusal,
        api::StreamEvent,
        api::StreamEventType,
        api::ComponentHealth,
        api::HealthBody,
        api::ShardView,
        api::SpendingBody,
        api::WorkerView,
        api::DrainBody,
        api::DeadLetterView,
        api::DeadDoneBody,
        api::DeadSweepBody,
        api::DeadSweepView,
        api::TaskBody,
        api::ReleaseBody,
        api::ReleaseAnswer,
        event::EventKind,
        memory::MemoryView,
        memory::MemoryPage,
        frame::FrameIn,
        frame::FrameOut,
        problem::Problem,
        problem::FieldProblem,
        problem::Code,
        record::StepStatus,
        session::SessionStatus,
        session::SessionSpec,
        session::Cause,
        session::StopReason,
        request::ActionBody,
        request::Payload,
        request::CreatePayload,
        request::InterruptPayload,
        request::ToolResultPayload,
        request::ReasonPayload,
        request::InputPayload,
    ))
)]
struct Description;

const SCHEME: &str = "bearer";

static TEXT: LazyLock<String> = LazyLock::new(|| schemas::json::Json::of(&describe()).as_str().to_owned());

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/openapi.json", get(serve))
            .open()
            .summary("This description.")
            .answers_text(200, "application/json"),
    ]
}

async fn serve() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-cache")], TEXT.as_str())
}

/// The whole description.
pub fn describe() -> openapi::OpenApi {
    let mut description = Description::openapi();
    for route in routes::table() {
        let method = match route.verb {
            Verb::Get => HttpMethod::Get,
            Verb::Post => HttpMethod::Post,
            Verb::Patch => HttpMethod::Patch,
            Verb::Delete => HttpMethod::Delete,
        };
        description.paths.add_path_operation(route.path, vec![method], operation(&route));
    }
    let token = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(
        "A token has a namespace and scopes: read < act < operate < admin. A wider scope includes the narrower ones.",
    ));
    let components = description.components.get_or_insert_default();
    components.add_security_scheme(SCHEME, SecurityScheme::Http(token.build()));
    description
}

fn operation(route: &Route) -> Operation {
    let mut operation = OperationBuilder::new().summary(Some(route.summary)).tag(tag(route.path));
    operation = operation.operation_id(Some(operation_id(route)));
    for name in path_params(route.path) {
        operation = operation.parameter(parameter(name, "", ParameterIn::Path));
    }
    for Param { name, about, header } in &route.params {
        let place = if *header { ParameterIn::Header } else { ParameterIn::Query };
        operation = operation.parameter(parameter(name, about, place));
    }
    if let Some(schema) = route.body {
        let content = Content::new(Some(one_or_list(schema)));
        let body = RequestBodyBuilder::new().content("application/json", content);
        let required = if schema == "ReasonPayload" { Required::False } else { Required::True };
        operation = operation.request_body(Some(body.required(Some(required)).build()));
    }
    let (status, media_type, schema) = route.answer;
    operation = operation.response(status.to_string(), good(media_type, schema));
    let also = if route.path == "/health" { Some(503) } else { route.also };
    if let Some(also) = also {
        operation = operation.response(also.to_string(), good(media_type, schema));
    }
    for (status, codes) in refusals(route) {
        operation = operation.response(status.to_string(), bad(&codes));
    }
    if let Some(scope) = route.scope {
        operation = operation
            .security(SecurityRequirement::new(SCHEME, Vec::<String>::new()))
            .description(Some(format!("Needs a token with scope `{}` or wider.", scope.as_str())));
    }
    operation.build()
}

/// What a route may refuse with, by status.
fn refusals(route: &Route) -> std::collections::BTreeMap<u16, Vec<Code>> {
    let mut codes = route.refusals.clone();
    if route.scope.is_some() {
        codes.extend([Code::Unauthorized, Code::Forbidden]);
    }
    if route.path.starts_with("/api/") {
        codes.extend([Code::Internal, Code::Unavailable]);
    }
    let mut by_status = std::collections::BTreeMap::<u16, Vec<Code>>::new();
    for code in codes {
        let list = by_status.entry(code.status()).or_default();
        if !list.contains(&code) {
            list.push(code);
        }
    }
    by_status
}

fn good(media_type: &str, schema: Option<&str>) -> Response {
    let content = match schema {
        Some(name) => Content::new(Some(one_or_list(name))),
        None if media_type == "application/json" => Content::new(Some(RefOr::T(Schema::Object(Object::new())))),
        None => Content::new(Some(String::schema())),
    };
    let media_type =
        if matches!(schema, Some("StreamEvent" | "ConversationFrame")) { "text/event-stream" } else { media_type };
    ResponseBuilder::new().description("Done").content(media_type, content).build()
}

fn bad(codes: &[Code]) -> Response {
    let names: Vec<&str> = codes.iter().map(|code| code.as_str()).collect();
    let content = Content::new(Some(reference("Problem")));
    ResponseBuilder::new().description(names.join(", ")).content(PROBLEM_JSON, content).build()
}

/// `[Name]` is a list of `Name`.
fn one_or_list(schema: &str) -> RefOr<Schema> {
    match schema.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(item) => RefOr::T(Schema::Array(ArrayBuilder::new().items(Ref::from_schema_name(item)).build())),
        None => reference(schema),
    }
}

fn reference(schema: &str) -> RefOr<Schema> {
    RefOr::Ref(Ref::from_schema_name(schema))
}

fn parameter(name: &str, about: &str, place: ParameterIn) -> Parameter {
    let required = if matches!(place, ParameterIn::Path) { Required::True } else { Required::False };
    let about = (!about.is_empty()).then_some(about);
    let text = ObjectBuilder::new().schema_type(Type::String).build();
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .required(required)
        .description(about)
        .schema(Some(text))
        .build()
}

/// The names in braces.
fn path_params(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{').and_then(|part| part.strip_suffix('}')))
}

/// The first noun of a path.
fn tag(path: &str) -> &str {
    let path = path.strip_prefix("/api/").unwrap_or(path.trim_start_matches('/'));
    path.split(['/', '.']).next().unwrap_or(path)
}

/// `get_api_sessions_id_why`.
fn operation_id(route: &Route) -> String {
    let words = route.path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    std::iter::once(route.verb.as_str()).chain(words).collect::<Vec<_>>().join("_")
}
