//! Checks of the repository that the compiler does not make: `tidy`, `edges`, and `sim`.

mod edges;
mod sim;
mod source;
mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask <command>

  tidy                      house rules on files, functions, words, runbooks, metrics, migrations
  edges                     which crate may depend on which, and who owns which technology
  sim [--seeds N] [--seed S]  run the simulation: N seeds, or the one that failed";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let root = root();
    let done = match args.first().map(String::as_str) {
        Some("tidy") => tidy::run(&root),
        Some("edges") => edges::run(&root),
        Some("sim") => sim::run(&root, &args[1..]),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The workspace that this is called in. Not the one it was built in: several may share their builds.
fn root() -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    here.ancestors().find(|folder| folder.join("Cargo.lock").is_file()).map_or_else(|| here.clone(), PathBuf::from)
}
