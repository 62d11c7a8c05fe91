//! Contract of `Sessions`.

use domain::ports::SessionQuery;
use schemas::api::SessionFilter;
use schemas::id::{ConversationId, Namespace, SessionKey};
use schemas::session::{SessionRow, SessionStatus, StopReason};

use super::Ports;
use super::build::*;

pub async fn suite(make: &impl AsyncFn() -> Ports) {
    a_row_is_read_as_written(&make().await).await;
    pages_go_from_new_to_old(&make().await).await;
    filters_combine(&make().await).await;
    agents_have_their_newest_session(&make().await).await;
    due_sessions_come_in_order(&make().await).await;
    heads_are_walked_and_made_due(&make().await).await;
    statuses_are_counted(&make().await).await;
    namespaces_never_mix(&make().await).await;
}

fn query(filter: SessionFilter) -> SessionQuery {
    SessionQuery { namespace: Namespace::default_ns(), filter, prefix: None, after: None, limit: 100 }
}

async fn names(ports: &Ports, query: &SessionQuery) -> Vec<String> {
    let rows = ports.sessions.list(query).await.expect("a list");
    rows.iter().map(|row| row.key.session_id.to_string()).collect()
}

async fn a_row_is_read_as_written(ports: &Ports) {
    let row = ports.created("s1", "agent").await;
    let owner = worker("w1");
    let epoch = ports.own(row.shard, &owner).await;
    let commit = with_head(next_commit(&row, epoch, 2), |head| {
        head.status = SessionStatus::Error;
        head.last_error = Some("it \"failed\": π\u{0}\n".to_owned());
        head.stop_reason = Some(StopReason::Failed);
        head.started_at_ms = Some(17);
        head.wake_at_ms = Some(-5);
    });
    ports.commit_one(&owner, commit.clone()).await;
    let after = ports.row(&key("s1")).await;
    assert_eq!(after.head, commit.entry.head, "the head is replaced, whole");
    assert_eq!(after, SessionRow { head: after.head.clone(), ..row }, "the rest stays");
    assert!(ports.sessions.session(&key("none")).await.unwrap().is_none());
    assert!(ports.sessions.latest(&Namespace::default_ns(), &agent_id("none")).await.unwrap().is_none());
}

async fn pages_go_from_new_to_old(ports: &Ports) {
    for n in 0..7 {
        ports.created(&format!("s{n}"), &format!("agent{n}")).await;
    }
    let all = ports.sessions.list(&query(SessionFilter::default())).await.expect("a list");
    assert_eq!(all.len(), 7);
    let place = |row: &SessionRow| (row.created_at_ms, row.key.session_id.clone());
    assert!(all.windows(2).all(|pair| place(&pair[0]) > place(&pair[1])), "by time, then id, descending");
    let mut paged: Vec<SessionRow> = Vec::new();
    loop {
        let after = paged.last().map(place);
        let page =
            ports.sessions.list(&SessionQuery { after, limit: 3, ..query(SessionFilter::default()) }).await.unwrap();
        if page.is_empty() {
            break;
        }
        paged.extend(page);
    }
    assert_eq!(paged, all, "pages neither skip nor repeat");
}

async fn filters_combine(ports: &Ports) {
    let owner = worker("w1");
    for (session, agent, moniker, conversation) in [
        ("one", "ann", "count", None),
        ("two", "ann", "echo", Some("c1")),
        ("three", "bob", "echo", Some("c1")),
        ("annex", "bob", "count", None),
    ] {
        let mut new = create(&format!("create-{session}"), session, agent);
        let spec = &mut new.session.as_mut().expect("a create").spec;
        spec.moniker = moniker.to_owned();
        spec.conversation_id = conversation.map(|id| ConversationId::parse(id).expect("an id"));
        accepted(&ports.accept(new).await);
    }
    for (session, status) in [("one", SessionStatus::Paused), ("three", SessionStatus::Paused)] {
        let row = ports.row(&key(session)).await;
        let epoch = ports.own(row.shard, &owner).await;
        ports.commit_one(&owner, with_head(next_commit(&row, epoch, 1), |head| head.status = status)).await;
    }
    let found = async |query: SessionQuery| {
        let mut names = names(ports, &query).await;
        names.sort();
        names.join(" ")
    };
    let base = SessionFilter::default;
    let ann = Some(agent_id("ann"));
    let c1 = ConversationId::parse("c1").ok();
    let ids = ["one", "three", "none", "one"].map(session_id).to_vec();
    let paused = vec![SessionStatus::Paused];
    let starting_too = vec![SessionStatus::Paused, SessionStatus::Starting];
    let echo = Some("echo".to_owned());
    let cases = [
        (base(), "annex one three two"),
        (SessionFilter { agent_id: ann.clone(), ..base() }, "one two"),
        (SessionFilter { moniker: echo.clone(), ..base() }, "three two"),
        (SessionFilter { conversation_id: c1, ..base() }, "three two"),
        (SessionFilter { status: paused.clone(), ..base() }, "one three"),
        (SessionFilter { status: starting_too, ..base() }, "annex one three two"),
        (SessionFilter { status: vec![SessionStatus::Completed], ..base() }, ""),
        (SessionFilter { session_ids: ids.clone(), ..base() }, "one three"),
        (SessionFilter { session_ids: ids, agent_id: ann.clone(), ..base() }, "one"),
        (SessionFilter { agent_id: ann, status: paused.clone(), ..base() }, "one"),
        (SessionFilter { moniker: echo, status: paused, ..base() }, "three"),
    ];
    for (filter, expected) in cases {
        assert_eq!(found(query(filter.clone())).await, expected, "{filter:?}");
    }
    let prefixed = |prefix: &str| SessionQuery { prefix: Some(prefix.to_owned()), ..query(base()) };
    assert_eq!(found(prefixed("ann")).await, "annex one two", "of session or agent");
    assert_eq!(found(prefixed("t")).await, "three two");
    assert_eq!(found(prefixed("T")).await, "", "case counts");
    assert_eq!(found(prefixed("_")).await, "", "no wildcards");
    assert_eq!(found(prefixed("%")).await, "", "no wildcards");
    assert_eq!(found(SessionQuery { limit: 0, ..query(base()) }).await, "");
}

async fn agents_have_their_newest_session(ports: &Ports) {
    for (session, agent) in [("b1", "bob"), ("z", "ann"), ("a", "ann"), ("c1", "cid"), ("c2", "cid"), ("c3", "cid")] {
        ports.created(session, agent).await;
    }
    let page = async |after: Option<&str>, limit| {
        let after = after.map(agent_id);
        let agents = ports.sessions.agents(&Namespace::default_ns(), after.as_ref(), limit).await.expect("agents");
        let text = |(row, count): &(SessionRow, u64)| format!("{}:{}:{count}", row.agent_id, row.key.session_id);
        agents.iter().map(text).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(page(None, 100).await, "ann:a:2 bob:b1:1 cid:c3:3");
    assert_eq!(page(None, 2).await, "ann:a:2 bob:b1:1");
    assert_eq!(page(Some("bob"), 2).await, "cid:c3:3");
    assert_eq!(page(Some("cid"), 2).await, "");
    assert_eq!(page(Some("anna"), 1).await, "bob:b1:1", "after an agent that does not exist");
}

async fn due_sessions_come_in_order(ports: &Ports) {
    let owner = worker("w1");
    let mut rows = Vec::new();
    for n in 0..40 {
        rows.push(ports.created(&format!("s{n}"), "agent").await);
    }
    let shard = rows[0].shard;
    let mut expected: Vec<(i64, SessionKey)> = Vec::new();
    for (n, row) in rows.iter().enumerate() {
        // Times that repeat, some of them never.
        let wake_at_ms = (n % 5 != 4).then_some(1_000 + (n % 5) as i64);
        let epoch = ports.own(row.shard, &owner).await;
        ports.commit_one(&owner, with_head(next_commit(row, epoch, 1), |head| head.wake_at_ms = wake_at_ms)).await;
        if let (Some(at), true) = (wake_at_ms, row.shard == shard) {
            expected.push((at, row.key.clone()));
        }
    }
    expected.sort();
    let due = async |until, after, limit| ports.sessions.due(shard, until, after, limit).await.expect("due sessions");
    assert_eq!(due(2_000, None, 100).await, expected);
    let early: Vec<_> = expected.iter().filter(|(at, _)| *at <= 1_001).cloned().collect();
    assert_eq!(due(1_001, None, 100).await, early, "the bound is inclusive");
    assert!(due(999, None, 100).await.is_empty());
    let mut paged: Vec<(i64, SessionKey)> = Vec::new();
    loop {
        let page = due(2_000, paged.last().cloned(), 2).await;
        if page.is_empty() {
            break;
        }
        paged.extend(page);
    }
    assert_eq!(paged, expected, "pages neither skip nor repeat");
    // What a later commit clears is not due any more.
    let (_, first) = expected[0].clone();
    let row = ports.row(&first).await;
    let epoch = ports.own(shard, &owner).await;
    ports.commit_one(&owner, with_head(next_commit(&row, epoch, 1), |head| head.wake_at_ms = None)).await;
    assert_eq!(due(2_000, None, 100).await, expected[1..]);
}

async fn heads_are_walked_and_made_due(ports: &Ports) {
    let owner = worker("w1");
    let mut lost = None;
    for (session, wake, status) in [
        ("s1", Some(5_000), SessionStatus::Running),
        ("s2", None, SessionStatus::Running),
        ("s3", None, SessionStatus::Completed),
    ] {
        let row = ports.created(session, "agent").await;
        let epoch = ports.own(row.shard, &owner).await;
        let commit = with_head(next_commit(&row, epoch, 1), |head| (head.wake_at_ms, head.status) = (wake, status));
        ports.commit_one(&owner, commit).await;
        if session == "s2" {
            lost = Some(ports.row(&row.key).await);
        }
    }
    let first = key("s1");
    let heads = async |after, limit| ports.sessions.heads(after, limit).await.expect("heads");
    let all = heads(None, 100).await;
    assert_eq!(all.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>(), ["s1", "s2", "s3"].map(key));
    assert_eq!(all[1].1, ports.row(&key("s2")).await.head);
    assert_eq!(heads(Some(&first), 1).await, all[1..2], "pages neither skip nor repeat");

    let lost = lost.expect("s2 is there");
    let offset = lost.head.next_offset;
    let rearm = async |name: &str, offset| ports.sessions.rearm(&key(name), offset).await.expect("an answer");
    assert!(!rearm("s1", all[0].1.next_offset).await, "it has a wake time");
    assert!(!rearm("s2", offset + 1).await, "something was committed since");
    assert!(!rearm("s3", all[2].1.next_offset).await, "it is at rest");
    assert!(!rearm("none", 1).await);
    assert!(rearm("s2", offset).await && !rearm("s2", offset).await, "once is enough");
    let due = ports.sessions.due(lost.shard, i64::MAX, None, 10).await.expect("due sessions");
    assert!(due.iter().any(|(_, due)| *due == lost.key), "its owner finds it");
    assert!(heads(None, 100).await[1].1.wake_at_ms.is_some(), "what is due is what is walked");
    // The commit after it replaces the wake time.
    let epoch = ports.own(lost.shard, &owner).await;
    ports.commit_one(&owner, with_head(next_commit(&lost, epoch, 1), |head| head.wake_at_ms = Some(7))).await;
    assert_eq!(heads(Some(&first), 1).await[0].1.wake_at_ms, Some(7));
}

async fn statuses_are_counted(ports: &Ports) {
    let owner = worker("w1");
    for (session, status) in [("s1", None), ("s2", None), ("s3", Some(SessionStatus::Paused))] {
        let row = ports.created(session, "agent").await;
        if let Some(status) = status {
            let epoch = ports.own(row.shard, &owner).await;
            ports.commit_one(&owner, with_head(next_commit(&row, epoch, 1), |head| head.status = status)).await;
        }
    }
    ports.accept(in_namespace("other", create("a1", "s1", "agent"))).await;
    let mut counts = ports.sessions.count_by_status().await.expect("counts");
    counts.retain(|(_, count)| *count > 0);
    counts.sort();
    assert_eq!(counts, [(SessionStatus::Starting, 3), (SessionStatus::Paused, 1)]);
}

async fn namespaces_never_mix(ports: &Ports) {
    ports.created("s1", "agent").await;
    accepted(&ports.accept(in_namespace("other", create("a1", "s2", "agent"))).await);
    let other = namespace("other");
    assert_eq!(names(ports, &query(SessionFilter::default())).await, ["s1"]);
    let of_other = SessionQuery { namespace: other.clone(), ..query(SessionFilter::default()) };
    assert_eq!(names(ports, &of_other).await, ["s2"]);
    let ids = SessionFilter { session_ids: vec![session_id("s2")], ..SessionFilter::default() };
    assert!(names(ports, &query(ids)).await.is_empty());
    assert!(ports.sessions.session(&SessionKey::new(other.clone(), session_id("s1"))).await.unwrap().is_none());
    let newest = ports.sessions.latest(&Namespace::default_ns(), &agent_id("agent")).await.unwrap();
    assert_eq!(newest.map(|row| row.key), Some(key("s1")));
    let agents = ports.sessions.agents(&other, None, 10).await.unwrap();
    assert_eq!(
        agents.iter().map(|(row, count)| (row.key.session_id.as_str(), *count)).collect::<Vec<_>>(),
        [("s2", 1)]
    );
}
