//! Contract of `Tokens`.

use domain::ports::{Scope, TokenRow};
use schemas::id::Namespace;

use super::Ports;
use super::build::*;

pub async fn suite(make: &impl AsyncFn() -> Ports) {
    tokens_are_kept(&make().await).await;
}

fn token(name: &str, mark: u8, scopes: &[Scope]) -> TokenRow {
    TokenRow { hash: [mark; 32], namespace: Namespace::default_ns(), name: name.to_owned(), scopes: scopes.to_vec() }
}

async fn tokens_are_kept(ports: &Ports) {
    let sorted = async || {
        let mut all = ports.tokens.all().await.expect("tokens");
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    };
    assert!(sorted().await.is_empty());
    let ops = token("an \"operator\"", 1, &[Scope::Read, Scope::Operate]);
    let admin = TokenRow { namespace: namespace("other"), ..token("boss", 2, &Scope::ALL) };
    ports.tokens.put(&ops).await.expect("put");
    ports.tokens.put(&admin).await.expect("put");
    assert_eq!(sorted().await, [ops.clone(), admin.clone()]);
    let changed = token("an \"operator\"", 3, &[Scope::Read]);
    ports.tokens.put(&changed).await.expect("put again");
    assert_eq!(sorted().await, [changed, admin.clone()], "a name has one token");
    assert!(ports.tokens.remove("an \"operator\"").await.unwrap());
    assert!(!ports.tokens.remove("an \"operator\"").await.unwrap(), "it is gone");
    assert_eq!(sorted().await, [admin]);
}
