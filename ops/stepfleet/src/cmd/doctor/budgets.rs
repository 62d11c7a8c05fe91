//! Budgets in money, which count by the prices of model profiles: where a profile has none, they bound nothing.

use std::collections::{BTreeMap, BTreeSet};

use domain::chat::Prices;
use domain::failure::Failure;
use domain::ports::{DefinitionQuery, DefinitionRow, Definitions};
use host::config::Config;
use providers::config::SCRIPTED;
use providers::prices_of;
use schemas::definition::{Agent, Budgets, DefinitionKind, ModelProfile, Persona, PersonaBody, PersonaRef};
use schemas::id::{DefinitionId, Namespace};
use schemas::limits::{PAGE_BYTES_MAX, PAGE_MAX};

use super::report::{Check, Report};
use crate::fleet::Store;

/// The provider of profiles that mean whatever the fleet's own default is.
const DEFAULT: &str = "default";
/// Budgets that are named at most.
const SHOWN_MAX: usize = 3;
/// Pages of one kind and namespace that are looked at.
const PAGES_MAX: usize = 20;

/// `budgets`: what namespaces may use, as this process is configured.
pub async fn look(store: &Store, config: &Config, report: &mut Report) {
    report.note("budgets", uncounted(store, config).await.map(|found| verdict(&found)));
}

/// The budgets that count nothing, each in words.
async fn uncounted(store: &Store, config: &Config) -> Result<Vec<String>, Failure> {
    let budgets = &config.budgets;
    let mut namespaces: BTreeSet<Namespace> = budgets.keys().cloned().collect();
    namespaces.insert(Namespace::default_ns());
    // Nobody without a token has definitions.
    namespaces.extend(store.tokens.all().await?.into_iter().map(|token| token.namespace));
    let mut found = Vec::new();
    for namespace in &namespaces {
        let registry = Registry { definitions: store.definitions.as_ref(), namespace };
        let profiles = registry.profiles().await?;
        let free = profiles.iter().filter(|(_, profile)| prices(config, profile) == Prices::default());
        let free: BTreeSet<&DefinitionId> = free.map(|(id, _)| id).collect();
        if budgets.get(namespace).is_some_and(|budget| budget.max_cost.is_some() || is_money(&budget.each)) {
            let whose = format!("namespace {namespace}");
            found.extend(free.iter().map(|profile| line(&whose, profile.as_str())));
            found.extend(reached_without_prices(config, &profiles).map(|name| line(&whose, name)));
        }
        for (agent, profile) in registry.agents_with_money().await?.into_iter().filter(|(_, id)| free.contains(id)) {
            let place = if *namespace == Namespace::default_ns() { String::new() } else { format!(" of {namespace}") };
            found.push(line(&format!("agent {agent}{place}"), profile.as_str()));
        }
    }
    Ok(found)
}

/// The model profiles that a namespace defines.
type Profiles = BTreeMap<DefinitionId, ModelProfile>;

/// The definitions of one namespace.
struct Registry<'d> {
    definitions: &'d dyn Definitions,
    namespace: &'d Namespace,
}

impl Registry<'_> {
    async fn profiles(&self) -> Result<Profiles, Failure> {
        let rows = self.all(DefinitionKind::ModelProfile).await?;
        let profiles = rows.into_iter().filter_map(|row| row.content.to::<ModelProfile>().ok());
        Ok(profiles.map(|profile| (profile.id.clone(), profile)).collect())
    }

    /// Those whose personas bound what they cost, with each of their model profiles.
    async fn agents_with_money(&self) -> Result<Vec<(DefinitionId, DefinitionId)>, Failure> {
        let mut found = Vec::new();
        // Many agents may have one persona.
        let mut known: BTreeMap<(DefinitionId, Option<u64>), BTreeSet<DefinitionId>> = BTreeMap::new();
        for row in self.all(DefinitionKind::Agent).await? {
            let Ok(agent) = row.content.to::<Agent>() else { continue };
            let profiles = match (&agent.persona_inline, &agent.persona_ref) {
                (Some(inline), _) => bounded(&inline.body),
                (None, Some(reference)) => {
                    let key = (reference.persona_id.clone(), reference.version);
                    match known.get(&key) {
                        Some(profiles) => profiles.clone(),
                        None => {
                            let persona = self.persona(reference).await?;
                            let profiles = persona.map(|persona| bounded(&persona.body)).unwrap_or_default();
                            known.entry(key).or_insert(profiles).clone()
                        }
                    }
                }
                (None, None) => BTreeSet::new(),
            };
            found.extend(profiles.into_iter().map(|profile| (agent.id.clone(), profile)));
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

/// The model profiles of a persona that bounds what it costs: its own, and that of its summaries.
fn bounded(persona: &PersonaBody) -> BTreeSet<DefinitionId> {
    if !persona.constraints.budgets.as_ref().is_some_and(is_money) {
        return BTreeSet::new();
    }
    let compaction = persona.compaction.as_ref().filter(|settings| settings.enabled);
    let summariser = compaction.and_then(|settings| settings.model_profile_id.clone());
    summariser.into_iter().chain([persona.model_profile_id.clone()]).collect()
}

fn is_money(budgets: &Budgets) -> bool {
    budgets.max_cost_per_turn.is_some() || budgets.max_cost_per_session.is_some()
}

/// What calls by a profile are counted at, where the fleet is configured as this process is.
fn prices(config: &Config, profile: &ModelProfile) -> Prices {
    let provider = profile.provider.as_str();
    // A script answers for every profile, and a default model that is named alone has no prices.
    let is_unpriced = config.script.is_some() || (provider == DEFAULT && config.model.is_some());
    let configured = config.models.get(provider).filter(|known| !is_unpriced && known.provider != SCRIPTED);
    prices_of(&profile.clone().into(), configured.map(|known| (known.model.as_str(), known.prices)))
}

/// Profiles of the configuration that have no prices, and the fleet's own default if it has none.
fn configured_without_prices(config: &Config) -> Vec<&str> {
    let known = config.models.get(DEFAULT).filter(|_| config.script.is_none() && config.model.is_none());
    let default = known.is_none_or(|known| known.prices == Prices::default()).then_some(DEFAULT);
    let others = config.models.iter().filter(|(name, known)| *name != DEFAULT && known.prices == Prices::default());
    default.into_iter().chain(others.map(|(name, _)| name.as_str())).collect()
}

/// Those of them that steps without turns may name, or reach by naming none: a defined profile goes before a configured
/// one of its name.
fn reached_without_prices<'c>(config: &'c Config, defined: &Profiles) -> impl Iterator<Item = &'c str> {
    let is_defined = |name: &str| defined.keys().any(|id| id.as_str() == name);
    configured_without_prices(config).into_iter().filter(move |name| *name == DEFAULT || !is_defined(name))
}

fn line(whose: &str, profile: &str) -> String {
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
    use host::config::Layers;
    use serde_json::{Value, json};

    use super::*;

    fn profile((provider, model): (&str, &str), more: &[(&str, f64)]) -> ModelProfile {
        let mut profile = json!({"id": "m", "name": "M", "provider": provider, "model_id": model});
        for (name, price) in more {
            profile[*name] = json!(price);
        }
        serde_json::from_value(profile).unwrap()
    }

    fn persona(budgets: &Value, compaction: &Value) -> PersonaBody {
        let constraints = json!({ "budgets": budgets });
        let persona = json!({"system_prompt": "x", "model_profile_id": "m", "constraints": constraints,
            "compaction": compaction});
        serde_json::from_value(persona).unwrap()
    }

    fn config(file: &str, model: Option<&str>) -> Config {
        let env = model.map(|model| ("STEPFLEET_MODEL".to_owned(), model.to_owned())).into_iter().collect();
        let file = Some(("stepfleet.toml".into(), file.to_owned()));
        Config::load(&Layers { file, env, ..Layers::default() }).unwrap()
    }

    #[test]
    fn one_price_is_enough_to_count_and_none_is_not() {
        let config = config("", None);
        let has_prices = |more| prices(&config, &profile(("scripted", "m"), more)) != Prices::default();
        assert!(!has_prices(&[]));
        assert!(!has_prices(&[("cost_per_1k_input_tokens", 0.0)]));
        assert!(has_prices(&[("cost_per_1k_input_tokens", 0.001)]));
        assert!(has_prices(&[("cost_per_1k_output_tokens", 0.001)]));
    }

    #[test]
    fn prices_of_the_configured_profile_count_for_its_model() {
        let of = |name: &str| {
            format!(
                "[models.{name}]\nprovider = \"openai\"\nmodel = \"m-1\"\n\
                 prices = {{ cost_per_1k_input_tokens = 1.0, cost_per_1k_output_tokens = 2.0 }}\n"
            )
        };
        let file = of("default") + &of("local");
        for (named, model, place) in [
            (true, None, ("default", "default")),
            (true, None, ("default", "m-1")),
            (true, None, ("local", "m-1")),
            (false, None, ("default", "m-2")),
            (false, None, ("local", "default")),
            (false, None, ("openai", "m-1")),
            (false, Some("openai/m-1"), ("default", "default")),
            (true, Some("openai/m-1"), ("local", "m-1")),
        ] {
            let found = prices(&config(&file, model), &profile(place, &[]));
            assert_eq!(found != Prices::default(), named, "{place:?} with {model:?}: {found:?}");
        }
    }

    #[test]
    fn a_default_and_profiles_of_the_configuration_are_named_if_they_have_no_prices() {
        let of =
            |name: &str, prices: &str| format!("[models.{name}]\nprovider = \"openai\"\nmodel = \"m-1\"\n{prices}\n");
        let priced = "prices = { cost_per_1k_input_tokens = 1.0 }";
        for (file, model, names) in [
            (String::new(), None, vec!["default"]),
            (of("default", priced), None, vec![]),
            (of("default", priced), Some("openai/m-2"), vec!["default"]),
            (of("default", priced) + &of("local", ""), None, vec!["local"]),
            (of("local", priced), None, vec!["default"]),
        ] {
            let config = config(&file, model);
            let reached = |defined| reached_without_prices(&config, &defined).collect::<Vec<_>>();
            assert_eq!(reached(Profiles::new()), names, "{file}");
            let defined = ["default", "local"].map(|id| {
                let profile = ModelProfile { id: DefinitionId::parse(id).unwrap(), ..profile(("p", "m"), &[]) };
                (profile.id.clone(), profile)
            });
            let unnamed: Vec<&str> = names.into_iter().filter(|name| *name == DEFAULT).collect();
            assert_eq!(reached(defined.into()), unnamed, "those that are defined are looked at themselves: {file}");
        }
    }

    #[test]
    fn only_who_bounds_money_needs_prices() {
        let found = |budgets: &Value, compaction: &Value| -> Vec<String> {
            bounded(&persona(budgets, compaction)).iter().map(ToString::to_string).collect()
        };
        for name in ["max_cost_per_turn", "max_cost_per_session"] {
            let budgets = json!({ name: 1.0 });
            assert_eq!(found(&budgets, &json!(null)), ["m"], "{name}");
            assert_eq!(found(&budgets, &json!({"model_profile_id": "m"})), ["m"], "{name}");
            assert_eq!(found(&budgets, &json!({"model_profile_id": "small"})), ["m", "small"], "{name}");
            assert_eq!(found(&budgets, &json!({"model_profile_id": "small", "enabled": false})), ["m"], "{name}");
        }
        for other in [json!(null), json!({}), json!({"max_tokens_per_turn": 1, "max_moves_per_session": 1})] {
            assert!(found(&other, &json!({"model_profile_id": "small"})).is_empty(), "{other}");
        }
    }

    #[test]
    fn budgets_that_count_nothing_are_a_warning_that_names_some() {
        assert!(!verdict(&[]).warning);
        let found: Vec<String> = (0..5).map(|nth| line(&format!("agent a{nth}"), "m")).collect();
        let check = verdict(&found);
        assert!(check.well && check.warning, "{check:?}");
        for part in ["agent a0 counts nothing", "model profile m, which has no prices", "agent a2", "and 2 more"] {
            assert!(check.detail.contains(part), "{part}: {check:?}");
        }
        assert!(!check.detail.contains("agent a3"), "{check:?}");
    }
}
