//! Definitions by kind: `POST|GET /api/{libraries|…}`, `GET …/{id}`, `GET …/{id}/versions[/{v}]`.
//! The list of agents is in `agents`: it has those with sessions too. Many at once: `list`.

mod list;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use domain::action::hash::hex;
use domain::definition::plan::Item;
use domain::definition::words;
use domain::ports::{DefinitionQuery, Scope};
use domain::time::rfc3339;
use schemas::api::{DefinitionChange, DefinitionPage, DefinitionView, DefinitionWritten, VersionPage, VersionView};
use schemas::definition::DefinitionKind;
use schemas::id::DefinitionId;
use schemas::limits::{PAGE_BYTES_MAX, PAGE_DEFAULT};
use schemas::problem::Code;

use super::sessions::PAGE_PARAMS;
use crate::answer::{Answer, Refused};
use crate::caller::Caller;
use crate::define::{Wanted, define};
use crate::extract::{JsonBody, PathId, PathVersion};
use crate::gateway::Gateway;
use crate::params::Params;
use crate::routes::Route;
use crate::views::definition_view;

/// The routes of one kind (frozen, DESIGN 8).
struct Paths {
    kind: DefinitionKind,
    /// Schema of the record.
    record: &'static str,
    all: &'static str,
    one: &'static str,
    versions: &'static str,
    version: &'static str,
}

macro_rules! paths {
    ($kind:ident, $plural:literal, $id:literal) => {
        Paths {
            kind: DefinitionKind::$kind,
            record: stringify!($kind),
            all: concat!("/api/", $plural),
            one: concat!("/api/", $plural, "/{", $id, "}"),
            versions: concat!("/api/", $plural, "/{", $id, "}/versions"),
            version: concat!("/api/", $plural, "/{", $id, "}/versions/{v}"),
        }
    };
}

const PATHS: [Paths; 9] = [
    paths!(Library, "libraries", "id"),
    paths!(Project, "projects", "id"),
    paths!(ModelProfile, "model-profiles", "id"),
    paths!(Persona, "personas", "id"),
    paths!(Tool, "tools", "id"),
    paths!(Agent, "agents", "agent_id"),
    paths!(Task, "tasks", "id"),
    paths!(ActionDef, "action-defs", "id"),
    paths!(PromptSpec, "prompt-specs", "id"),
];

pub fn routes() -> Vec<Route> {
    PATHS.iter().flat_map(of_kind).chain(list::routes()).collect()
}

fn of_kind(paths: &Paths) -> Vec<Route> {
    let kind = paths.kind;
    let write = move |gateway: State<Gateway>, caller: Caller, body: JsonBody| write(kind, gateway.0, caller, body);
    let list = move |gateway: State<Gateway>, caller: Caller, params: Params| list(kind, gateway.0, caller, params);
    let one =
        move |gateway: State<Gateway>, caller: Caller, id: PathId<DefinitionId>| one(kind, gateway.0, caller, id.0);
    let versions = move |gateway: State<Gateway>, caller: Caller, id: PathId<DefinitionId>, params: Params| {
        versions(kind, gateway.0, caller, id.0, params)
    };
    let version =
        move |gateway: State<Gateway>, caller: Caller, place: PathVersion| version(kind, gateway.0, caller, place);
    let mut routes = vec![
        Route::post(paths.all, post(write))
            .scope(Scope::Operate)
            .summary("Write a definition. 201: it is new, or has a new version; 200: nothing new came to be.")
            .body(paths.record)
            .answers(201, "DefinitionWritten")
            .also_answers(200)
            .refuses(&[Code::InvalidRequest, Code::InvalidJson, Code::TooLarge, Code::DefinitionInvalid]),
        Route::get(paths.one, get(one))
            .summary("The newest content of a definition.")
            .answers(200, "DefinitionView")
            .refuses(&[Code::InvalidRequest, Code::DefinitionNotFound]),
        Route::get(paths.versions, get(versions))
            .summary("The versions that are kept, newest first; of kinds that are updated in place, the newest alone.")
            .query(PAGE_PARAMS)
            .answers(200, "VersionPage")
            .refuses(&[Code::InvalidRequest, Code::DefinitionNotFound]),
        Route::get(paths.version, get(version))
            .summary("The content that a version has.")
            .answers(200, "DefinitionView")
            .refuses(&[Code::InvalidRequest, Code::DefinitionNotFound]),
    ];
    if kind != DefinitionKind::Agent {
        let list = Route::get(paths.all, get(list))
            .summary("Definitions in id order. All given conditions must hold.")
            .query(&[
                ("name", "Exactly this name"),
                ("library_id", "Owned by this library"),
                ("project_id", "Owned by this project"),
            ])
            .query(PAGE_PARAMS)
            .answers(200, "DefinitionPage")
            .refuses(&[Code::InvalidRequest]);
        routes.push(list);
    }
    routes
}

async fn write(
    kind: DefinitionKind,
    gateway: Gateway,
    caller: Caller,
    body: JsonBody,
) -> Answer<(StatusCode, Json<DefinitionWritten>)> {
    let mut definition = body.required()?;
    if let Some(map) = definition.as_object_mut()
        && map.get("id").is_none_or(serde_json::Value::is_null)
    {
        map.insert("id".to_owned(), gateway.fresh_id::<DefinitionId>().as_str().into());
    }
    let wanted = vec![Wanted { place: String::new(), item: Item { kind, definition } }];
    let mut written = define(&gateway, &caller.namespace, wanted, false).await?;
    let written = written.pop().ok_or_else(|| Refused::new(Code::Internal, "Nothing was written."))?;
    let is_new = match written.change {
        DefinitionChange::Created => true,
        DefinitionChange::Updated => kind.is_versioned(),
        DefinitionChange::Unchanged => false,
    };
    tracing::info!(
        kind = kind.as_str(),
        id = %written.id,
        version = written.version,
        change = written.change.as_str(),
        by = %caller.name,
        "definition written"
    );
    Ok((if is_new { StatusCode::CREATED } else { StatusCode::OK }, Json(written)))
}

async fn list(
    kind: DefinitionKind,
    gateway: Gateway,
    caller: Caller,
    mut params: Params,
) -> Answer<Json<DefinitionPage>> {
    let query = DefinitionQuery {
        namespace: caller.namespace,
        kind,
        name: params.text("name"),
        library_id: params.parsed("library_id"),
        project_id: params.parsed("project_id"),
        after: params.parsed("cursor"),
        limit: params.limit(PAGE_DEFAULT),
        bytes: PAGE_BYTES_MAX,
    };
    params.finish()?;
    let page = gateway.definitions.definitions(&query).await?;
    let next_cursor = page.rows.last().filter(|_| page.more).map(|row| row.id.to_string());
    Ok(Json(DefinitionPage { items: page.rows.iter().map(definition_view).collect(), next_cursor }))
}

async fn one(kind: DefinitionKind, gateway: Gateway, caller: Caller, id: DefinitionId) -> Answer<Json<DefinitionView>> {
    let key = (kind, id);
    let row = gateway.definitions.definition(&caller.namespace, &key).await?;
    row.as_ref().map(definition_view).map(Json).ok_or_else(|| missing(kind, &key.1))
}

async fn versions(
    kind: DefinitionKind,
    gateway: Gateway,
    caller: Caller,
    id: DefinitionId,
    mut params: Params,
) -> Answer<Json<VersionPage>> {
    let before = params.whole("cursor", 1, u64::MAX);
    let limit = params.limit(PAGE_DEFAULT);
    params.finish()?;
    let key = (kind, id);
    let mut rows = gateway.definitions.versions(&caller.namespace, &key, before, limit + 1).await?;
    if rows.is_empty() && before.is_none() {
        return Err(missing(kind, &key.1));
    }
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next_cursor = rows.last().filter(|_| more).map(|row| row.version.to_string());
    let items = rows.iter().map(|row| VersionView {
        version: row.version,
        content_hash: hex(&row.content_hash),
        created_at: rfc3339(row.created_at_ms),
    });
    Ok(Json(VersionPage { items: items.collect(), next_cursor }))
}

async fn version(
    kind: DefinitionKind,
    gateway: Gateway,
    caller: Caller,
    PathVersion { id, version }: PathVersion,
) -> Answer<Json<DefinitionView>> {
    let key = (kind, id);
    if let Some(row) = gateway.definitions.definition_at(&caller.namespace, &key, version).await? {
        return Ok(Json(definition_view(&row)));
    }
    let known = gateway.definitions.known(&caller.namespace, std::slice::from_ref(&key)).await?;
    let Some(newest) = known.first().map(|head| head.version) else { return Err(missing(kind, &key.1)) };
    let what = words(kind);
    let kept = match kind.is_versioned() {
        true => format!("the newest is {newest}"),
        false => format!("a {what} is updated in place, and only the newest content, {newest}, is kept"),
    };
    let detail = format!("There is no version {version} of {what} {}: {kept}.", key.1);
    Err(Refused::new(Code::DefinitionNotFound, detail))
}

fn missing(kind: DefinitionKind, id: &DefinitionId) -> Refused {
    let (what, plural) = (words(kind), kind.plural());
    let detail = format!("There is no {what} {id}. GET /api/{plural} lists those there are.");
    Refused::new(Code::DefinitionNotFound, detail)
}
