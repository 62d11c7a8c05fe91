//! Contract of `TranscriptTail`: what is said waits until it is recorded as archived, wherever it was said.

mod light;

use domain::conversation::kept::{LogPlace, Stretch};
use domain::ports::{Post, Posted, UnarchivedRow};
use schemas::conversation::Talk;
use schemas::id::Namespace;

use super::Ports;
use super::build::*;
use super::words::*;

pub async fn suite(make: &impl AsyncFn() -> Ports) {
    what_is_said_waits_until_it_is_recorded(&make().await).await;
    nothing_that_waits_is_passed_over(&make().await).await;
    pages_go_through_all_logs(&make().await).await;
    pages_are_bounded_in_bytes(&make().await).await;
    ends_are_those_of_the_archive(&make().await).await;
    light::suite(make).await;
}

fn at(namespace: &Namespace, conversation: &str, offset: u64) -> LogPlace {
    LogPlace { namespace: namespace.clone(), conversation_id: conversation_id(conversation), offset }
}

fn stretch(conversation: &str, first: u64, upto: u64) -> Stretch {
    Stretch { first: at(&Namespace::default_ns(), conversation, first), upto }
}

fn log(ids: &[&str]) -> Talk {
    Talk { log: ids.iter().map(|id| note(id)).collect(), ..Talk::default() }
}

/// The places of a page.
async fn page(ports: &Ports, after: Option<&LogPlace>, limit: usize, bytes: usize) -> Vec<LogPlace> {
    let rows = ports.transcripts.unarchived(after, limit, bytes).await.expect("a read");
    let place = |(place, row): UnarchivedRow| {
        assert_eq!(row.expect("a record").offset, place.offset);
        place
    };
    rows.into_iter().map(place).collect()
}

/// All places, as `conversation:offset`.
async fn waiting(ports: &Ports) -> Vec<String> {
    let places = page(ports, None, 100, usize::MAX).await;
    places.iter().map(|place| format!("{}:{}", place.conversation_id, place.offset)).collect()
}

async fn recorded(ports: &Ports, stretches: &[Stretch]) {
    ports.transcripts.record_archived(stretches).await.expect("recorded");
}

async fn what_is_said_waits_until_it_is_recorded(ports: &Ports) {
    let owner = worker("w1");
    ports.talker("s1", "c1").await;
    assert!(waiting(ports).await.is_empty(), "nothing was said");
    ports.say(&owner, "s1", log(&["n1", "n2"])).await;
    assert_eq!(waiting(ports).await, ["c1:1", "c1:2"]);
    let rows = ports.transcripts.unarchived(None, 100, usize::MAX).await.expect("a read");
    let records: Vec<_> = rows.into_iter().map(|(_, row)| row.expect("a record")).collect();
    assert_eq!(records, ports.log_of("c1").await, "whole records");
    recorded(ports, &[stretch("c1", 1, 1)]).await;
    assert_eq!(waiting(ports).await, ["c1:2"]);
    // Said while the archive writes: it goes on waiting.
    ports.say(&owner, "s1", log(&["n3"])).await;
    recorded(ports, &[stretch("c1", 2, 2)]).await;
    assert_eq!(waiting(ports).await, ["c1:3"]);
    recorded(ports, &[stretch("c1", 3, 3)]).await;
    assert!(waiting(ports).await.is_empty());
    let post = Post {
        namespace: Namespace::default_ns(),
        conversation_id: conversation_id("c1"),
        record: message("m1", "hello"),
        actions: Vec::new(),
    };
    let posted = ports.conversations.post(post.clone()).await.expect("a write");
    assert!(matches!(posted, Posted::Done { offset: 4, .. }), "{posted:?}");
    assert_eq!(waiting(ports).await, ["c1:4"]);
    recorded(ports, &[stretch("c1", 4, 4)]).await;
    // Said twice is said once, and does not wait again.
    ports.conversations.post(post).await.expect("a write");
    ports.say(&owner, "s1", log(&["n3"])).await;
    assert!(waiting(ports).await.is_empty());
}

async fn nothing_that_waits_is_passed_over(ports: &Ports) {
    let owner = worker("w1");
    ports.talker("s1", "c1").await;
    ports.say(&owner, "s1", log(&["n1", "n2", "n3", "n4"])).await;
    recorded(ports, &[stretch("c1", 2, 4)]).await;
    assert_eq!(waiting(ports).await.len(), 4, "the first record is not among them");
    recorded(ports, &[stretch("c1", 1, 2), stretch("none", 1, 9)]).await;
    recorded(ports, &[stretch("c1", 1, 2)]).await;
    recorded(ports, &[stretch("c1", 4, 4)]).await;
    assert_eq!(waiting(ports).await, ["c1:3", "c1:4"], "a repeat changes nothing, and takes nothing back");
    recorded(ports, &[stretch("c1", 1, 3)]).await;
    assert_eq!(waiting(ports).await, ["c1:4"], "an overlap counts as far as it goes");
}

async fn pages_go_through_all_logs(ports: &Ports) {
    let (owner, other) = (worker("w1"), namespace("other"));
    for (session, conversation) in [("s1", "c1"), ("s2", "c2"), ("s3", "c3")] {
        ports.talker(session, conversation).await;
    }
    ports.say(&owner, "s1", log(&["n1", "n2", "n3"])).await;
    ports.say(&owner, "s3", log(&["n1", "n2"])).await;
    ports.conversations.create(&other, &conversation("c1"), &[], &[message("m1", "x")]).await.expect("created");
    let default = Namespace::default_ns();
    let all = [("c1", 1), ("c1", 2), ("c1", 3), ("c3", 1), ("c3", 2)].map(|(id, offset)| at(&default, id, offset));
    let all: Vec<LogPlace> = all.into_iter().chain([at(&other, "c1", 1)]).collect();
    for limit in [1, 2, 4, 100] {
        let mut found: Vec<LogPlace> = Vec::new();
        loop {
            let places = page(ports, found.last(), limit, usize::MAX).await;
            if places.is_empty() {
                break;
            }
            assert!(places.len() <= limit);
            found.extend(places);
        }
        assert_eq!(found, all, "{limit} at a time");
    }
    // The rest of a log is left out by its end.
    for limit in [1, 100] {
        let end = at(&default, "c1", u64::MAX);
        assert_eq!(page(ports, Some(&end), limit, usize::MAX).await.first(), Some(&all[3]));
    }
}

async fn pages_are_bounded_in_bytes(ports: &Ports) {
    let owner = worker("w1");
    ports.talker("s1", "c1").await;
    ports.say(&owner, "s1", log(&["n1", "n2", "n3"])).await;
    let bytes = note("n1").body.as_str().len();
    assert_eq!(page(ports, None, 100, 0).await.len(), 1, "always one");
    assert_eq!(page(ports, None, 100, 2 * bytes).await.len(), 2);
    assert_eq!(page(ports, None, 100, 2 * bytes - 1).await.len(), 1);
    assert_eq!(page(ports, None, 100, 3 * bytes).await.len(), 3);
}

async fn ends_are_those_of_the_archive(ports: &Ports) {
    let owner = worker("w1");
    for (session, conversation) in [("s1", "c1"), ("s2", "c2"), ("s3", "c3")] {
        ports.talker(session, conversation).await;
    }
    ports.say(&owner, "s1", log(&["n1", "n2"])).await;
    ports.say(&owner, "s2", log(&["n1", "n2"])).await;
    recorded(ports, &[stretch("c1", 1, 2), stretch("c2", 1, 1)]).await;
    let default = Namespace::default_ns();
    let ends = ports.transcripts.archived_ends(None, 100).await.expect("a read");
    assert_eq!(ends, [at(&default, "c1", 2), at(&default, "c2", 1), at(&default, "c3", 0)]);
    let first = ports.transcripts.archived_ends(None, 1).await.expect("a read");
    let rest = ports.transcripts.archived_ends(first.last(), 100).await.expect("a read");
    assert_eq!((first.len(), &rest[..]), (1, &ends[1..]));
}
