//! Asking whoever sits at the terminal.

use std::io::{IsTerminal, Write};

use anyhow::{Context, Result};

/// Whether somebody can be shown something, and asked about it.
pub fn is_possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks for a yes; anything else is a no.
///
/// # Errors
/// The answer cannot be read.
pub fn is_yes(question: &str) -> Result<bool> {
    eprint!("{question} [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).context("the answer cannot be read")?;
    Ok(["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()))
}
