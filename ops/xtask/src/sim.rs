//! Runs the simulation with any number of seeds, or with one.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

pub fn run(root: &Path, args: &[String]) -> Result<()> {
    let variables = variables(args)?;
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root).args(["test", "-p", "sim", "--", "--nocapture"]).envs(variables);
    let status = cargo.status().context("cargo cannot be started")?;
    if !status.success() {
        bail!(
            "the simulation found something; its seed is printed above: repeat it with cargo xtask sim --seed <seed>"
        );
    }
    Ok(())
}

/// The variables that the simulation reads.
fn variables(args: &[String]) -> Result<Vec<(&'static str, String)>> {
    let mut found = Vec::new();
    let mut args = args.iter();
    while let Some(flag) = args.next() {
        let name = match flag.as_str() {
            "--seeds" => "SIM_SEEDS",
            "--seed" => "SIM_SEED",
            other => bail!("{other:?} is no flag of sim; use --seeds N or --seed S"),
        };
        let value = args.next().with_context(|| format!("{flag} needs a number"))?;
        value.parse::<u64>().with_context(|| format!("{flag} needs a number, not {value:?}"))?;
        found.push((name, value.clone()));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<Vec<(&'static str, String)>> {
        variables(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn flags_become_variables() {
        assert_eq!(read(&["--seeds", "5"]).unwrap(), [("SIM_SEEDS", "5".to_owned())]);
        assert_eq!(read(&["--seed", "77"]).unwrap(), [("SIM_SEED", "77".to_owned())]);
        assert!(read(&["--seed"]).is_err() && read(&["--seed", "x"]).is_err() && read(&["--sed", "1"]).is_err());
    }
}
