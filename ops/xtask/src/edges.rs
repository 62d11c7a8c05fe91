//! Which crate may depend on which, and which crate owns which technology.

mod modules;
mod rules;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// A crate of the workspace, as cargo describes it.
#[derive(Debug, Deserialize)]
pub struct Package {
    pub name: String,
    pub dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
pub struct Dependency {
    pub name: String,
    /// `dev`, `build`, or nothing for a normal one.
    pub kind: Option<String>,
    /// Set for crates of the workspace.
    pub path: Option<String>,
}

pub fn run(root: &Path) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(root)
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .output()
        .context("cargo cannot be started")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let metadata: Metadata = serde_json::from_slice(&output.stdout).context("the answer of cargo metadata")?;
    let mut findings = rules::check(&metadata.packages);
    findings.extend(modules::check(&root.join("workers/domain/src"))?);
    for finding in &findings {
        eprintln!("{finding}");
    }
    println!("edges: {} crates; {} findings", metadata.packages.len(), findings.len());
    if findings.is_empty() { Ok(()) } else { bail!("{} dependencies are not allowed", findings.len()) }
}
