//! Which model answers: the configured one, else the first account found, else the script.

use std::collections::BTreeMap;

use domain::chat::{Parameters, Prices, extra_header};
use url::Url;

use super::{Profile, ProvidersConfig, Secret, Vendor};

/// Where a profile's requests go.
#[derive(Debug, Clone, PartialEq)]
pub struct Endpoint {
    pub vendor: Vendor,
    pub model: String,
    /// Without a slash at the end.
    pub base_url: String,
    pub(crate) host: Host,
    pub key: Option<Secret>,
    /// Where its key is set, for messages.
    pub(crate) key_setting: &'static str,
    /// What requests leave open; its bound on tokens holds for all.
    pub parameters: Parameters,
    pub prices: Prices,
}

/// Whose server it is, where that makes a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Host {
    /// The vendor's own service.
    Vendor,
    /// OpenAI's models at Microsoft's.
    Azure,
    Other,
}

/// How the names of Azure's hosts end, after that of the customer's resource.
const AZURE: [&str; 2] = [".openai.azure.com", ".cognitiveservices.azure.com"];

impl Host {
    fn of(vendor: Vendor, base_url: &str) -> Self {
        let host = |text: &str| Url::parse(text).ok()?.host_str().map(str::to_owned);
        match host(base_url) {
            Some(name) if host(vendor.base_url()).as_ref() == Some(&name) => Self::Vendor,
            Some(name) if AZURE.iter().any(|end| name.ends_with(end)) => Self::Azure,
            _ => Self::Other,
        }
    }
}

impl Endpoint {
    /// Without parameters and prices.
    pub fn new(vendor: Vendor, model: &str, base_url: &str, key: Option<Secret>) -> Self {
        Self {
            vendor,
            model: model.to_owned(),
            base_url: base_url.to_owned(),
            host: Host::of(vendor, base_url),
            key,
            key_setting: vendor.key_variable(),
            parameters: Parameters::default(),
            prices: Prices::default(),
        }
    }

    /// The vendor's own service, not another server that speaks its protocol.
    pub fn is_original(&self) -> bool {
        self.host == Host::Vendor
    }

    pub(crate) fn is_azure(&self) -> bool {
        self.host == Host::Azure
    }

    /// For the banner: never with the key.
    pub fn in_words(&self) -> String {
        let place =
            if self.base_url == self.vendor.base_url() { String::new() } else { format!(" at {}", self.base_url) };
        format!("{} ({}{place})", self.vendor.as_str(), self.model)
    }
}

/// What answers model requests.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Of sessions that name no profile. `None`, here and below: the scripted provider.
    pub default: Option<Endpoint>,
    pub profiles: BTreeMap<String, Option<Endpoint>>,
    /// Of profiles that name a vendor only: its account, or why it cannot be used.
    pub vendors: BTreeMap<Vendor, Result<Endpoint, String>>,
}

impl Vendor {
    fn base_url(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::Openai | Self::OpenaiResponses => "https://api.openai.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com",
        }
    }

    fn model(self) -> &'static str {
        match self {
            Self::Anthropic => "claude-sonnet-4-5",
            Self::Openai | Self::OpenaiResponses => "gpt-5-mini",
            Self::Gemini => "gemini-2.5-flash",
        }
    }

    fn key_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_API_KEY",
            Self::Openai | Self::OpenaiResponses => "OPENAI_API_KEY",
            Self::Gemini => "GEMINI_API_KEY",
        }
    }
}

/// The provider that answers from a file.
pub const SCRIPTED: &str = "scripted";
/// Where a profile, or the embedder, has the key of its own address.
const OWN_KEY: &str = "api_key_env or api_key_file beside base_url";
/// The profile that stands in when a session names none.
const DEFAULT_PROFILE: &str = "default";

impl ProvidersConfig {
    /// Decides. Pure.
    ///
    /// # Errors
    /// All problems, each naming the setting and the remedy.
    pub fn choose(&self) -> Result<Choice, Vec<String>> {
        let mut problems = Vec::new();
        let mut profiles = BTreeMap::new();
        if self.script.is_some() {
            return Ok(Choice { default: None, profiles, vendors: BTreeMap::new() });
        }
        problems.extend(self.key_problems.clone());
        for (name, profile) in &self.profiles {
            match self.endpoint_of_profile(name, profile) {
                Ok(endpoint) => {
                    profiles.insert(name.clone(), endpoint);
                }
                Err(problem) => problems.push(format!("models.{name}: {problem}")),
            }
        }
        let default = match &self.model {
            Some(model) => self.named(model).unwrap_or_else(|problem| {
                problems.push(format!("STEPFLEET_MODEL: {problem}"));
                None
            }),
            None => match profiles.get(DEFAULT_PROFILE) {
                Some(endpoint) => endpoint.clone(),
                None => self.first_account().unwrap_or_else(|problem| {
                    problems.push(problem);
                    None
                }),
            },
        };
        let account = |vendor| (vendor, self.endpoint(vendor, None, None, None));
        let vendors = Vendor::ALL.into_iter().map(account).collect();
        if problems.is_empty() { Ok(Choice { default, profiles, vendors }) } else { Err(problems) }
    }

    /// What answers by default, if it is a server that was set without saying which model it has.
    pub(crate) fn without_model(&self) -> Option<Endpoint> {
        if self.model.is_some() || self.profiles.contains_key(DEFAULT_PROFILE) {
            return None;
        }
        self.choose().ok()?.default.filter(|endpoint| endpoint.vendor == Vendor::Openai && !endpoint.is_original())
    }

    fn endpoint_of_profile(&self, name: &str, profile: &Profile) -> Result<Option<Endpoint>, String> {
        if profile.provider == SCRIPTED {
            return Ok(None);
        }
        let vendor = Vendor::parse(&profile.provider)
            .ok_or_else(|| format!("provider must be {} or {SCRIPTED}, not {:?}", vendors(), profile.provider))?;
        let own_key = self.profile_keys.get(name).cloned();
        if let (Some(variable), None) = (&profile.api_key_env, &own_key) {
            return Err(format!("{variable} is not set; it must hold the key"));
        }
        let mut endpoint = self.endpoint(vendor, Some(&profile.model), profile.base_url.as_deref(), own_key)?;
        profile.prices.check()?;
        for (header, value) in &profile.parameters.headers {
            extra_header(header, value).map_err(|why| format!("parameters.headers.{header} {why}"))?;
        }
        endpoint.prices = profile.prices;
        endpoint.parameters =
            Parameters { max_tokens: profile.max_tokens, ..Parameters::default() }.over(&profile.parameters);
        Ok(Some(endpoint))
    }

    fn named(&self, text: &str) -> Result<Option<Endpoint>, String> {
        let known = || format!("must be <provider>/<model> with {}, or {SCRIPTED}; not {text:?}", vendors());
        if text == SCRIPTED {
            return Ok(None);
        }
        let (vendor, model) = text.split_once('/').ok_or_else(known)?;
        let vendor = Vendor::parse(vendor).ok_or_else(known)?;
        if model.is_empty() {
            return Err(known());
        }
        self.endpoint(vendor, Some(model), None, None).map(Some)
    }

    fn first_account(&self) -> Result<Option<Endpoint>, String> {
        let ready = |vendor: &Vendor| {
            let account = self.accounts.get(vendor);
            // Local servers want no key. An address alone makes no other vendor the default: gateways that want
            // one are often set by address for other programs.
            account.is_some_and(|a| a.key.is_some() || (*vendor == Vendor::Openai && a.base_url.is_some()))
        };
        match Vendor::ALL.into_iter().find(ready) {
            Some(vendor) => self.endpoint(vendor, None, None, None).map(Some),
            None => Ok(None),
        }
    }

    pub(super) fn endpoint(
        &self,
        vendor: Vendor,
        model: Option<&str>,
        base_url: Option<&str>,
        own_key: Option<Secret>,
    ) -> Result<Endpoint, String> {
        let account = self.accounts.get(&vendor.account()).cloned().unwrap_or_default();
        let own_place = base_url;
        let base_url = own_place.or(account.base_url.as_deref()).unwrap_or(vendor.base_url()).trim_end_matches('/');
        let parsed = Url::parse(base_url).map_err(|error| format!("{base_url:?} is no base URL: {error}"))?;
        if !matches!(parsed.scheme(), "http" | "https") || !parsed.has_host() {
            return Err(format!("{base_url:?} is no base URL: it must begin with http:// or https://"));
        }
        // The account's key is for the vendor's own server and for the one set along with it: whoever names another
        // server must not get it unasked.
        let is_there = |known: &str| Url::parse(known).is_ok_and(|known| known.origin() == parsed.origin());
        let known = [Some(vendor.base_url()), account.base_url.as_deref()];
        let is_of_account = own_place.is_none() || known.into_iter().flatten().any(is_there);
        let key_setting = if is_of_account { vendor.key_variable() } else { OWN_KEY };
        if !parsed.username().is_empty() || parsed.password().is_some() || parsed.query().is_some() {
            // Addresses are shown, in the banner and in errors.
            return Err(format!("a base URL must have no user, password or query; put the key into {key_setting}"));
        }
        let key = own_key.or(account.key.filter(|_| is_of_account));
        let endpoint =
            Endpoint { key_setting, ..Endpoint::new(vendor, model.unwrap_or(vendor.model()), base_url, key) };
        // Other servers may want none.
        if endpoint.key.is_none() && endpoint.is_original() {
            return Err(format!("set {key_setting} to use {}", vendor.as_str()));
        }
        Ok(endpoint)
    }
}

/// The known ones, for messages.
fn vendors() -> String {
    Vendor::ALL.map(Vendor::as_str).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(variables: &[(&str, &str)], profiles: &[(&str, Profile)]) -> ProvidersConfig {
        let lookup = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        ProvidersConfig::from_env(lookup, profiles.iter().map(|(n, p)| ((*n).to_owned(), p.clone())).collect())
    }

    fn profile(provider: &str, base_url: Option<&str>) -> Profile {
        let base_url = base_url.map(str::to_owned);
        Profile {
            provider: provider.to_owned(),
            model: "m".to_owned(),
            base_url,
            max_tokens: Some(9),
            ..Profile::default()
        }
    }

    fn words(config: &ProvidersConfig) -> String {
        config.choose().expect("valid").default.map_or("scripted".to_owned(), |e| e.in_words())
    }

    #[test]
    fn the_first_account_is_taken_unless_one_is_named() {
        assert_eq!(words(&config(&[], &[])), "scripted");
        let both = [("GOOGLE_API_KEY", "g"), ("ANTHROPIC_API_KEY", "a")];
        assert_eq!(words(&config(&both, &[])), "anthropic (claude-sonnet-4-5)");
        let named = [("GEMINI_API_KEY", "g"), ("ANTHROPIC_API_KEY", "a"), ("STEPFLEET_MODEL", "google/x/y")];
        assert_eq!(words(&config(&named, &[])), "gemini (x/y)");
        let local = [("OPENAI_BASE_URL", "http://127.0.0.1:11434/v1/"), ("STEPFLEET_MODEL", "openai/llama")];
        assert_eq!(words(&config(&local, &[])), "openai (llama at http://127.0.0.1:11434/v1)");
        let script = [("ANTHROPIC_API_KEY", "a"), ("STEPFLEET_SCRIPT", "s.json")];
        assert_eq!(words(&config(&script, &[])), "scripted");
        let default = [("default", profile("openai", Some("http://h/v1")))];
        assert_eq!(words(&config(&[("ANTHROPIC_API_KEY", "a")], &default)), "openai (m at http://h/v1)");
    }

    #[test]
    fn only_a_server_that_is_set_without_a_model_lacks_one() {
        const LOCAL: (&str, &str) = ("OPENAI_BASE_URL", "http://127.0.0.1:11434/v1");
        let lacks = |variables: &[(&str, &str)], profiles: &[(&str, Profile)]| {
            config(variables, profiles).without_model().map(|endpoint| endpoint.base_url)
        };
        let found = Some(LOCAL.1.to_owned());
        assert_eq!(lacks(&[LOCAL], &[("x", profile("openai", Some("http://h/v1")))]), found);
        assert_eq!(lacks(&[LOCAL, ("OPENAI_API_KEY", "o"), ("GEMINI_API_KEY", "g")], &[]), found);
        assert_eq!(lacks(&[LOCAL], &[("default", profile("openai", Some("http://h/v1")))]), None);
        let of_vendor = ("OPENAI_BASE_URL", "https://api.openai.com/v1/");
        for others in [
            vec![],
            vec![("OPENAI_API_KEY", "o")],
            vec![of_vendor],
            vec![LOCAL, ("ANTHROPIC_API_KEY", "a")],
            vec![LOCAL, ("STEPFLEET_MODEL", "openai/llama")],
            vec![LOCAL, ("STEPFLEET_MODEL", "scripted")],
            vec![LOCAL, ("STEPFLEET_SCRIPT", "s.json")],
            vec![("GEMINI_API_KEY", "g"), ("GEMINI_BASE_URL", "http://h")],
            vec![("OPENAI_BASE_URL", "ftp://h")],
        ] {
            assert_eq!(lacks(&others, &[]), None, "{others:?}");
        }
    }

    #[test]
    fn all_problems_are_reported_and_name_the_remedy() {
        let headers = BTreeMap::from([("host".to_owned(), "x".to_owned())]);
        let parameters = Parameters { headers, ..Parameters::default() };
        let profiles = [
            ("a", profile("anthropic", None)),
            ("b", profile("openai", Some("ftp://h"))),
            ("s", profile("scripted", None)),
            ("x", profile("mistral", None)),
            ("c", Profile { api_key_env: Some("MY_KEY".to_owned()), ..profile("gemini", None) }),
            ("h", Profile { parameters, ..profile("openai", Some("http://h/v1")) }),
        ];
        let problems = config(&[("STEPFLEET_MODEL", "gpt")], &profiles).choose().expect_err("problems");
        let parts = [
            "models.a: set ANTHROPIC_API_KEY",
            "models.b: \"ftp://h\"",
            "models.c: MY_KEY",
            "models.h: parameters.headers.host is no header that can be set",
            "models.x: provider must be",
            "STEPFLEET_MODEL: must be",
        ];
        assert_eq!(problems.len(), parts.len());
        for (problem, part) in problems.iter().zip(parts) {
            assert!(problem.starts_with(part), "{problem}");
        }
    }

    #[test]
    fn keys_come_from_files_too_and_a_bad_file_is_a_problem() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            path.to_str().expect("utf-8").to_owned()
        };
        let good = file("good", "sk-filed\n");
        let config_of = |path: &str| config(&[("ANTHROPIC_API_KEY_FILE", path)], &[]);
        let choice = config_of(&good).choose().expect("valid");
        assert_eq!(choice.default.and_then(|e| e.key), Secret::new("sk-filed"));
        let own = Profile { api_key_file: Some(good.into()), ..profile("gemini", None) };
        let choice = config(&[], &[("own", own)]).choose().expect("valid");
        assert_eq!(choice.profiles["own"].as_ref().and_then(|e| e.key.clone()), Secret::new("sk-filed"));
        let empty = config_of(&file("empty", " \n")).choose().expect_err("problems");
        assert!(
            empty[0].starts_with("ANTHROPIC_API_KEY_FILE: ") && empty[0].ends_with("it must hold the key"),
            "{empty:?}"
        );
        let missing = config_of("/no/such/file").choose().expect_err("problems");
        assert!(missing[0].contains("/no/such/file"), "{missing:?}");
    }

    #[test]
    fn one_account_serves_both_apis_of_its_vendor() {
        let both = config(&[("OPENAI_API_KEY", "o"), ("STEPFLEET_MODEL", "openai_responses/x")], &[]);
        assert_eq!(words(&both), "openai_responses (x)");
        let choice = both.choose().expect("valid");
        assert!(choice.default.is_some_and(|e| e.is_original() && e.key == Secret::new("o")));
        assert!(choice.vendors[&Vendor::Openai].is_ok());
        let refused = choice.vendors[&Vendor::Gemini].as_ref().expect_err("no key");
        assert_eq!(refused, "set GEMINI_API_KEY to use gemini");
    }

    #[test]
    fn only_the_vendors_own_service_must_have_a_key() {
        for (vendor, variable) in
            [("anthropic", "ANTHROPIC"), ("gemini", "GEMINI"), ("openai", "OPENAI"), ("openai_responses", "OPENAI")]
        {
            let address = format!("{variable}_BASE_URL");
            let model = format!("{vendor}/m");
            let at = |url: &str| config(&[(address.as_str(), url), ("STEPFLEET_MODEL", model.as_str())], &[]).choose();
            let local = at("http://127.0.0.1:8080/v1").expect("valid").default.expect("an endpoint");
            assert_eq!((local.vendor.as_str(), local.key), (vendor, None));
            let own = Vendor::parse(vendor).expect("known").base_url();
            let problems = at(own).expect_err("no key");
            assert_eq!(problems, [format!("STEPFLEET_MODEL: set {variable}_API_KEY to use {vendor}")]);
            let profile = [("p", profile(vendor, Some("http://h/v1")))];
            let choice = config(&[], &profile).choose().expect("valid");
            assert!(choice.profiles["p"].as_ref().is_some_and(|endpoint| endpoint.key.is_none()), "{vendor}");
        }
        let alone = config(&[("ANTHROPIC_BASE_URL", "http://h"), ("GEMINI_BASE_URL", "http://h")], &[]);
        assert_eq!(words(&alone), "scripted");
    }

    #[test]
    fn an_accounts_key_goes_to_the_vendor_and_to_the_address_set_along_with_it_alone() {
        const GATEWAY: &str = "https://gateway.example:8443/v1";
        let key_at = |gateway: Option<&str>, provider: &str, url: &str| {
            let mut variables = vec![("OPENAI_API_KEY", "sk-account")];
            variables.extend(gateway.map(|url| ("OPENAI_BASE_URL", url)));
            let choice = config(&variables, &[("p", profile(provider, Some(url)))]).choose().expect("valid");
            choice.profiles["p"].as_ref().and_then(|endpoint| endpoint.key.clone())
        };
        let account = Secret::new("sk-account");
        for provider in ["openai", "openai_responses"] {
            for (gateway, url, key) in [
                (None, "http://10.0.0.5:11434/v1", None),
                (None, "https://api.openai.com.example.org/v1", None),
                (None, GATEWAY, None),
                (None, "https://API.openai.com:443/v2/", account.clone()),
                (Some(GATEWAY), "https://gateway.example:8443/other", account.clone()),
                (Some(GATEWAY), "https://api.openai.com/v1", account.clone()),
                (Some(GATEWAY), "http://gateway.example:8443/v1", None),
                (Some(GATEWAY), "https://gateway.example/v1", None),
            ] {
                assert_eq!(key_at(gateway, provider, url), key, "{provider} at {url} beside {gateway:?}");
            }
        }
        // Without an address of its own, a profile is the account's.
        let variables = [("OPENAI_API_KEY", "sk-account"), ("OPENAI_BASE_URL", "http://10.0.0.5/v1")];
        let choice = config(&variables, &[("p", profile("openai", None))]).choose().expect("valid");
        let of_vendor = choice.vendors[&Vendor::Openai].as_ref().ok();
        for endpoint in [choice.default.as_ref(), choice.profiles["p"].as_ref(), of_vendor] {
            assert_eq!(endpoint.expect("an endpoint").key, account);
        }
    }

    #[test]
    fn a_profile_with_an_address_of_its_own_has_a_key_of_its_own() {
        let variables = [("OPENAI_API_KEY", "sk-account"), ("MY_KEY", "sk-own")];
        let own = Profile { api_key_env: Some("MY_KEY".to_owned()), ..profile("openai", Some("http://h/v1")) };
        let choice = config(&variables, &[("p", own)]).choose().expect("valid");
        assert_eq!(choice.profiles["p"].as_ref().and_then(|endpoint| endpoint.key.clone()), Secret::new("sk-own"));
        // The vendor's name on another port or without TLS is not the vendor's server, and one without a key is no use.
        let problems = config(&variables, &[("p", profile("openai", Some("http://api.openai.com/v1")))]).choose();
        let setting = "api_key_env or api_key_file beside base_url";
        assert_eq!(problems.expect_err("no key"), [format!("models.p: set {setting} to use openai")]);
        let hidden = config(&variables, &[("p", profile("openai", Some("http://me:hidden@h/v1")))]).choose();
        assert!(hidden.expect_err("a password")[0].ends_with(setting));
    }

    #[test]
    fn hosts_are_told_apart_by_their_names() {
        for (base_url, host) in [
            ("https://api.openai.com/v1", Host::Vendor),
            ("https://API.openai.com", Host::Vendor),
            ("https://mine.openai.azure.com/openai/v1", Host::Azure),
            ("https://mine.cognitiveservices.azure.com/openai/v1", Host::Azure),
            ("https://openai.azure.com.example.org/v1", Host::Other),
            ("https://api.openai.com.example.org/v1", Host::Other),
            ("http://127.0.0.1:11434/v1", Host::Other),
            ("nonsense", Host::Other),
        ] {
            assert_eq!(Endpoint::new(Vendor::Openai, "m", base_url, None).host, host, "{base_url}");
        }
    }

    #[test]
    fn an_address_with_a_password_is_refused_without_telling_it() {
        for url in ["http://me:hidden@h/v1", "http://h/v1?key=hidden"] {
            let problems = config(&[("OPENAI_BASE_URL", url)], &[]).choose().expect_err("problems");
            assert!(problems[0].contains("OPENAI_API_KEY") && !problems[0].contains("hidden"), "{problems:?}");
        }
    }

    #[test]
    fn keys_are_never_shown() {
        let config = config(&[("ANTHROPIC_API_KEY", "sk-hidden")], &[]);
        let choice = config.choose().expect("valid");
        assert!(!format!("{config:?}{choice:?}").contains("sk-hidden"));
    }
}
