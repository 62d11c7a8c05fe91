//! The table of allowed arrows.

use super::Package;

/// Crate and the crates of the workspace that it may use, besides itself.
const ARROWS: &[(&str, &[&str])] = &[
    ("schemas", &[]),
    ("domain", &["schemas"]),
    ("broker", &["schemas", "domain"]),
    ("store", &["schemas", "domain"]),
    // The hack has no code; it only fixes features (see its manifest).
    ("history", &["schemas", "domain", "workspace-hack"]),
    ("providers", &["schemas", "domain"]),
    ("engine", &["schemas", "domain"]),
    ("host", &["schemas", "domain"]),
    ("worker", &["schemas", "domain", "host"]),
    ("dispatcher", &["schemas", "domain", "host"]),
    ("stepfleet", &["schemas", "domain", "broker", "store", "history", "providers", "host", "worker", "dispatcher"]),
    ("xtask", &[]),
    ("testkit", &["schemas", "domain"]),
    ("sim", &["schemas", "domain", "testkit", "worker"]),
    ("e2e", &["schemas"]),
    ("chaos", &[]),
];

/// What only tests may use besides.
const TEST_ARROWS: &[(&str, &[&str])] = &[
    ("broker", &["testkit"]),
    ("store", &["testkit"]),
    ("history", &["testkit"]),
    ("providers", &["testkit"]),
    // The library's durable store, as its programs have it.
    ("engine", &["providers", "store"]),
    ("testkit", &["engine"]),
    ("worker", &["testkit"]),
    ("dispatcher", &["testkit"]),
];

/// A technology, by the start of its crates' names, and the crates that may use it.
const OWNERS: &[(&str, &[&str])] = &[
    ("lance", &["history"]),
    ("arrow", &["history"]),
    ("object_store", &["history"]),
    ("sqlx", &["store"]),
    ("lapin", &["broker"]),
    ("axum", &["dispatcher"]),
    ("utoipa", &["schemas", "dispatcher"]),
    ("rust-embed", &["dispatcher"]),
    ("backoff", &["providers"]),
    // Clients of the network: model providers; the command line and the tests as our own clients.
    ("reqwest", &["providers", "stepfleet", "e2e", "chaos"]),
    ("clap", &["stepfleet", "chaos"]),
    ("metrics-exporter", &["host"]),
    ("tracing-subscriber", &["host"]),
];

/// Runtimes, clocks and chance: decisions are given what they need as parameters.
const NOT_IN_DOMAIN: &[&str] = &["tokio", "rand", "chrono", "ulid", "futures", "tracing"];

/// Names many crates for their features and uses none.
const FEATURES_ONLY: &str = "workspace-hack";

/// One line for each dependency that is not allowed.
pub fn check(packages: &[Package]) -> Vec<String> {
    packages.iter().flat_map(check_one).collect()
}

fn check_one(package: &Package) -> Vec<String> {
    let name = package.name.as_str();
    if name == FEATURES_ONLY {
        return Vec::new();
    }
    let Some(allowed) = find(ARROWS, name) else {
        return vec![format!("{name}: a new crate needs a line in ops/xtask/src/edges/rules.rs")];
    };
    let in_tests = find(TEST_ARROWS, name).unwrap_or_default();
    let mut findings = Vec::new();
    for dependency in &package.dependencies {
        let used = dependency.name.as_str();
        let test = dependency.kind.as_deref() == Some("dev");
        if dependency.path.is_some() {
            let is_allowed = allowed.contains(&used) || (test && in_tests.contains(&used));
            if !is_allowed {
                findings.push(format!("{name} must not depend on {used}"));
            }
            continue;
        }
        for (technology, owners) in OWNERS {
            if used.starts_with(technology) && !owners.contains(&name) && !test {
                findings.push(format!("{name} must not depend on {used}: {} owns it", owners.join(" or ")));
            }
        }
        if name == "domain" && !test && NOT_IN_DOMAIN.contains(&used) {
            findings.push(format!("domain must not depend on {used}: decisions have no runtime, clock or chance"));
        }
    }
    findings
}

fn find<'t>(table: &[(&str, &'t [&'t str])], name: &str) -> Option<&'t [&'t str]> {
    table.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::super::Dependency;
    use super::*;

    fn package(name: &str, uses: &[(&str, Option<&str>, bool)]) -> Package {
        let dependencies = uses
            .iter()
            .map(|(name, kind, ours)| Dependency {
                name: (*name).into(),
                kind: kind.map(str::to_owned),
                path: ours.then(String::new),
            })
            .collect();
        Package { name: name.into(), dependencies }
    }

    #[test]
    fn arrows_point_down_only() {
        assert!(check(&[package("store", &[("domain", None, true), ("testkit", Some("dev"), true)])]).is_empty());
        assert_eq!(check(&[package("store", &[("history", None, true)])]), ["store must not depend on history"]);
        assert_eq!(check(&[package("store", &[("testkit", None, true)])]), ["store must not depend on testkit"]);
        assert_eq!(check(&[package("domain", &[("worker", None, true)])]), ["domain must not depend on worker"]);
    }

    #[test]
    fn a_technology_has_an_owner() {
        assert!(check(&[package("history", &[("lancedb", None, false), ("arrow-array", None, false)])]).is_empty());
        assert_eq!(check(&[package("worker", &[("arrow-array", None, false)])]).len(), 1);
        assert_eq!(check(&[package("domain", &[("tokio", None, false)])]).len(), 1);
        assert!(check(&[package("worker", &[("sqlx", Some("dev"), false)])]).is_empty());
    }

    #[test]
    fn a_crate_without_a_line_is_noticed() {
        assert_eq!(check(&[package("novel", &[])]).len(), 1);
    }
}
