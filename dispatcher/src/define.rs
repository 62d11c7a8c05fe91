//! How definitions get in: each checked whole, what they refer to looked up, then all written in
//! one transaction, or only planned.

mod renamed;

use std::collections::{BTreeMap, BTreeSet};

use domain::action::hash::hex;
use domain::definition::plan::{self, Item, Known, KnownDefinitions};
use domain::definition::{Checked, Reference, check, diff, references, shown};
use domain::failure::{Certainty, Failure};
use domain::ports::{Defined, DefinitionKey};
use schemas::api::{DefinitionChange, DefinitionWritten, FieldChange};
use schemas::definition::DefinitionKind;
use schemas::id::{DefinitionId, Namespace};
use schemas::json::Json;
use schemas::problem::{Code, FieldProblem, Problem};

use crate::answer::{Answer, Refused};
use crate::gateway::Gateway;

/// A list of nonsense is not answered with a list of its size.
const PROBLEMS_MAX: usize = 200;

/// A definition on its way in, and the path under which its problems are told.
pub struct Wanted {
    pub place: String,
    pub item: Item,
}

impl Wanted {
    fn problem(&self, problem: FieldProblem) -> FieldProblem {
        let field = match (self.place.is_empty(), problem.field.is_empty()) {
            (true, true) => "body".to_owned(),
            (true, false) => problem.field,
            (false, true) => self.place.clone(),
            (false, false) => format!("{}.{}", self.place, problem.field),
        };
        FieldProblem::new(field, problem.message)
    }

    /// What it wants to be known by, whatever else is wrong with it.
    fn key(&self) -> Option<DefinitionKey> {
        let id = self.item.definition.get("id")?.as_str()?;
        Some((self.item.kind, DefinitionId::parse(id).ok()?))
    }

    fn name(&self) -> &str {
        self.item.definition["name"].as_str().unwrap_or_default()
    }
}

/// Writes definitions, all or none; with `dry_run` it only says what a write would do.
///
/// # Errors
/// Everything that is wrong with any of them, or why they could not be written.
pub async fn define(
    gateway: &Gateway,
    namespace: &Namespace,
    wanted: Vec<Wanted>,
    dry_run: bool,
) -> Answer<Vec<DefinitionWritten>> {
    let Read { items, referring, mut problems } = check_all(&wanted);
    let known = known(gateway, namespace, &wanted, &referring).await?;
    // A reference to one that is refused is no second problem.
    let mut found = known.clone();
    for (key, one) in wanted.iter().filter_map(|one| Some((one.key()?, one))) {
        let library_id = one.item.definition["library_id"].as_str().and_then(|text| DefinitionId::parse(text).ok());
        let name = one.name().to_owned();
        let refused = Known { name, version: u64::MAX - 1, content_hash: [0; 32], library_id };
        if !items.iter().any(|item| (item.new.kind, &item.new.id) == (key.0, &key.1)) {
            found.insert(key, refused);
        }
    }
    let refer = || referring.iter().map(|(index, all)| (*index, all.as_slice()));
    let unmet = plan::unmet_of(refer(), &items, &found);
    let hidden = renamed::problems(gateway, namespace, &wanted, &known, &referring).await?;
    let unmet = unmet.into_iter().chain(plan::namesakes(refer(), &names(&wanted, &known))).chain(hidden);
    let unmet: Vec<FieldProblem> = unmet.map(|(index, problem)| wanted[index].problem(problem)).collect();
    // Of a field that is wrong by itself that is enough; what stands there may be a key.
    let told: BTreeSet<String> = problems.iter().map(|problem| problem.field.clone()).collect();
    problems.extend(unmet.into_iter().filter(|problem| !told.contains(&problem.field)));
    problems.truncate(PROBLEMS_MAX);
    if !problems.is_empty() {
        return Err(Problem::fields(Code::DefinitionInvalid, problems).into());
    }
    let defined = match dry_run {
        true => items.iter().map(|item| planned(item, &known)).collect(),
        false => {
            let new: Vec<_> = items.iter().map(|item| item.new.clone()).collect();
            gateway.definitions.define(namespace, &new).await.map_err(refused)?
        }
    };
    let mut written = Vec::with_capacity(items.len());
    for (item, defined) in items.iter().zip(defined) {
        let fields = match dry_run && defined.change == DefinitionChange::Updated {
            true => changed_fields(gateway, namespace, item).await?,
            false => Vec::new(),
        };
        written.push(DefinitionWritten {
            kind: item.new.kind,
            id: item.new.id.clone(),
            version: defined.version,
            content_hash: hex(&item.new.content_hash),
            change: defined.change,
            fields,
        });
    }
    Ok(written)
}

/// A list as it was read.
#[derive(Default)]
struct Read {
    /// The sound ones.
    items: Vec<Checked>,
    /// What each refers to, by its place in the list; of those that are not sound, as far as they can be read.
    referring: Vec<(usize, Vec<Reference>)>,
    problems: Vec<FieldProblem>,
}

fn check_all(wanted: &[Wanted]) -> Read {
    let (mut read, mut seen) = (Read::default(), BTreeSet::new());
    for (index, one) in wanted.iter().enumerate() {
        let (kind, definition) = (one.item.kind, &one.item.definition);
        match check(kind, definition) {
            Ok(item) => {
                read.referring.push((index, item.references.clone()));
                if seen.insert((kind, item.new.id.clone())) {
                    read.items.push(item);
                } else {
                    let what = format!("{} is in the list before; name it once", one.item.label());
                    read.problems.push(one.problem(FieldProblem::new("id", what)));
                }
            }
            Err(wrong) => {
                read.referring.push((index, references(kind, definition)));
                read.problems.extend(wrong.into_iter().map(|problem| one.problem(problem)));
            }
        }
    }
    read
}

/// What the store has of these definitions and of what they refer to.
async fn known(
    gateway: &Gateway,
    namespace: &Namespace,
    wanted: &[Wanted],
    referring: &[(usize, Vec<Reference>)],
) -> Answer<KnownDefinitions> {
    let references = referring.iter().flat_map(|(_, references)| references);
    let keys: BTreeSet<DefinitionKey> = wanted
        .iter()
        .filter_map(Wanted::key)
        .chain(references.map(|reference| (reference.kind, reference.id.clone())))
        .collect();
    let keys: Vec<DefinitionKey> = keys.into_iter().collect();
    let heads = gateway.definitions.known(namespace, &keys).await?;
    let known = heads.into_iter().map(|head| {
        let (key, name) = ((head.kind, head.id), head.name);
        (key, Known { name, version: head.version, content_hash: head.content_hash, library_id: head.library_id })
    });
    Ok(known.collect())
}

/// What models call the tools that are referred to, once this is written.
fn names(wanted: &[Wanted], known: &KnownDefinitions) -> BTreeMap<DefinitionId, String> {
    let stored = known.iter().map(|((kind, id), known)| ((*kind, id.clone()), known.name.as_str()));
    let new = wanted.iter().filter_map(|one| Some((one.key()?, one.name())));
    let tools = stored.chain(new).filter(|((kind, _), name)| *kind == DefinitionKind::Tool && !name.is_empty());
    tools.map(|((_, id), name)| (id, name.to_owned())).collect()
}

fn planned(item: &Checked, known: &KnownDefinitions) -> Defined {
    let known = known.get(&(item.new.kind, item.new.id.clone()));
    let (change, version) =
        plan::change(known.map(|known| (known.version, &known.content_hash)), &item.new.content_hash);
    Defined { change, version }
}

async fn changed_fields(gateway: &Gateway, namespace: &Namespace, item: &Checked) -> Answer<Vec<FieldChange>> {
    let key = (item.new.kind, item.new.id.clone());
    let Some(before) = gateway.definitions.definition(namespace, &key).await? else { return Ok(Vec::new()) };
    let changes = diff::diff(&shown(before.kind, &before.content).to_value(), &item.value);
    let change = |change: diff::Change| FieldChange {
        field: change.field,
        from: change.from.as_ref().map(Json::of),
        to: change.to.as_ref().map(Json::of),
    };
    Ok(changes.into_iter().map(change).collect())
}

/// A lost answer is no loss: the same write again changes nothing.
fn refused(failure: Failure) -> Refused {
    match failure.certainty {
        Certainty::DidNotHappen => failure.into(),
        Certainty::MayHaveHappened => {
            tracing::warn!(error = %failure.message, "a write of definitions is in doubt");
            let what = failure.message.trim_end_matches('.');
            Refused::new(
                failure.code,
                format!("{what}. It may have been written: send it again, that changes nothing twice."),
            )
        }
    }
}
