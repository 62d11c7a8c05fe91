//! Searches and lists.

use domain::memory::{MemoryFilter, MemoryQuery, NewMemory, Weights};
use domain::ports::MemoryListQuery;
use schemas::limits::MEMORY_SCAN_PAGE;
use schemas::memory::{MemoryOwner, MemoryTier};
use serde_json::json;

use super::super::Ports;
use super::{by_id, found, id, new, owner, query, vector, write};

pub async fn suite(make: &impl AsyncFn() -> Ports) {
    meaning_words_and_significance_count(&make().await).await;
    searches_see_every_change(&make().await).await;
    filters_narrow(&make().await).await;
    lists_are_paged_latest_first(&make().await).await;
    scans_are_read_in_pages(&make().await).await;
}

async fn meaning_words_and_significance_count(ports: &Ports) {
    let owner = owner("finder");
    for (name, content, numbers, significance) in [
        ("both", "green apple", [1.0, 0.0], 0.5),
        ("meaning", "nothing of it", [0.9, 0.1], 0.5),
        ("words", "an apple a day", [0.0, 1.0], 0.5),
        ("neither", "rain", [0.0, 1.0], 1.0),
        ("dear", "of great weight", [0.8, 0.6], 1.0),
    ] {
        let embedding = vector("m", &numbers);
        write(ports, &owner, &NewMemory { embedding, significance, ..new(name, content) }).await;
    }
    let apple = query("apple", vector("m", &[1.0, 0.0]));
    assert_eq!(found(ports, &owner, &apple).await, ["both", "dear", "meaning", "words"]);
    let relevance_alone = Weights { significance: 0.0, ..Weights::default() };
    let by_relevance = MemoryQuery { weights: relevance_alone, ..apple.clone() };
    assert_eq!(found(ports, &owner, &by_relevance).await, ["both", "meaning", "dear", "words"]);
    assert_eq!(found(ports, &owner, &query("apple", None)).await.len(), 2, "without a vector, by words");
    assert_eq!(found(ports, &owner, &MemoryQuery { limit: 2, ..apple.clone() }).await, ["both", "dear"]);
    let hits = ports.memories.search(&owner, &apple).await.expect("a search").hits;
    assert_eq!(hits[0].memory.content, "green apple");
    assert!(hits.iter().all(|hit| hit.relevance > 0.0 && hit.score <= 1.0));
    assert!(found(ports, &owner, &query("", None)).await.is_empty());
}

async fn searches_see_every_change(ports: &Ports) {
    let owner = owner("finder");
    // Enough writes that an archive would have some of them, and not others.
    for n in 0..7 {
        let embedding = vector("m", &[1.0, 0.0]);
        write(ports, &owner, &NewMemory { embedding, ..new(&format!("m{n}"), "apple") }).await;
    }
    let apple = query("apple", vector("m", &[1.0, 0.0]));
    assert_eq!(found(ports, &owner, &apple).await.len(), 7);
    write(ports, &owner, &NewMemory { embedding: vector("m", &[0.0, 1.0]), ..new("m0", "pear") }).await;
    assert!(ports.memories.delete(&owner, &by_id("m1")).await.expect("deleted"));
    let mut left = found(ports, &owner, &apple).await;
    left.sort();
    assert_eq!(left, ["m2", "m3", "m4", "m5", "m6"], "what no longer matches hides what did");
    assert_eq!(found(ports, &owner, &query("pear", None)).await, ["m0"]);
}

async fn filters_narrow(ports: &Ports) {
    let owner = owner("finder");
    for (name, tier, kind, conversation) in [
        ("a", MemoryTier::Core, "fact", "c1"),
        ("b", MemoryTier::Working, "fact", "c2"),
        ("c", MemoryTier::Archival, "episode", "c1"),
        ("d", MemoryTier::Archival, "fact", "c1"),
    ] {
        let metadata = json!({"conversation_id": conversation}).as_object().cloned().expect("an object");
        let significance = if name == "d" { 0.9 } else { 0.5 };
        write(ports, &owner, &NewMemory { tier, kind: kind.into(), metadata, significance, ..new(name, "apple") })
            .await;
    }
    let conversation = json!({"conversation_id": "c1"}).as_object().cloned().expect("an object");
    let all = MemoryFilter::default;
    for (filter, wanted) in [
        (all(), vec!["a", "b", "c", "d"]),
        (MemoryFilter { tiers: vec![MemoryTier::Core], ..all() }, vec!["a"]),
        (MemoryFilter { tiers: vec![MemoryTier::Core, MemoryTier::Working], ..all() }, vec!["a", "b"]),
        (MemoryFilter { kinds: vec!["episode".into()], ..all() }, vec!["c"]),
        (MemoryFilter { kinds: vec!["episode".into(), "fact".into()], ..all() }, vec!["a", "b", "c", "d"]),
        (MemoryFilter { metadata: conversation.clone(), kinds: vec!["fact".into()], ..all() }, vec!["a", "d"]),
        (MemoryFilter { min_significance: Some(0.6), ..all() }, vec!["d"]),
        (MemoryFilter { since_ms: Some(i64::MAX), ..all() }, vec![]),
        (MemoryFilter { since_ms: Some(0), ..all() }, vec!["a", "b", "c", "d"]),
    ] {
        let mut names = found(ports, &owner, &MemoryQuery { filter: filter.clone(), ..query("apple", None) }).await;
        names.sort();
        assert_eq!(names, wanted, "{filter:?}");
        let mut names = listed(ports, &owner, &filter, 2).await;
        names.sort();
        assert_eq!(names, wanted, "{filter:?}");
    }
}

/// Names of all pages.
async fn listed(ports: &Ports, owner: &MemoryOwner, filter: &MemoryFilter, limit: usize) -> Vec<String> {
    let (mut names, mut after) = (Vec::new(), None);
    loop {
        let query = MemoryListQuery { filter: filter.clone(), after, limit };
        let page = ports.memories.list(owner, &query).await.expect("a page");
        assert!(page.rows.len() <= limit);
        names.extend(page.rows.into_iter().map(|memory| memory.id.to_string()));
        match page.next {
            Some(next) => after = Some(next),
            None => return names,
        }
    }
}

async fn lists_are_paged_latest_first(ports: &Ports) {
    let owner = owner("finder");
    let all = MemoryFilter::default();
    assert_eq!(listed(ports, &owner, &all, 3).await, Vec::<String>::new());
    for n in 0..7 {
        write(ports, &owner, &new(&format!("m{n}"), "x")).await;
    }
    for limit in [1, 3, 7, 100] {
        let mut places = Vec::new();
        for name in listed(ports, &owner, &all, limit).await {
            let memory = super::read(ports, &owner, &by_id(&name)).await.expect("it is there");
            places.push((memory.updated_at_ms, memory.id));
        }
        assert_eq!(places.len(), 7, "each once, in pages of {limit}");
        assert!(places.windows(2).all(|pair| pair[0] > pair[1]), "latest first: {places:?}");
    }
    assert_eq!(listed(ports, &owner, &all, 1).await.len(), 7);
    // Later, so that it is the latest whatever the clock's resolution.
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    write(ports, &owner, &new("m3", "changed")).await;
    assert_eq!(listed(ports, &owner, &all, 3).await[0], "m3");
    let first = MemoryListQuery { filter: all, after: Some((i64::MIN, id("a"))), limit: 9 };
    assert_eq!(ports.memories.list(&owner, &first).await.expect("a page").rows, []);
}

async fn scans_are_read_in_pages(ports: &Ports) {
    let owner = owner("finder");
    let count = MEMORY_SCAN_PAGE + 3;
    for n in 0..count {
        let content = if n % 100 == 2 { "needle" } else { "hay" };
        write(ports, &owner, &new(&format!("m{n:04}"), content)).await;
    }
    let mut names = found(ports, &owner, &query("needle", None)).await;
    names.sort();
    assert_eq!(names, ["m0002", "m0102", "m0202", "m0302", "m0402", "m0502"]);
    assert_eq!(listed(ports, &owner, &MemoryFilter::default(), 200).await.len(), count);
}
