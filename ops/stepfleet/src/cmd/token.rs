//! `token create`, `token list`, `token revoke`: on the data directory itself, so that they work
//! before the first token exists.

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use domain::action::is_reserved_actor;
use domain::ports::{Scope, TokenRow, Tokens};
use host::config::Config;
use schemas::id::Namespace;
use serde_json::json;

use crate::fleet;
use crate::output::{Output, facts, table};
use crate::tokens;

/// Makes, lists and revokes API tokens.
#[derive(Debug, Args)]
pub struct Token {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Make a token; its text is shown once
    Create {
        name: String,
        /// read, act, operate, admin; separated by commas
        #[arg(long, default_value = "read", value_delimiter = ',')]
        scopes: Vec<String>,
        #[arg(long, default_value = "default")]
        namespace: String,
    },
    /// List tokens: names and scopes, never the text
    List,
    /// Make a token worthless
    Revoke { name: String },
}

impl Token {
    pub async fn run(self, config: &Config, out: Output) -> Result<()> {
        let store = fleet::open_existing_store(config).await?.tokens;
        let store = store.as_ref();
        match self.verb {
            Verb::Create { name, scopes, namespace } => create(store, out, name, &scopes, &namespace).await,
            Verb::List => list(store, out).await,
            Verb::Revoke { name } => {
                if !store.remove(&name).await? {
                    bail!("there is no token {name:?}");
                }
                out.show(&json!({ "revoked": name }), |_| facts([("revoked", name.clone())]))
            }
        }
    }
}

async fn create(store: &dyn Tokens, out: Output, name: String, scopes: &[String], namespace: &str) -> Result<()> {
    let mut parsed = Vec::new();
    for scope in scopes {
        match Scope::parse(scope) {
            Some(scope) => parsed.push(scope),
            None => bail!("{scope:?} is no scope; use read, act, operate or admin"),
        }
    }
    let namespace = match Namespace::parse(namespace) {
        Ok(namespace) => namespace,
        Err(error) => bail!("namespace {namespace:?} {error}"),
    };
    if is_reserved_actor(&name) {
        bail!("{name:?} is a name under which the fleet itself acts; choose another one");
    }
    if store.all().await?.iter().any(|row| row.name == name) {
        bail!("there is a token {name:?} already; revoke it first, or choose another name");
    }
    let text = tokens::new_token();
    store.put(&TokenRow { hash: tokens::hash(&text), namespace, name: name.clone(), scopes: parsed }).await?;
    out.show(&json!({ "name": name, "token": text }), |_| facts([("name", name.clone()), ("token", text.clone())]))
}

async fn list(store: &dyn Tokens, out: Output) -> Result<()> {
    let mut found = store.all().await?;
    found.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    let scopes = |row: &TokenRow| row.scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>();
    let answer: Vec<_> = found
        .iter()
        .map(|row| json!({ "name": row.name, "namespace": row.namespace, "scopes": scopes(row) }))
        .collect();
    out.show(&answer, |_| {
        let mut rows = table(&["name", "namespace", "scopes"]);
        for row in &found {
            rows.add_row([row.name.clone(), row.namespace.to_string(), scopes(row).join(",")]);
        }
        rows
    })
}
