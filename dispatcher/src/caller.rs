//! Who calls: the token's namespace, name and reach.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use domain::ports::{Scope, TokenRow};
use schemas::action::ActionType;
use schemas::id::Namespace;
use schemas::problem::Code;
use tokio_util::sync::CancellationToken;

use crate::answer::Refused;

/// The bearer of a valid token. Every query is bound to `namespace` (invariant N1).
#[derive(Debug, Clone)]
pub struct Caller {
    pub namespace: Namespace,
    pub name: String,
    /// The widest scope of the token; it includes all narrower ones.
    pub scope: Scope,
    /// Cancelled once the token is known no more: what outlives its request must heed it.
    pub revoked: CancellationToken,
}

impl Caller {
    /// `None`: the token has no scope at all.
    pub fn of(row: &TokenRow, revoked: &CancellationToken) -> Option<Self> {
        let scope = row.scopes.iter().copied().max()?;
        Some(Self { namespace: row.namespace.clone(), name: row.name.clone(), scope, revoked: revoked.clone() })
    }

    /// Refuses whom the scope does not reach, and whose token was revoked since it was checked.
    pub fn need(&self, scope: Scope) -> Result<(), Refused> {
        if self.revoked.is_cancelled() {
            return Err(Refused::new(Code::Unauthorized, "The token was revoked. Send one that exists."));
        }
        if self.scope >= scope {
            return Ok(());
        }
        let (needed, has) = (scope.as_str(), self.scope.as_str());
        let detail = format!("This needs a token with scope {needed} or wider; {} has {has}.", self.name);
        Err(Refused::new(Code::Forbidden, detail))
    }
}

/// The scope that a verb needs: running agents is `act`, standing in their way is `operate`.
pub fn scope_of(kind: ActionType) -> Scope {
    match kind {
        ActionType::Create | ActionType::Input | ActionType::Interrupt | ActionType::ToolResult => Scope::Act,
        ActionType::Pause | ActionType::Resume | ActionType::Destroy => Scope::Operate,
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Refused;

    /// Set by the guard of the route.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        let caller = parts.extensions.get::<Caller>().cloned();
        caller.ok_or_else(|| Refused::new(Code::Unauthorized, "No token was checked for this route."))
    }
}
