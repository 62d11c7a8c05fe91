//! API tokens: random text, of which only the hash is stored.

use std::path::Path;

use anyhow::{Context, Result};
use domain::ports::{Scope, TokenRow, Tokens};
use rand::Rng;
use rand::distr::Alphanumeric;
use schemas::id::Namespace;
use sha2::{Digest, Sha256};

use crate::datadir_files::{TOKEN_FILE, write_private};

/// 43 characters of 62 are more than 256 bits.
const TOKEN_CHARS: usize = 43;
/// Name under which `up` stores the token of its file.
const UP: &str = "up";

/// A new token. The prefix lets secret scanners find leaked ones.
pub fn new_token() -> String {
    let random: String = rand::rng().sample_iter(Alphanumeric).take(TOKEN_CHARS).map(char::from).collect();
    format!("sf_{random}")
}

pub fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// The token of the data directory's file; a new one if the file is gone or does not count any more.
///
/// # Errors
/// The store or the directory cannot be used.
pub async fn of_data_dir(tokens: &dyn Tokens, dir: &Path) -> Result<String> {
    let stored = tokens.all().await.context("the stored tokens")?;
    if let Ok(text) = std::fs::read_to_string(dir.join(TOKEN_FILE)) {
        let token = text.trim();
        if stored.iter().any(|row| row.hash == hash(token)) {
            return Ok(token.to_owned());
        }
    }
    let token = new_token();
    tokens.remove(UP).await.context("the stored tokens")?;
    let row = TokenRow {
        hash: hash(&token),
        namespace: Namespace::default_ns(),
        name: UP.into(),
        scopes: Scope::ALL.to_vec(),
    };
    tokens.put(&row).await.context("the stored tokens")?;
    write_private(dir, TOKEN_FILE, &token).with_context(|| dir.join(TOKEN_FILE).display().to_string())?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_long_and_differ() {
        let (a, b) = (new_token(), new_token());
        assert_ne!(a, b);
        assert_eq!(a.len(), TOKEN_CHARS + 3);
        assert_ne!(hash(&a), hash(&b));
    }
}
