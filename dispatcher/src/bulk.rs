//! One verb for all sessions that match a filter, page by page, in bounded memory.

use domain::action::{self, bulk, lift};
use domain::ports::{SessionQuery, Verdict};
use futures::{StreamExt, TryStreamExt, stream};
use host::trace;
use schemas::action::NewAction;
use schemas::api::{BulkAnswer, BulkBody, BulkRefusal};
use schemas::id::{ActionId, SessionId};
use schemas::limits::{ACCEPT_BATCH_MAX, PAGE_MAX};
use schemas::problem::{Code, Problem};
use schemas::session::SessionRow;
use schemas::telemetry::metric;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::submit;

/// Members that are looked at together.
const CHECKS_MAX: usize = 16;

/// Runs a checked bulk action. The id of each member's action is derived from `key` and its
/// session, so a repeat after a failure half-way acts on nobody twice.
pub async fn run(gateway: &Gateway, caller: &Caller, key: &ActionId, body: BulkBody) -> Answer<BulkAnswer> {
    let mut answer = BulkAnswer { matched: 0, accepted: 0, refused: Vec::new() };
    let mut query = SessionQuery {
        namespace: caller.namespace.clone(),
        filter: body.filter.clone(),
        prefix: None,
        after: None,
        limit: ACCEPT_BATCH_MAX,
    };
    if query.filter.status.is_empty() {
        query.filter.status = bulk::default_statuses(body.action);
    }
    loop {
        let rows = gateway.sessions.list(&query).await?;
        let last = rows.last().map(|row| (row.created_at_ms, row.key.session_id.clone()));
        let full = rows.len() == query.limit;
        answer.matched += rows.len() as u64;
        accept(gateway, caller, key, &body, &rows, &mut answer).await?;
        match last {
            Some(last) if full => query.after = Some(last),
            _ => return Ok(answer),
        }
    }
}

async fn accept(
    gateway: &Gateway,
    caller: &Caller,
    key: &ActionId,
    body: &BulkBody,
    rows: &[SessionRow],
    answer: &mut BulkAnswer,
) -> Answer<()> {
    let mut checks = Vec::with_capacity(rows.len());
    for row in rows {
        checks.push(checked(gateway, row, member(gateway, caller, key, body, &row.key.session_id)?));
    }
    // In the order of the rows, some at a time: each may ask the ledger how much waits.
    let checked: Vec<Checked<'_>> = stream::iter(checks).buffered(CHECKS_MAX).try_collect().await?;
    let (mut taken, mut members) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    for (row, member) in checked {
        match member {
            Ok(action) => {
                taken.push(row);
                members.push(action);
            }
            Err((code, detail)) => refuse(answer, row, code, detail),
        }
    }
    if members.is_empty() {
        return Ok(());
    }
    let begun = trace::begin();
    let verdicts = gateway.ledger.accept(members).await?;
    for (row, verdict) in taken.into_iter().zip(verdicts) {
        match verdict {
            Verdict::Accepted(new) => {
                answer.accepted += 1;
                submit::accepted_at(begun, &new.action, "");
                submit::publish(gateway, new.action).await;
            }
            Verdict::Repeated(_) => answer.accepted += 1,
            Verdict::Refused(refusal) => {
                refuse(answer, row, refusal.code, submit::with_remedy(refusal.code, &refusal.detail));
            }
        }
    }
    Ok(())
}

/// A member, and its action or why there is none.
type Checked<'r> = (&'r SessionRow, Result<NewAction, (Code, String)>);

/// What a single action would be refused for before it comes to the ledger, a member is as well.
async fn checked<'r>(gateway: &Gateway, row: &'r SessionRow, new: NewAction) -> Answer<Checked<'r>> {
    let objection = submit::objection(gateway, row, &new).await?;
    Ok((row, objection.map_or(Ok(new), Err)))
}

/// The list is bounded; `matched` and `accepted` still tell how many there are.
fn refuse(answer: &mut BulkAnswer, row: &SessionRow, code: Code, detail: String) {
    metrics::counter!(metric::ACTIONS_REFUSED, "code" => code.as_str()).increment(1);
    if answer.refused.len() < PAGE_MAX {
        answer.refused.push(BulkRefusal { session_id: row.key.session_id.clone(), code, detail });
    }
}

fn member(
    gateway: &Gateway,
    caller: &Caller,
    key: &ActionId,
    body: &BulkBody,
    session: &SessionId,
) -> Result<NewAction, Box<Problem>> {
    let payload = body.payload.as_ref().map_or_else(|| json!({}), |payload| payload.to_value());
    let whole = lift::whole(body.action, lift::Target::Session(session.as_str()), Some(json!({"payload": payload})))?;
    let id = bulk::member_id(&caller.namespace, key, body.action, session);
    let mut action = action::parse(&whole, submit::context(gateway, caller, Some(id.to_string())))?;
    action.metadata = schemas::json::Json::of(&json!({"bulk": Value::from(key.as_str())}));
    Ok(action)
}
