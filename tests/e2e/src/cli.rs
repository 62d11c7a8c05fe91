//! The operator's commands: what they do, what they print for people and for programs, how they fail.

mod agents;
pub mod conversing;
mod definitions;
mod imports;
mod measuring;
mod refusals;
mod sessions;

use serde_json::Value;

use crate::harness::Harness;

/// What a command printed that must succeed.
pub async fn told(fleet: &Harness, args: &[&str]) -> String {
    let (ok, out, err) = fleet.cli(args).await;
    assert!(ok, "{args:?}: {out}{err}");
    out
}

/// The same with `--json`.
pub async fn read(fleet: &Harness, args: &[&str]) -> Value {
    let out = told(fleet, &with(args, &["--json"])).await;
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{args:?}: {error}: {out}"))
}

/// Fails unless the text has all parts.
pub fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(*part), "{part:?} is not in: {text}");
    }
}

fn with<'a>(args: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    args.iter().chain(more).copied().collect()
}
