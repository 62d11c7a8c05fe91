//! Peace: nothing fails any more, whoever is paused is resumed, and then everything must come to
//! an end or wait for a reason.

use std::time::Duration;

use domain::invariant::{Broken, Invariant};
use domain::ports::Journal;
use schemas::action::{ActionType, Lane};
use schemas::session::{Cause, SessionRow, SessionStatus};
use serde_json::json;

use crate::clients::{Book, Client};
use crate::world::World;

/// Longest that it may take: sessions without an end are limited to less.
const SETTLE_MAX_S: u64 = 240;

/// What did not settle.
pub async fn settle(world: &World, book: &Book) -> Vec<Broken> {
    let mut client = Client::steady(world, book.clone());
    let mut destroyed = !world.plan.destroys_all;
    let mut orders = 0_u32;
    for _ in 0..SETTLE_MAX_S * 2 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        for row in paused_for_good(world) {
            orders += 1;
            command(&mut client, &row, ActionType::Resume, orders).await;
        }
        if !unsettled(world).is_empty() {
            continue;
        }
        if !destroyed {
            destroyed = true;
            for row in world.store.all_sessions().into_iter().filter(|row| !row.head.status.is_final()) {
                orders += 1;
                command(&mut client, &row, ActionType::Destroy, orders).await;
            }
            continue;
        }
        return archived(world).await;
    }
    unsettled(world)
}

async fn command(client: &mut Client, row: &SessionRow, verb: ActionType, order: u32) {
    let body = json!({"type": verb, "session_id": row.key.session_id});
    client.send(row.key.namespace.clone(), &format!("last-{order}"), body).await;
}

/// Paused, and nothing on its way that would change it.
fn paused_for_good(world: &World) -> Vec<SessionRow> {
    let open = world.store.open_actions();
    let moves = |row: &SessionRow| {
        open.iter().any(|place| place.0 == row.key && place.1 == Lane::Control && is_order(world, row, &place.3))
    };
    let paused = |row: &SessionRow| row.head.status == SessionStatus::Paused;
    world.store.all_sessions().into_iter().filter(|row| paused(row) && !moves(row)).collect()
}

fn is_order(world: &World, row: &SessionRow, id: &schemas::id::ActionId) -> bool {
    let actions = world.store.all_actions();
    actions
        .iter()
        .any(|rec| rec.action_id == *id && rec.namespace == row.key.namespace && rec.kind != ActionType::Interrupt)
}

/// Sessions that neither rest nor wait for a true reason, each with its evidence (invariant L1).
pub fn unsettled(world: &World) -> Vec<Broken> {
    let open = world.store.open_actions();
    let mut found = Vec::new();
    for row in world.store.all_sessions() {
        let pending = open.iter().filter(|place| place.0 == row.key).count();
        let head = &row.head;
        let settled = match head.status {
            SessionStatus::Stopped | SessionStatus::Completed => pending == 0,
            SessionStatus::Error => !open
                .iter()
                .any(|place| place.0 == row.key && is_order(world, &row, &place.3) && place.1 == Lane::Control),
            SessionStatus::Running => head.cause == Cause::Input && head.wake_at_ms.is_none() && pending == 0,
            SessionStatus::Starting | SessionStatus::Paused | SessionStatus::Stopping => false,
        };
        if !settled {
            let (status, cause, wake) = (head.status, &head.cause, head.wake_at_ms);
            let evidence = format!(
                "{} ({}) does not settle: {status:?}, {cause:?}, wake {wake:?}, {} steps, {pending} actions open",
                row.key, row.spec.moniker, head.steps
            );
            found.push(Broken { invariant: Invariant::L1, evidence });
        }
    }
    found
}

/// The archive takes up what is left.
async fn archived(world: &World) -> Vec<Broken> {
    let mut behind = Vec::new();
    for _ in 0..120 {
        let lag = world.store.lag().await.unwrap_or_default();
        behind = lag.into_iter().filter(|lag| lag.archived_seq < lag.seq).collect();
        if behind.is_empty() {
            return Vec::new();
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let evidence = format!("the archive does not catch up: {behind:?}");
    vec![Broken { invariant: Invariant::J1, evidence }]
}
