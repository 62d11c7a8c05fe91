//! What an embedded fleet has from its first start on: an agent to talk to.

use anyhow::{Error, Result, bail};
use domain::definition::plan::document;
use domain::definition::{Checked, check};
use domain::ports::{DefinitionQuery, Definitions};
use schemas::definition::DefinitionKind;
use schemas::id::{DefinitionId, Namespace};
use schemas::limits::PAGE_BYTES_MAX;
use serde_json::Value;

use crate::cmd::apply::yaml;

/// The agent, by its id.
pub const GUIDE: &str = "guide";
const DEFINITIONS: &str = include_str!("welcome/guide.yaml");

/// Writes the guide into a registry that has no definition at all. Nothing is ever deleted from one, so this
/// happens once, and never over what somebody wrote or changed. A fleet without a guide is whole: that it
/// could not be written is for the log.
pub async fn install(registry: &dyn Definitions) {
    match install_once(registry).await {
        Ok(true) => tracing::info!(agent = GUIDE, "a first agent was defined"),
        Ok(false) => {}
        Err(error) => tracing::warn!(error = %format!("{error:#}"), "the first agent was not defined"),
    }
}

async fn install_once(registry: &dyn Definitions) -> Result<bool> {
    let namespace = Namespace::default_ns();
    for kind in DefinitionKind::ALL {
        let query = DefinitionQuery {
            namespace: namespace.clone(),
            kind,
            name: None,
            library_id: None,
            project_id: None,
            after: None,
            limit: 1,
            bytes: PAGE_BYTES_MAX,
        };
        if !registry.definitions(&query).await?.rows.is_empty() {
            return Ok(false);
        }
    }
    let new: Vec<_> = definitions()?.into_iter().map(|checked| checked.new).collect();
    registry.define(&namespace, &new).await?;
    Ok(true)
}

/// Whether the guide is there to talk to: older installations have definitions of their own.
pub async fn has_guide(registry: &dyn Definitions) -> bool {
    let Ok(id) = DefinitionId::parse(GUIDE) else { return false };
    let known = registry.known(&Namespace::default_ns(), &[(DefinitionKind::Agent, id)]).await;
    known.is_ok_and(|heads| !heads.is_empty())
}

fn definitions() -> Result<Vec<Checked>> {
    yaml::read(DEFINITIONS)?.into_iter().map(definition).collect()
}

fn definition(value: Value) -> Result<Checked> {
    let item = document(value).map_err(Error::msg)?;
    match check(item.kind, &item.definition) {
        Ok(checked) => Ok(checked),
        Err(problems) => {
            let lines: Vec<String> = problems.iter().map(|one| format!("{}: {}", one.field, one.message)).collect();
            bail!("{}: {}", item.label(), lines.join("; "))
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::definition::plan::{KnownDefinitions, unmet};

    use super::*;

    #[test]
    fn the_first_definitions_are_sound_and_lack_nothing() {
        let all = definitions().expect("they are sound");
        let missing = unmet(&all, &KnownDefinitions::new());
        assert!(missing.is_empty(), "{missing:?}");
        for kind in [DefinitionKind::Agent, DefinitionKind::Persona] {
            let ids: Vec<&str> = all.iter().filter(|one| one.new.kind == kind).map(|one| one.new.id.as_str()).collect();
            assert_eq!(ids, [GUIDE], "{kind:?}");
        }
        let model = all.iter().find(|one| one.new.kind == DefinitionKind::ModelProfile).expect("a model profile");
        assert_eq!(model.value["provider"], "default", "whatever the fleet has");
    }
}
