//! Budgets in money, which count by the prices of model profiles: where a profile has none, they bound nothing.

use std::collections::{BTreeMap, BTreeSet};

use domain::failure::Failure;
use domain::ports::{DefinitionQuery, DefinitionRow, Definitions};
use schemas::definition::{
    Agent, Budgets, DefinitionKind, ModelProfile, NamespaceBudget, Persona, PersonaBody, PersonaRef,
};
use schemas::id::{DefinitionId, Namespace};
use schemas::limits::{PAGE_BYTES_MAX, PAGE_MAX};

use super::report::{Check, Report};
use crate::fleet::Store;

/// Budgets that are named at most.
const SHOWN_MAX: usize = 3;
/// Pages of one kind and namespace that are looked at.
const PAGES_MAX: usize = 20;

/// `budgets`: what namespaces may use, as this process is configured.
pub async fn look(store: &Store, budgets: &BTreeMap<Namespace, NamespaceBudget>, report: &mut Report) {
    report.note("budgets", uncounted(store, budgets).await.map(|found| verdict(&found)));
}

/// The budgets that count nothing, each in words.
async fn uncounted(store: &Store, budgets: &BTreeMap<Namespace, NamespaceBudget>) -> Result<Vec<String>, Failure> {
    let mut namespaces: BTreeSet<Namespace> = budgets.keys().cloned().collect();
    namespaces.insert(Namespace::default_ns());
    // Nobody without a token has definitions.
    namespaces.extend(store.tokens.all().await?.into_iter().map(|token| token.namespace));
    let mut found = Vec::new();
    for namespace in &namespaces {
        let registry = Registry { definitions: store.definitions.as_ref(), namespace };
        let free = registry.profiles_without_prices().await?;
        if free.is_empty() {
            continue;
        }
        if budgets.get(namespace).is_some_and(|budget| budget.max_cost.is_some() || is_money(&budget.each)) {
            found.extend(free.iter().map(|profile| line(&format!("namespace {namespace}"), profile)));
        }
        for (agent, profile) in registry.agents_with_money().await?.into_iter().filter(|(_, id)| free.contains(id)) {
            let place = if *namespace == Namespace::default_ns() { String::new() } else { format!(" of {namespace}") };
            found.push(line(&format!("agent {agent}{place}"), &profile));
        }
    }
    Ok(found)
}

/// The definitions of one namespace.
struct Registry<'d> {
    definitions: &'d dyn Definitions,
    namespace: &'d Namespace,
}

impl Registry<'_> {
    async fn profiles_without_prices(&self) -> Result<BTreeSet<DefinitionId>, Failure> {
        let rows = self.all(DefinitionKind::ModelProfile).await?;
        let profiles = rows.into_iter().filter_map(|row| row.content.to::<ModelProfile>().ok());
        Ok(profiles.filter(|profile| !has_prices(profile)).map(|profile| profile.id).collect())
    }

    /// Those whose personas bound what they cost, each with its model profile.
    async fn agents_with_money(&self) -> Result<Vec<(DefinitionId, DefinitionId)>, Failure> {
        let mut found = Vec::new();
        // Many agents may have one persona.
        let mut known: BTreeMap<(DefinitionId, Option<u64>), Option<DefinitionId>> = BTreeMap::new();
        for row in self.all(DefinitionKind::Agent).await? {
            let Ok(agent) = row.content.to::<Agent>() else { continue };
            let profile = match (&agent.persona_inline, &agent.persona_ref) {
                (Some(inline), _) => bounded(&inline.body),
                (None, Some(reference)) => {
                    let key = (reference.persona_id.clone(), reference.version);
                    match known.get(&key) {
                        Some(profile) => profile.clone(),
                        None => {
                            let profile = self.persona(reference).await?.and_then(|persona| bounded(&persona.body));
                            known.entry(key).or_insert(profile).clone()
                        }
                    }
                }
                (None, None) => None,
            };
            found.extend(profile.map(|profile| (agent.id, profile)));
        }
        Ok(found)
    }

    async fn persona(&self, reference: &PersonaRef) -> Result<Option<Persona>, Failure> {
        let key = (DefinitionKind::Persona, reference.persona_id.clone());
        let row = match reference.version {
            Some(version) => self.definitions.definition_at(self.namespace, &key, version).await?,
            None => self.definitions.definition(self.namespace, &key).await?,
        };
        Ok(row.and_then(|row| row.content.to::<Persona>().ok()))
    }

    /// All of a kind, up to a bound that nobody meets.
    async fn all(&self, kind: DefinitionKind) -> Result<Vec<DefinitionRow>, Failure> {
        let mut rows: Vec<DefinitionRow> = Vec::new();
        for _ in 0..PAGES_MAX {
            let query = DefinitionQuery {
                namespace: self.namespace.clone(),
                kind,
                name: None,
                library_id: None,
                project_id: None,
                after: rows.last().map(|row| row.id.clone()),
                limit: PAGE_MAX,
                bytes: PAGE_BYTES_MAX,
            };
            let page = self.definitions.definitions(&query).await?;
            rows.extend(page.rows);
            if !page.more {
                break;
            }
        }
        Ok(rows)
    }
}

/// The model profile of a persona that bounds what it costs.
fn bounded(persona: &PersonaBody) -> Option<DefinitionId> {
    let is_bounded = persona.constraints.budgets.as_ref().is_some_and(is_money);
    is_bounded.then(|| persona.model_profile_id.clone())
}

fn is_money(budgets: &Budgets) -> bool {
    budgets.max_cost_per_turn.is_some() || budgets.max_cost_per_session.is_some()
}

fn has_prices(profile: &ModelProfile) -> bool {
    profile.cost_per_1k_input_tokens > 0.0 || profile.cost_per_1k_output_tokens > 0.0
}

fn line(whose: &str, profile: &DefinitionId) -> String {
    format!("the budget in money of {whose} counts nothing of model profile {profile}, which has no prices")
}

fn verdict(found: &[String]) -> Check {
    if found.is_empty() {
        return Check::new("budgets", true, "none in money that meets a model profile without prices");
    }
    let shown = found[..found.len().min(SHOWN_MAX)].join("; ");
    let more = match found.len().saturating_sub(SHOWN_MAX) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    Check::warning("budgets", format!("{shown}{more}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn profile(more: &[(&str, f64)]) -> ModelProfile {
        let mut profile = json!({"id": "m", "name": "M", "provider": "scripted", "model_id": "m"});
        for (name, price) in more {
            profile[*name] = json!(price);
        }
        serde_json::from_value(profile).unwrap()
    }

    fn persona(budgets: &Value) -> PersonaBody {
        let constraints = json!({ "budgets": budgets });
        let persona = json!({"system_prompt": "x", "model_profile_id": "m", "constraints": constraints});
        serde_json::from_value(persona).unwrap()
    }

    #[test]
    fn one_price_is_enough_to_count_and_none_is_not() {
        assert!(!has_prices(&profile(&[])));
        assert!(!has_prices(&profile(&[("cost_per_1k_input_tokens", 0.0)])));
        assert!(has_prices(&profile(&[("cost_per_1k_input_tokens", 0.001)])));
        assert!(has_prices(&profile(&[("cost_per_1k_output_tokens", 0.001)])));
    }

    #[test]
    fn only_who_bounds_money_needs_prices() {
        for name in ["max_cost_per_turn", "max_cost_per_session"] {
            let found = bounded(&persona(&json!({ name: 1.0 })));
            assert_eq!(found.as_ref().map(DefinitionId::as_str), Some("m"), "{name}");
        }
        for other in [json!(null), json!({}), json!({"max_tokens_per_turn": 1, "max_moves_per_session": 1})] {
            assert_eq!(bounded(&persona(&other)), None, "{other}");
        }
    }

    #[test]
    fn budgets_that_count_nothing_are_a_warning_that_names_some() {
        assert!(!verdict(&[]).warning);
        let id = DefinitionId::parse("m").unwrap();
        let found: Vec<String> = (0..5).map(|nth| line(&format!("agent a{nth}"), &id)).collect();
        let check = verdict(&found);
        assert!(check.well && check.warning, "{check:?}");
        for part in ["agent a0 counts nothing", "model profile m, which has no prices", "agent a2", "and 2 more"] {
            assert!(check.detail.contains(part), "{part}: {check:?}");
        }
        assert!(!check.detail.contains("agent a3"), "{check:?}");
    }
}
