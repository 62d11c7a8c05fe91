//! The layers, and everything that can be wrong with them at once.

use std::collections::BTreeMap;

use super::{Config, Database, History, Layers};

fn layers(file: Option<&str>, env: &[(&str, &str)], flags: &[(&'static str, &str)]) -> Layers {
    Layers {
        file: file.map(|text| ("stepfleet.toml".into(), text.to_owned())),
        env: env.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        flags: flags.iter().map(|(key, value)| (*key, (*value).to_owned())).collect::<BTreeMap<_, _>>(),
    }
}

#[test]
fn nothing_set_means_embedded_in_the_working_directory() {
    let config = Config::load(&layers(None, &[("HOME", "/root")], &[])).unwrap();
    assert_eq!(config.data_dir.to_str(), Some("stepfleet-data"));
    assert_eq!(config.database, Database::Sqlite("stepfleet-data/ledger.db".into()));
    assert_eq!(config.history, History::Directory("stepfleet-data/history".into()));
    assert_eq!(config.listen.to_string(), "127.0.0.1:7070");
    assert!(config.allow_private.is_none() && config.token.is_none() && config.shards.is_none());
    assert!(config.amqp.is_none() && config.worker_listen.is_none());
}

#[test]
fn flags_win_over_the_environment_over_the_file() {
    let file = "listen = \"127.0.0.1:1\"\nshards = 4\ndata_dir = \"a\"\n";
    let env = [("STEPFLEET_LISTEN", "127.0.0.1:2"), ("STEPFLEET_DATA_DIR", "b")];
    let config = Config::load(&layers(Some(file), &env, &[("listen", "127.0.0.1:3")])).unwrap();
    assert_eq!(config.listen.port(), 3);
    assert_eq!(config.data_dir.to_str(), Some("b"));
    assert_eq!(config.shards, Some(4));
}

#[test]
fn every_problem_is_reported_at_once_with_key_value_and_remedy() {
    let file = "listne = \"x\"\nshards = 99999\n[models.fast]\nprovider = \"acme\"\nmodel = \"m\"\n";
    let env = [
        ("STEPFLEET_LISTEN", "nowhere"),
        ("STEPFLEET_TOKEN", "short"),
        ("STEPFLEET_DATABASE_URL", "mysql://root:guest@db"),
        ("STEPFLEET_HISTORY_URI", "ftp://x"),
        ("STEPFLEET_SHARD", "3"),
        ("STEPFLEET_AMQP_URL", "http://guest:guest@mq"),
        ("STEPFLEET_ALLOW_PRIVATE", "perhaps"),
        ("STEPFLEET_SCRIPT", "/does/not/exist.json"),
    ];
    let flags = [("model", "gpt"), ("log", "worker=louder")];
    let text = Config::load(&layers(Some(file), &env, &flags)).unwrap_err().to_string();
    for part in [
        "13 problems",
        "listne in stepfleet.toml: is no setting; did you mean listen?",
        "shards in stepfleet.toml = \"99999\": use a number from 1 to 1024",
        "models.fast.provider in stepfleet.toml: \"acme\" is no provider",
        "STEPFLEET_LISTEN = \"nowhere\": is no address",
        "STEPFLEET_TOKEN: is too short",
        "STEPFLEET_DATABASE_URL: use sqlite://path/to/ledger.db or postgres://",
        "STEPFLEET_HISTORY_URI = \"ftp://x\": ftp is not supported",
        "STEPFLEET_SHARD = \"3\": is no setting; did you mean STEPFLEET_SHARDS?",
        "STEPFLEET_AMQP_URL: use amqp://user:password@host/vhost",
        "STEPFLEET_ALLOW_PRIVATE = \"perhaps\": use true or false",
        "STEPFLEET_SCRIPT = \"/does/not/exist.json\": cannot be read",
        "--model = \"gpt\": use provider/model with",
        "--log = \"worker=louder\"",
    ] {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
    assert!(!text.contains("guest") && !text.contains("short\""), "secrets must not be repeated:\n{text}");
}

/// Nothing would lift it: a yes allows as much once more.
#[test]
fn a_budget_of_no_time_is_refused() {
    for scope in ["turn", "session"] {
        let file = |seconds: u32| format!("[budgets.team.each]\nmax_seconds_per_{scope} = {seconds}\n");
        let text = Config::load(&layers(Some(&file(0)), &[], &[])).unwrap_err().to_string();
        assert!(text.contains("budgets.team in stepfleet.toml: seconds must be numbers from 1 on"), "{text}");
        assert!(Config::load(&layers(Some(&file(1)), &[], &[])).is_ok());
    }
}

#[test]
fn a_file_that_is_not_toml_is_one_problem() {
    let text = Config::load(&layers(Some("listen = "), &[], &[])).unwrap_err().to_string();
    assert!(text.starts_with("1 problem in the configuration\n  stepfleet.toml: is not TOML"), "{text}");
}

#[test]
fn a_profile_with_an_unknown_key_is_refused() {
    let file = "[models.fast]\nprovider = \"openai\"\nmodel = \"m\"\ntemperatur = 1\n";
    let text = Config::load(&layers(Some(file), &[], &[])).unwrap_err().to_string();
    assert!(text.contains("models in stepfleet.toml") && text.contains("temperatur"), "{text}");
}

#[test]
fn models_may_be_of_every_provider_there_is() {
    for provider in ["anthropic", "openai", "openai_responses", "gemini", "scripted"] {
        let file = format!("[models.one]\nprovider = \"{provider}\"\nmodel = \"m\"\n");
        assert!(Config::load(&layers(Some(&file), &[], &[])).is_ok(), "{provider}");
        let model = format!("{provider}/m");
        let chosen = Config::load(&layers(None, &[], &[("model", &model)]));
        assert_eq!(chosen.is_ok(), provider != "scripted", "{model}");
    }
}

#[test]
fn a_token_is_hidden() {
    let config = Config::load(&layers(None, &[("STEPFLEET_TOKEN", "0123456789abcdef")], &[])).unwrap();
    assert_eq!(config.token.as_ref().map(|token| token.expose()), Some("0123456789abcdef"));
    assert!(!format!("{config:?}").contains("0123456789abcdef"));
}

#[test]
fn the_places_of_a_fleet_are_shown_without_their_passwords() {
    let env = [
        ("STEPFLEET_DATABASE_URL", "postgres://fleet:hunter2@db:5433/stepfleet"),
        ("STEPFLEET_AMQP_URL", "amqp://fleet:hunter2@mq:5673/%2f"),
        ("STEPFLEET_HISTORY_URI", "s3://bucket/prefix"),
        ("STEPFLEET_WORKER_LISTEN", "127.0.0.1:7171"),
    ];
    let config = Config::load(&layers(None, &env, &[])).unwrap();
    assert_eq!(config.database.to_string(), "postgres://db:5433/stepfleet");
    assert_eq!(config.history, History::Bucket("s3://bucket/prefix".into()));
    assert_eq!(config.worker_listen.map(|address| address.port()), Some(7171));
    assert!(config.database.is_shared() && config.amqp.is_some());
    assert!(!format!("{config:?}").contains("hunter2"));
}

#[test]
fn a_place_that_names_nothing_is_refused() {
    for (name, value) in [
        ("STEPFLEET_DATABASE_URL", "sqlite:"),
        ("STEPFLEET_DATABASE_URL", "postgres://host"),
        ("STEPFLEET_HISTORY_URI", "s3:///prefix"),
        ("STEPFLEET_AMQP_URL", "amqp:"),
    ] {
        let problems = Config::load(&layers(None, &[(name, value)], &[])).unwrap_err();
        assert_eq!(problems.0.len(), 1, "{name}={value}: {problems}");
    }
}

#[test]
fn the_embedder_has_a_section_of_its_own() {
    let file = "[embedding]\nprovider = \"openai\"\nmodel = \"m\"\ndimensions = 64\n";
    let env = [("STEPFLEET_EMBEDDING", "static")];
    let found = Config::load(&layers(Some(file), &env, &[])).unwrap().embedding.unwrap();
    assert_eq!((found.provider.as_deref(), found.dimensions), (Some("openai"), Some(64)));
    let file = "[embedding]\nprovider = \"openai\"\ndimension = 64\n";
    let text = Config::load(&layers(Some(file), &[], &[])).unwrap_err().to_string();
    assert!(text.contains("embedding in stepfleet.toml") && text.contains("dimension"), "{text}");
}

#[test]
fn variables_for_headers_are_set_with_their_hosts() {
    let env = [("STEPFLEET_HTTP_ENV", "CRM_TOKEN@crm.example.org, CRM_TOKEN@*.example.net,")];
    let config = Config::load(&layers(None, &env, &[])).unwrap();
    let pair = |name: &str, host: &str| (name.to_owned(), host.to_owned());
    assert_eq!(config.http_env, [pair("CRM_TOKEN", "crm.example.org"), pair("CRM_TOKEN", "*.example.net")]);
    for wrong in
        ["hunter2hunter2", "CRM_TOKEN", "CRM_TOKEN@", "CRM_TOKEN@*.", "crm@example.org", "A@b.c/hunter2hunter2"]
    {
        let file = format!("http_env = \"A@example.org, {wrong}\"\n");
        let text = Config::load(&layers(Some(&file), &[], &[])).unwrap_err().to_string();
        assert!(text.contains("http_env in stepfleet.toml: use VARIABLE@host") && text.contains("number 2"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn mcp_servers_and_the_sandbox_are_set() {
    let file = "[mcp.files]\ncommand = \"npx\"\nargs = [\"-y\", \"server\"]\nenv = [\"FILES_ROOT\"]\n\
                [mcp.search]\nurl = \"https://mcp.example.org/mcp\"\ntoken_env = \"SEARCH_TOKEN\"\n";
    let env =
        [("STEPFLEET_CODE_HOSTS", "api.example.org, 127.0.0.1:8080"), ("STEPFLEET_TASK_POOLS", "python,other:rust")];
    let config = Config::load(&layers(Some(file), &env, &[])).unwrap();
    assert_eq!(config.mcp["files"].args, ["-y", "server"]);
    assert_eq!(config.mcp["search"].token_env.as_deref(), Some("SEARCH_TOKEN"));
    assert_eq!(config.code_hosts, ["api.example.org", "127.0.0.1:8080"]);
    assert_eq!(config.task_pools, ["python", "other:rust"]);
    let broken = "[mcp.none]\nargs = []\n[mcp.both]\ncommand = \"a\"\nurl = \"https://b\"\n";
    let env =
        [("STEPFLEET_DENO", "/no/such/deno"), ("STEPFLEET_CODE_HOSTS", "a/b"), ("STEPFLEET_TASK_POOLS", "default")];
    let text = Config::load(&layers(Some(broken), &env, &[])).unwrap_err().to_string();
    for part in [
        "5 problems",
        "mcp.none in stepfleet.toml",
        "mcp.both in stepfleet.toml",
        "STEPFLEET_DENO",
        "is no host",
        "own executors",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
