//! Which model a call reaches: the default, a configured profile, or a profile that is data.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::chat::{ModelProfile, ModelTarget, Parameters, Prices};

use crate::chat::{Source, Target};
use crate::config::{Choice, Endpoint, SCRIPTED, Vendor};
use crate::scripted::Scripted;

/// The provider of profiles that mean whatever the fleet's own default is, and their word for its model.
const DEFAULT: &str = "default";

#[derive(Debug)]
pub struct Targets {
    default: Target,
    profiles: BTreeMap<String, Target>,
    /// Accounts, or why they cannot be used.
    vendors: BTreeMap<Vendor, Result<Endpoint, String>>,
    scripted: Arc<Scripted>,
    /// A script of the operator answers for every profile.
    all_scripted: bool,
}

/// Nobody answers for a profile.
#[derive(Debug)]
pub struct Missing {
    pub provider: String,
    /// What is missing, and what to set.
    pub message: String,
}

impl Targets {
    pub fn new(choice: Choice, scripted: Arc<Scripted>, all_scripted: bool) -> Self {
        let target = |endpoint: Option<Endpoint>| endpoint.map_or_else(|| of_script(&scripted), of_endpoint);
        Self {
            default: target(choice.default),
            profiles: choice.profiles.into_iter().map(|(name, endpoint)| (name, target(endpoint))).collect(),
            vendors: choice.vendors,
            scripted,
            all_scripted,
        }
    }

    pub fn find(&self, target: &ModelTarget) -> Result<Target, Missing> {
        match target {
            ModelTarget::Default => Ok(self.default.clone()),
            ModelTarget::Named(name) if name == DEFAULT || self.all_scripted => Ok(self.default.clone()),
            ModelTarget::Named(name) => self.profiles.get(name).cloned().ok_or_else(|| self.unknown(name)),
            ModelTarget::Profile(profile) => self.of_profile(profile),
        }
    }

    fn of_profile(&self, profile: &ModelProfile) -> Result<Target, Missing> {
        let name = profile.provider.as_str();
        let missing = |message: String| Missing { provider: name.to_owned(), message };
        let base = if self.all_scripted || name == SCRIPTED {
            of_script(&self.scripted)
        } else if name == DEFAULT {
            self.default.clone()
        } else if let Some(known) = self.profiles.get(name) {
            known.clone()
        } else {
            match Vendor::parse(name).and_then(|vendor| self.vendors.get(&vendor)) {
                Some(Ok(endpoint)) => of_endpoint(endpoint.clone()),
                Some(Err(problem)) => return Err(missing(problem.clone())),
                None => return Err(self.unknown(name)),
            }
        };
        let prices = match &base.source {
            Source::Endpoint(endpoint) => prices_of(profile, Some((endpoint.model.as_str(), base.prices))),
            Source::Scripted(_) => prices_of(profile, None),
        };
        let source = match base.source {
            Source::Endpoint(endpoint) if !is_own_model(profile) => {
                Source::Endpoint(Arc::new(Endpoint { model: profile.model.clone(), ..endpoint.as_ref().clone() }))
            }
            as_it_is => as_it_is,
        };
        Ok(Target { source, prices, parameters: profile.parameters.over(&base.parameters) })
    }

    fn unknown(&self, name: &str) -> Missing {
        let known: Vec<&str> = self.profiles.keys().map(String::as_str).collect();
        let known =
            if known.is_empty() { "none is configured".to_owned() } else { format!("known are {}", known.join(", ")) };
        Missing {
            provider: name.to_owned(),
            message: format!("there is no model profile {name:?}; {known} (see [models.<name>] in stepfleet.toml)"),
        }
    }
}

/// What a profile that is data costs; none are known if it has no prices of its own, and none are meant for it.
/// `known`: the model and the prices of the configured profile that it names.
pub fn prices_of(profile: &ModelProfile, known: Option<(&str, Prices)>) -> Prices {
    if profile.prices != Prices::default() {
        return profile.prices;
    }
    // Prices belong to a model; those of the configuration are for the one that it names.
    let meant = known.filter(|(model, _)| is_own_model(profile) || *model == profile.model);
    meant.map(|(_, prices)| prices).unwrap_or_default()
}

/// Whether a profile means the model of the fleet's own default, whichever that is.
fn is_own_model(profile: &ModelProfile) -> bool {
    profile.provider == DEFAULT && profile.model == DEFAULT
}

fn of_script(scripted: &Arc<Scripted>) -> Target {
    Target {
        source: Source::Scripted(Arc::clone(scripted)),
        prices: Prices::default(),
        parameters: Parameters::default(),
    }
}

fn of_endpoint(endpoint: Endpoint) -> Target {
    Target {
        prices: endpoint.prices,
        parameters: endpoint.parameters.clone(),
        source: Source::Endpoint(Arc::new(endpoint)),
    }
}
