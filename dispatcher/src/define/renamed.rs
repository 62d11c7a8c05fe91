//! Tools that get another name, and whoever lists them. A tool is updated in place and does not know its personas, so
//! these are looked up, where another tool has that name at all.

use std::collections::BTreeSet;

use domain::definition::plan::{self, KnownDefinitions, Renamed};
use domain::definition::{Reference, words};
use domain::failure::Failure;
use domain::ports::{DefinitionKey, DefinitionQuery, DefinitionRow};
use schemas::definition::{Agent, DefinitionKind, Persona};
use schemas::id::{DefinitionId, Namespace};
use schemas::limits::{PAGE_BYTES_MAX, PAGE_MAX};
use schemas::problem::FieldProblem;

use super::Wanted;
use crate::gateway::Gateway;

/// Pages of one kind that are looked at, which is more than anybody has.
const PAGES_MAX: usize = 100;

/// A version that somebody names, and that may be an older one.
type Pin = (DefinitionId, u64);

/// Of the tools of one model the first of a name hides the others: the new names that do so where nobody writes the
/// list anew. `referring`: what the definitions of the write refer to.
pub async fn problems(
    gateway: &Gateway,
    namespace: &Namespace,
    wanted: &[Wanted],
    known: &KnownDefinitions,
    referring: &[(usize, Vec<Reference>)],
) -> Result<Vec<(usize, FieldProblem)>, Failure> {
    let registry = Registry { gateway, namespace, written: wanted.iter().filter_map(Wanted::key).collect() };
    let mut renamed = renamed(wanted, known);
    for one in &mut renamed {
        let tools = registry.each(DefinitionKind::Tool, Some(one.name.as_str()), |row| Some(row.id)).await?;
        one.others.extend(tools);
    }
    renamed.retain(|one| !one.others.is_empty());
    if renamed.is_empty() {
        return Ok(Vec::new());
    }
    let references = referring.iter().flat_map(|(_, references)| references);
    let pins = references.filter(|reference| reference.kind == DefinitionKind::Persona);
    let pins = pins.filter_map(|reference| Some((reference.id.clone(), reference.version?))).collect();
    let lists = registry.lists(pins).await?;
    Ok(lists.iter().flat_map(|(whose, tools)| plan::hidden(&renamed, whose, tools)).collect())
}

/// The tools of a write that get another name, and those of the same write that have it then.
fn renamed(wanted: &[Wanted], known: &KnownDefinitions) -> Vec<Renamed> {
    let tools = || {
        let keys = wanted.iter().enumerate().filter_map(|(index, one)| Some((index, one.key()?, one.name())));
        keys.filter(|(_, (kind, _), _)| *kind == DefinitionKind::Tool)
    };
    let is_news = |key: &DefinitionKey, name: &str| known.get(key).is_some_and(|known| known.name != name);
    let renamed = tools().filter(|(_, key, name)| !name.is_empty() && is_news(key, name));
    let renamed = renamed.map(|(index, (_, id), name)| {
        let others = tools().filter(|(_, (_, other), given)| *given == name && *other != id);
        let others = others.map(|(_, (_, other), _)| other).collect();
        Renamed { index, id, name: name.to_owned(), others }
    });
    renamed.collect()
}

/// What a namespace has besides what is being written.
struct Registry<'g> {
    gateway: &'g Gateway,
    namespace: &'g Namespace,
    written: BTreeSet<DefinitionKey>,
}

impl Registry<'_> {
    /// Who lists tools, in words, and which: personas, those within agents, and older versions that agents name.
    async fn lists(&self, mut pins: BTreeSet<Pin>) -> Result<Vec<(String, Vec<DefinitionId>)>, Failure> {
        let persona = |row: DefinitionRow| Some((row.id, row.version, row.content.to::<Persona>().ok()?.body.tool_ids));
        let personas = self.each(DefinitionKind::Persona, None, persona).await?;
        let agents = self.each(DefinitionKind::Agent, None, |row| row.content.to::<Agent>().ok()).await?;
        let mut lists = Vec::new();
        for agent in agents {
            let pin = agent.persona_ref.and_then(|named| Some((named.persona_id, named.version?)));
            pins.extend(pin);
            if let Some(inline) = agent.persona_inline {
                lists.push((format!("agent {}", agent.id), inline.body.tool_ids));
            }
        }
        for (id, version, tools) in personas {
            pins.remove(&(id.clone(), version));
            lists.push((format!("persona {id}"), tools));
        }
        for (id, version) in pins {
            let key = (DefinitionKind::Persona, id);
            // A version that this write makes is not there yet.
            let row = self.gateway.definitions.definition_at(self.namespace, &key, version).await?;
            let Some(persona) = row.and_then(|row| row.content.to::<Persona>().ok()) else { continue };
            lists.push((format!("version {version} of {} {}", words(key.0), key.1), persona.body.tool_ids));
        }
        Ok(lists)
    }

    /// What is read of each definition of a kind, of one name if it is given.
    async fn each<T>(
        &self,
        kind: DefinitionKind,
        name: Option<&str>,
        read: impl Fn(DefinitionRow) -> Option<T>,
    ) -> Result<Vec<T>, Failure> {
        let (mut found, mut after) = (Vec::new(), None);
        for _ in 0..PAGES_MAX {
            let query = DefinitionQuery {
                namespace: self.namespace.clone(),
                kind,
                name: name.map(str::to_owned),
                library_id: None,
                project_id: None,
                after,
                limit: PAGE_MAX,
                bytes: PAGE_BYTES_MAX,
            };
            let page = self.gateway.definitions.definitions(&query).await?;
            after = page.rows.last().map(|row| row.id.clone());
            let rows = page.rows.into_iter().filter(|row| !self.written.contains(&(row.kind, row.id.clone())));
            found.extend(rows.filter_map(&read));
            if !page.more {
                break;
            }
        }
        Ok(found)
    }
}
