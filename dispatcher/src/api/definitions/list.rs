//! `POST /api/definitions`: many definitions in one write, or a look at what it would do.

use axum::Json;
use axum::extract::State;
use axum::routing::post;
use domain::action::fields::{self, Object, Problems};
use domain::definition::plan::Item;
use domain::ports::Scope;
use schemas::api::DefinitionsAnswer;
use schemas::definition::DefinitionKind;
use schemas::limits::DEFINITIONS_MAX;
use schemas::problem::Code;
use serde_json::Value;

use crate::answer::{Answer, Refused};
use crate::caller::Caller;
use crate::define::{Wanted, define};
use crate::extract::JsonBody;
use crate::gateway::Gateway;
use crate::params::Params;
use crate::routes::Route;

pub fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/definitions", post(apply))
            .scope(Scope::Operate)
            .summary("Write a list of definitions, all of them or none. They may refer to each other.")
            .query(&[("dry_run", "true: nothing is written; the answer says what would change, field by field")])
            .body("[DefinitionItem]")
            .answers(200, "DefinitionsAnswer")
            .refuses(&[Code::InvalidRequest, Code::InvalidJson, Code::TooLarge, Code::DefinitionInvalid]),
    ]
}

async fn apply(
    State(gateway): State<Gateway>,
    caller: Caller,
    mut params: Params,
    body: JsonBody,
) -> Answer<Json<DefinitionsAnswer>> {
    let dry_run =
        params.read("dry_run", |text| text.parse::<bool>().map_err(|_| fields::not_one_of(text, &["true", "false"])));
    params.finish()?;
    let wanted = read(body.required()?)?;
    let dry_run = dry_run.unwrap_or(false);
    let items = define(&gateway, &caller.namespace, wanted, dry_run).await?;
    if !dry_run {
        tracing::info!(definitions = items.len(), by = %caller.name, "definitions written");
    }
    Ok(Json(DefinitionsAnswer { dry_run, items }))
}

/// The elements of the list, each at its place.
fn read(body: Value) -> Answer<Vec<Wanted>> {
    let Value::Array(list) = body else {
        let what =
            format!("must be an array of {{\"kind\": …, \"definition\": {{…}}}}, not {}", fields::kind_of(&body));
        return Err(fields::wrong("body", what).into());
    };
    if list.is_empty() || list.len() > DEFINITIONS_MAX {
        let what = format!("has {} definitions; one write has 1 to {DEFINITIONS_MAX}", list.len());
        return Err(Refused::field("body", what));
    }
    let (mut wanted, mut problems) = (Vec::new(), Problems::default());
    for (index, mut one) in list.into_iter().enumerate() {
        let place = format!("[{index}]");
        let kind = kind(&place, &one, &mut problems);
        let definition = one.get_mut("definition").map(Value::take).unwrap_or_default();
        if let Some(kind) = kind {
            wanted.push(Wanted { place: format!("{place}.definition"), item: Item { kind, definition } });
        }
    }
    problems.into_result()?;
    Ok(wanted)
}

fn kind(place: &str, one: &Value, problems: &mut Problems) -> Option<DefinitionKind> {
    let Some(map) = one.as_object() else {
        problems.add(place, format!("must be an object with kind and definition, not {}", fields::kind_of(one)));
        return None;
    };
    let object = Object::new(place, map);
    object.refuse_unknown(&["kind", "definition"], problems);
    if !object.has("definition") {
        problems.add(object.path("definition"), "is missing; give the fields of the definition");
    }
    let names = DefinitionKind::ALL.map(DefinitionKind::as_str);
    if !object.has("kind") {
        problems.add(object.path("kind"), format!("is missing; give one of {}", names.join(", ")));
        return None;
    }
    let text = object.string("kind", problems)?;
    let kind = DefinitionKind::parse(text);
    if kind.is_none() {
        problems.add(object.path("kind"), fields::not_one_of(text, &names));
    }
    kind
}
