//! Bearer tokens: looked up by hash in a cache that follows the store within seconds. What stays open
//! is told when its token is gone, so a revocation counts for streams as it does for requests.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use domain::ports::{Scope, TokenRow, Tokens};
use host::secret::Secret;
use schemas::id::Namespace;
use schemas::problem::Code;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::answer::Refused;
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::params;

/// A revoked token works this long at most, also for what is open.
const REFRESH: Duration = Duration::from_secs(5);
/// Unknown tokens make the gateway ask the store at most this often, over all requests.
const ASK_AGAIN: Duration = Duration::from_millis(250);
/// Longer texts are no tokens of ours.
const TOKEN_BYTES_MAX: usize = 512;
/// Prefix of the WebSocket subprotocol that carries a token: browsers can set no header there.
pub const PROTOCOL_PREFIX: &str = "bearer.";

pub struct Auth {
    tokens: Arc<dyn Tokens>,
    /// The one of the configuration.
    fixed: Option<Known>,
    known: RwLock<Arc<Vec<Known>>>,
    asked: Mutex<Asked>,
}

/// A token, and what all that is open with it holds on to.
struct Known {
    row: TokenRow,
    /// Cancelled when the store has this row no more.
    revoked: CancellationToken,
}

#[derive(Default)]
struct Asked {
    /// When an unknown token last made us ask.
    for_a_stranger: Option<Instant>,
    /// Whether the store has ever answered.
    answered: bool,
}

impl Auth {
    pub fn new(tokens: Arc<dyn Tokens>, admin: Option<&Secret>) -> Self {
        let fixed = admin.map(|token| TokenRow {
            hash: Sha256::digest(token.expose()).into(),
            namespace: Namespace::default_ns(),
            name: "admin".into(),
            scopes: vec![Scope::Admin],
        });
        let fixed = fixed.map(|row| Known { row, revoked: CancellationToken::new() });
        Self { tokens, fixed, known: RwLock::default(), asked: Mutex::default() }
    }

    /// Finds out who bears a token.
    pub async fn check(&self, token: &str) -> Result<Caller, Refused> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(unknown());
        }
        let hash: [u8; 32] = Sha256::digest(token).into();
        if let Some(caller) = self.find(&hash) {
            return Ok(caller);
        }
        // It may be new. The lock makes concurrent strangers share one look at the store.
        let mut asked = self.asked.lock().await;
        if asked.for_a_stranger.is_none_or(|at| at.elapsed() >= ASK_AGAIN) {
            asked.for_a_stranger = Some(Instant::now());
            self.ask(&mut asked).await;
        }
        match self.find(&hash) {
            Some(caller) => Ok(caller),
            None if asked.answered => Err(unknown()),
            None => Err(Refused::new(Code::Unavailable, "The tokens could not be read yet; try again in a moment.")),
        }
    }

    /// Compares with every row, in time that does not depend on what is equal.
    fn find(&self, hash: &[u8; 32]) -> Option<Caller> {
        let all = self.known();
        let mut found = None;
        for known in all.iter().chain(&self.fixed) {
            if bool::from(known.row.hash.ct_eq(hash)) {
                found = Some(known);
            }
        }
        found.and_then(|known| Caller::of(&known.row, &known.revoked))
    }

    fn known(&self) -> Arc<Vec<Known>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn ask(&self, asked: &mut Asked) {
        match self.tokens.all().await {
            Ok(rows) => {
                host::stall::clear();
                self.renew(rows);
                asked.answered = true;
            }
            // The known ones stay good: an outage of the store must not log everybody out.
            Err(failure) => host::stall::note("tokens", &failure),
        }
    }

    /// Takes over what the store has. What is open with a row that is there no more ends now.
    fn renew(&self, rows: Vec<TokenRow>) {
        let before = self.known();
        let mut gone: HashMap<[u8; 32], &Known> = before.iter().map(|known| (known.row.hash, known)).collect();
        let mut known = Vec::with_capacity(rows.len());
        for row in rows {
            let revoked = match gone.entry(row.hash) {
                // With other scopes it is another row: its streams are let in anew, or not.
                Entry::Occupied(same) if same.get().row == row => same.remove().revoked.clone(),
                _ => CancellationToken::new(),
            };
            known.push(Known { row, revoked });
        }
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(known);
        // Only now: who is sent away and comes back at once must not be let in.
        for known in gone.into_values() {
            known.revoked.cancel();
        }
    }
}

fn unknown() -> Refused {
    let detail = "The token is not known. Send one that exists: Authorization: Bearer <token>; `stepfleet up` prints \
                  where its token file is.";
    Refused::new(Code::Unauthorized, detail)
}

/// Keeps the cache near the store, so that revoked tokens stop working.
pub async fn keep_fresh(gateway: Gateway, stop: CancellationToken) {
    loop {
        {
            let mut asked = gateway.auth.asked.lock().await;
            gateway.auth.ask(&mut asked).await;
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(REFRESH) => {}
        }
    }
}

/// What a route asks of its callers.
#[derive(Clone)]
pub struct Guard {
    pub gateway: Gateway,
    pub scope: Scope,
    /// Streams also take the token from the query or the WebSocket subprotocol.
    pub stream: bool,
}

/// Middleware: no valid token, no handler.
pub async fn guard(State(guard): State<Guard>, mut request: Request, next: Next) -> Response {
    let checked = match token_of(&request, guard.stream) {
        Some(token) => guard.gateway.auth.check(&token).await,
        None => Err(Refused::new(Code::Unauthorized, "Send the header Authorization: Bearer <token>.")),
    };
    match checked.and_then(|caller| caller.need(guard.scope).map(|()| caller)) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(refused) => refused.into_response(),
    }
}

fn token_of(request: &Request, stream: bool) -> Option<String> {
    let headers = request.headers();
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned());
    }
    if !stream {
        return None;
    }
    let protocols = headers.get(header::SEC_WEBSOCKET_PROTOCOL).and_then(|value| value.to_str().ok());
    let in_protocol =
        protocols.into_iter().flat_map(|list| list.split(',')).find_map(|one| one.trim().strip_prefix(PROTOCOL_PREFIX));
    in_protocol.map(str::to_owned).or_else(|| params::first(request.uri(), "token"))
}
