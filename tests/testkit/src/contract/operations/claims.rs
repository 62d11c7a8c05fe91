//! Claims that are given up before they end, and which of several is meant.

use super::*;

pub async fn suite(make: &impl AsyncFn() -> Ports) {
    a_claim_is_told_by_its_end(&make().await).await;
    what_its_holder_leaves_is_running_and_anybodys(&make().await).await;
}

fn back() -> Ended {
    Ended::Back { after_ms: 1, error: "not begun".to_owned() }
}

fn left(after_ms: u64) -> Ended {
    Ended::Left { after_ms, error: "\"stopped\"".to_owned() }
}

async fn end(ports: &Ports, claim: Option<Claim<'_>>, ended: Ended) -> Ending {
    let (namespace, id) = (Namespace::default_ns(), operation_id("o1"));
    ports.operations.end(&namespace, &id, claim, ended).await.expect("a write")
}

/// Several workers may go by one name, and a request may come twice.
async fn a_claim_is_told_by_its_end(ports: &Ports) {
    let owner = with_session(ports).await;
    ports.dispatch(&owner, "s1", vec![operation("o1", "s1")]).await;
    let first = claim(ports, "us", 1).await.remove(0).operation;
    let this = Claim { claimant: "us", until_ms: first.until_ms };
    let other = Claim { claimant: "them", ..this };
    assert!(matches!(end(ports, Some(other), back()).await, Ending::NotOpen), "it is not theirs");
    assert!(matches!(end(ports, Some(this), back()).await, Ending::Scheduled));
    ports.pass(MOMENT_MS).await;
    let second = claim(ports, "us", 1).await.remove(0).operation;
    assert_eq!((second.attempt, second.lost), (first.attempt, 0), "nothing else tells them apart");
    assert!(second.until_ms > first.until_ms);
    let again = Ended::Again { after_ms: 1, error: "failed".to_owned(), lost: true };
    for late in [back(), left(1), again.clone()] {
        assert!(matches!(end(ports, Some(this), late).await, Ending::NotOpen), "it has a later claim");
    }
    let stored = ports.work("o1").await.operation;
    assert_eq!(stored, Operation { state: OperationState::Running, ..second.clone() }, "nothing was written");
    let later = Claim { until_ms: second.until_ms, ..this };
    assert!(matches!(end(ports, Some(later), again).await, Ending::Scheduled));
}

/// As if the claim had ended by itself.
async fn what_its_holder_leaves_is_running_and_anybodys(ports: &Ports) {
    let owner = with_session(ports).await;
    ports.dispatch(&owner, "s1", vec![operation("o1", "s1")]).await;
    assert!(matches!(end(ports, None, left(0)).await, Ending::NotOpen), "nobody has it");
    let first = claim(ports, "me", 1).await.remove(0).operation;
    let this = Some(Claim { claimant: "me", until_ms: first.until_ms });
    assert!(matches!(end(ports, this, left(3_600_000)).await, Ending::Scheduled));
    assert!(matches!(end(ports, this, left(0)).await, Ending::NotOpen), "once is enough");
    let row = ports.work("o1").await.operation;
    assert_eq!((row.state, row.attempt, row.lost), (OperationState::Running, 1, 0));
    assert_eq!((row.claimed_by, row.until_ms, row.error.as_deref()), (None, None, Some("\"stopped\"")));
    assert!(row.due_at_ms >= first.created_at_ms + 3_600_000);
    assert!(claim(ports, "other", 1).await.is_empty(), "not yet");
    assert!(matches!(end(ports, None, left(0)).await, Ending::Scheduled));
    let again = claim(ports, "other", 1).await.remove(0).operation;
    assert_eq!((again.state, again.attempt, again.lost), (OperationState::Running, 2, 1), "which counts it as lost");
    let elsewhere = ports.operations.end(&namespace("other"), &operation_id("o1"), None, left(0)).await;
    assert!(matches!(elsewhere.expect("a write"), Ending::NotOpen), "nothing crosses a namespace");
}
