//! Memory decisions on plain values.

use proptest::prelude::*;
use schemas::id::{AgentId, Namespace};
use schemas::limits::{
    MEMORY_BLOCKS_BYTES_MAX, MEMORY_CONTENT_BYTES_MAX, MEMORY_INLINE_BYTES_MAX, MEMORY_QUERY_TERMS_MAX,
    MEMORY_SHOWN_BYTES_MAX,
};

use super::search::{Ranked, Scanned, Search, Words, hits};
use super::terms::{Bag, Collection, Terms};
use super::vector::{Probe, from_bytes, to_bytes};
use super::*;

mod inputs;

fn id(text: &str) -> MemoryId {
    MemoryId::parse(text).expect("an id")
}

fn memory(name: &str, tier: MemoryTier, content: &str) -> Memory {
    Memory {
        id: id(name),
        namespace: Namespace::default_ns(),
        agent_id: AgentId::parse("agent").expect("an id"),
        label: None,
        tier,
        kind: "note".into(),
        content: content.into(),
        content_ref: None,
        significance: 0.5,
        metadata: Map::new(),
        embedding_model: None,
        version: 1,
        created_at_ms: 0,
        updated_at_ms: 0,
    }
}

fn query(text: &str, vector: Option<&[f32]>) -> MemoryQuery {
    MemoryQuery {
        text: text.into(),
        embedding: vector.map(|vector| Embedding { model: "m".into(), vector: vector.to_vec() }),
        filter: MemoryFilter::default(),
        weights: Weights::default(),
        min_relevance: 0.0,
        limit: 10,
    }
}

/// Name, content, vector of model `m`, significance.
type Row<'r> = (&'r str, &'r str, Option<&'r [f32]>, f64);

fn ranked(query: &MemoryQuery, rows: &[Row<'_>]) -> Vec<Ranked> {
    let mut search = Search::new(query);
    for (name, content, vector, significance) in rows {
        let stored = vector.map(to_bytes);
        let traits = Traits {
            tier: MemoryTier::Archival,
            kind: "note",
            significance: *significance,
            metadata: "{}",
            updated_at_ms: 1,
        };
        let embedding = stored.as_deref().map(|bytes| ("m", bytes));
        search.see(&Scanned { id: &id(name), traits, words: Words::Text { label: None, content }, embedding });
    }
    search.finish()
}

fn names(ranked: &[Ranked]) -> Vec<&str> {
    ranked.iter().map(|one| one.id.as_str()).collect()
}

#[test]
fn vectors_come_back_and_only_comparable_ones_are_compared() {
    let vector = [0.25f32, -1.5, 3.0e-20];
    assert_eq!(from_bytes(&to_bytes(&vector)).as_deref(), Some(&vector[..]));
    assert_eq!(from_bytes(&[1, 2, 3]), None);
    let embedding = Embedding { model: "m".into(), vector: vec![3.0, 4.0] };
    let probe = Probe::new(&embedding).expect("a direction");
    let near = |similarity: Option<f64>, wanted: f64| similarity.is_some_and(|found| (found - wanted).abs() < 1e-6);
    assert!(near(probe.similarity("m", &to_bytes(&[30.0, 40.0])), 1.0), "length does not matter");
    assert!(near(probe.similarity("m", &to_bytes(&[4.0, 3.0])), 0.96));
    assert_eq!(probe.similarity("m", &to_bytes(&[-3.0, -4.0])), Some(0.0));
    assert_eq!(probe.similarity("m", &to_bytes(&[0.0, 0.0])), Some(0.0));
    assert_eq!(probe.similarity("m", &to_bytes(&[f32::NAN, 1.0])), Some(0.0));
    assert_eq!(probe.similarity("other", &to_bytes(&[3.0, 4.0])), None);
    assert_eq!(probe.similarity("m", &to_bytes(&[3.0, 4.0, 0.0])), None);
    for none in [vec![], vec![0.0, 0.0], vec![f32::NAN, 1.0], vec![f32::INFINITY, 1.0]] {
        assert!(Probe::new(&Embedding { model: "m".into(), vector: none }).is_none());
    }
}

#[test]
fn words_are_found_in_any_case_and_script() {
    let terms = Terms::of("Über API-Keys, über 東京");
    assert_eq!(terms.len(), 5, "über, api, keys, 東, 京");
    let counts = terms.count(["the api: KEYS keys", "ÜBER 東"]);
    assert_eq!((counts.found.iter().sum::<u32>(), counts.words), (5, 6));
    for text in ["the api: KEYS keys", "ÜBER 東", "keys keys api", "", "nothing of it"] {
        assert_eq!(terms.count_in(&Bag::of([text, "京"])), terms.count([text, "京"]), "{text}");
    }
    let many: String = (0..200).map(|n| format!("w{n} ")).collect();
    assert_eq!(Terms::of(&many).len(), MEMORY_QUERY_TERMS_MAX);
    assert!(Terms::of(" .,!? ").is_empty());
}

#[test]
fn rare_words_count_more_and_a_missing_word_is_missed() {
    let terms = Terms::of("the zebra");
    let texts = ["the cat", "the dog", "the zebra", "zebra crossing", "the end"];
    let counts: Vec<_> = texts.iter().map(|text| terms.count([*text])).collect();
    let mut all = Collection::default();
    counts.iter().for_each(|counts| all.add(counts));
    let scores: Vec<f64> = counts.iter().map(|counts| all.score(counts)).collect();
    assert!((scores[2] - 1.0).abs() < 1e-9, "every word once, of usual length: {scores:?}");
    assert!(scores[3] > 2.0 * scores[0] && scores[0] > 0.0, "{scores:?}");
    assert_eq!(all.score(&terms.count(["nothing of it"])), 0.0);
    assert_eq!(Collection::default().score(&Terms::of("").count(["x"])), 0.0);
}

#[test]
fn meaning_words_and_significance_make_one_order() {
    let rows: [Row<'_>; 4] = [
        ("a", "nothing of it", Some(&[1.0, 0.0]), 0.5),
        ("b", "a green apple", Some(&[0.0, 1.0]), 0.5),
        ("c", "a green apple", Some(&[1.0, 0.0]), 0.5),
        ("d", "neither nor", Some(&[0.0, 1.0]), 1.0),
    ];
    assert_eq!(names(&ranked(&query("apple", Some(&[1.0, 0.0])), &rows)), ["c", "a", "b"]);
    assert_eq!(names(&ranked(&query("apple", None), &rows)), ["b", "c"], "without a vector, words alone");
    let only_words = Weights { vector: 0.0, text: 1.0, significance: 0.0 };
    let by_words = MemoryQuery { weights: only_words, ..query("apple", Some(&[1.0, 0.0])) };
    assert_eq!(names(&ranked(&by_words, &rows)), ["b", "c"]);
    let few = MemoryQuery { limit: 1, ..query("apple", Some(&[1.0, 0.0])) };
    assert_eq!(names(&ranked(&few, &rows)), ["c"]);
    let strict = MemoryQuery { min_relevance: 0.9, ..query("apple", Some(&[1.0, 0.0])) };
    assert_eq!(names(&ranked(&strict, &rows)), ["c"]);
}

#[test]
fn high_significance_can_outrank_higher_relevance() {
    let rows: [Row<'_>; 2] = [("dull", "x", Some(&[1.0, 0.0]), 0.0), ("dear", "x", Some(&[0.8, 0.6]), 1.0)];
    let by = |significance| {
        let weights = Weights { significance, ..Weights::default() };
        MemoryQuery { weights, ..query("y", Some(&[1.0, 0.0])) }
    };
    assert_eq!(names(&ranked(&by(0.0), &rows)), ["dull", "dear"], "relevance alone");
    assert_eq!(names(&ranked(&by(Weights::default().significance), &rows)), ["dear", "dull"]);
}

#[test]
fn vectors_of_another_model_are_not_compared() {
    let bytes = to_bytes(&[1.0, 0.0]);
    let query = query("apple", Some(&[1.0, 0.0]));
    let mut search = Search::new(&query);
    let traits = Traits { tier: MemoryTier::Core, kind: "k", significance: 0.5, metadata: "{}", updated_at_ms: 1 };
    for (name, content) in [("said", "an apple"), ("unsaid", "a pear")] {
        let embedding = Some(("another", &bytes[..]));
        search.see(&Scanned { id: &id(name), traits, words: Words::Text { label: None, content }, embedding });
    }
    let found = search.finish();
    assert_eq!(names(&found), ["said"]);
    assert!(found[0].relevance < Weights::default().text + 1e-9, "by its words alone");
}

#[test]
fn filters_narrow_what_is_looked_at() {
    let metadata = json!({"conversation_id": "c1", "n": 2}).as_object().cloned().expect("an object");
    let traits = Traits {
        tier: MemoryTier::Working,
        kind: "turn",
        significance: 0.4,
        metadata: r#"{"conversation_id":"c1","n":2,"x":null}"#,
        updated_at_ms: 100,
    };
    let all = MemoryFilter {
        tiers: vec![MemoryTier::Core, MemoryTier::Working],
        kinds: vec!["turn".into()],
        min_significance: Some(0.4),
        metadata,
        since_ms: Some(100),
    };
    assert!(all.matches(&traits) && MemoryFilter::default().matches(&traits));
    let other = |text: &str| json!({"conversation_id": text}).as_object().cloned().expect("an object");
    for narrower in [
        MemoryFilter { tiers: vec![MemoryTier::Core], ..all.clone() },
        MemoryFilter { kinds: vec!["fact".into()], ..all.clone() },
        MemoryFilter { min_significance: Some(0.41), ..all.clone() },
        MemoryFilter { metadata: other("c2"), ..all.clone() },
        MemoryFilter { since_ms: Some(101), ..all.clone() },
    ] {
        assert!(!narrower.matches(&traits), "{narrower:?}");
    }
}

#[test]
fn a_deleted_memory_is_no_hit() {
    let found = vec![
        Ranked { id: id("a"), score: 0.9, relevance: 0.9 },
        Ranked { id: id("gone"), score: 0.8, relevance: 0.8 },
        Ranked { id: id("b"), score: 0.7, relevance: 0.7 },
    ];
    let rows = ["b", "a"].map(|name| memory(name, MemoryTier::Archival, "x")).to_vec();
    let hits = hits(found, rows);
    assert_eq!(hits.iter().map(|hit| hit.memory.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn blocks_are_chosen_by_significance_and_shown_by_title() {
    let named =
        |name: &str, tier, significance| Memory { label: Some(name.into()), significance, ..memory(name, tier, name) };
    let large = Memory { content: "x".repeat(MEMORY_BLOCKS_BYTES_MAX), ..named("zz", MemoryTier::Core, 0.1) };
    let rows = [
        named("user", MemoryTier::Core, 0.9),
        named("mission", MemoryTier::Core, 0.2),
        large,
        named("plan", MemoryTier::Working, 0.5),
        memory("unnamed", MemoryTier::Working, "task"),
        memory("blank", MemoryTier::Core, " "),
        memory("archived", MemoryTier::Archival, "old"),
    ];
    let chosen: Vec<_> = blocks::select(&rows).into_iter().map(|block| (block.tier, block.label)).collect();
    let wanted = [
        (MemoryTier::Core, "mission"),
        (MemoryTier::Core, "user"),
        (MemoryTier::Working, "note"),
        (MemoryTier::Working, "plan"),
    ];
    assert_eq!(chosen, wanted.map(|(tier, title)| (tier, title.to_owned())), "there is no room for the large one");
}

/// As a list has it: without its content.
fn overflowed(name: &str, significance: f64) -> Memory {
    let listed = memory(name, MemoryTier::Core, "");
    Memory { label: Some(name.into()), content_ref: Some("blob".into()), significance, ..listed }
}

#[test]
fn what_overflowed_is_shown_when_it_was_read() {
    let small = Memory { content: "é".repeat(4_000), ..overflowed("small", 0.9) };
    let large = Memory { content: "é".repeat(100_000), ..overflowed("large", 0.8) };
    let cut = blocks::cut(large.clone());
    assert!(cut.content.len() > MEMORY_SHOWN_BYTES_MAX && cut.content.len() <= MEMORY_SHOWN_BYTES_MAX + 4);
    assert_eq!(blocks::cut(small.clone()), small);
    for one in [large, cut] {
        let shown = blocks::select(&[small.clone(), one, overflowed("unread", 0.7)]);
        let labels: Vec<&str> = shown.iter().map(|block| block.label.as_str()).collect();
        assert_eq!(labels, ["large", "small", "unread"]);
        let (beginning, rest) = shown[0].content.split_once('\n').expect("two lines");
        assert_eq!(beginning.len(), MEMORY_SHOWN_BYTES_MAX);
        assert!(rest.contains("memory_read {\"id\":\"large\"}"), "{rest}");
        assert_eq!(shown[1].content, small.content, "whole");
        assert!(shown[2].content.contains("memory_read {\"id\":\"unread\"}"), "{}", shown[2].content);
    }
    assert_eq!(blocks::shown(&small, 3), "é\n[This is the beginning. memory_read {\"id\":\"small\"} gives all of it.]");
}

#[test]
fn as_much_is_read_as_there_is_room_for_and_the_rest_says_how() {
    let many: Vec<Memory> = (0..40).map(|n| overflowed(&format!("m{n:02}"), 0.5)).collect();
    let most = MEMORY_BLOCKS_BYTES_MAX / MEMORY_INLINE_BYTES_MAX;
    let wanted = blocks::lacking(&many);
    assert!(wanted.len() < most && wanted.len() >= most - 1, "{wanted:?}");
    assert_eq!(wanted[0].as_str(), "m00");
    let read = |row: &Memory| Memory { content: "x".repeat(MEMORY_CONTENT_BYTES_MAX), ..row.clone() };
    let rows = many.iter().map(|row| if wanted.contains(&row.id) { read(row) } else { row.clone() });
    let rows: Vec<Memory> = rows.collect();
    let shown = blocks::select(&rows);
    assert_eq!(shown.len(), 40, "none is missing");
    let bytes: usize = shown.iter().map(|block| block.label.len() + block.content.len()).sum();
    assert!(bytes <= MEMORY_BLOCKS_BYTES_MAX, "{bytes}");
    let plain = [memory("a", MemoryTier::Core, "x"), overflowed("archived", 0.5)];
    let archived = [Memory { tier: MemoryTier::Archival, ..plain[1].clone() }];
    assert!(blocks::lacking(&plain[..1]).is_empty() && blocks::lacking(&archived).is_empty());
}

#[test]
fn the_hash_of_a_memory_is_of_what_is_kept() {
    let new = NewMemory {
        id: id("a"),
        label: None,
        tier: MemoryTier::Core,
        kind: "k".into(),
        content: "c".into(),
        significance: 0.5,
        metadata: Map::new(),
        embedding: None,
        expect_version: None,
    };
    let vector = Some(Embedding { model: "m".into(), vector: vec![1.0] });
    let same = NewMemory { id: id("b"), embedding: vector, expect_version: Some(2), ..new.clone() };
    assert_eq!(new.body_hash(), same.body_hash());
    for other in [
        NewMemory { label: Some("l".into()), ..new.clone() },
        NewMemory { tier: MemoryTier::Working, ..new.clone() },
        NewMemory { kind: "x".into(), ..new.clone() },
        NewMemory { content: "x".into(), ..new.clone() },
        NewMemory { significance: 0.6, ..new.clone() },
        NewMemory { metadata: Map::from_iter([("a".to_owned(), json!(1))]), ..new.clone() },
    ] {
        assert_ne!(new.body_hash(), other.body_hash(), "{other:?}");
    }
}

proptest! {
    #[test]
    fn scores_stay_within_bounds_and_order_is_total(
        texts in proptest::collection::vec(("[a-d ]{0,12}", -1.0f32..1.0, -1.0f32..1.0, 0.0f64..=1.0), 0..30),
        asked in "[a-d ]{0,8}",
    ) {
        let names: Vec<String> = (0..texts.len()).map(|n| format!("m{n:02}")).collect();
        let vectors: Vec<[f32; 2]> = texts.iter().map(|(_, x, y, _)| [*x, *y]).collect();
        let row = |n: usize| (names[n].as_str(), texts[n].0.as_str(), Some(&vectors[n][..]), texts[n].3);
        let rows: Vec<Row<'_>> = (0..texts.len()).map(row).collect();
        let query = query(&asked, Some(&[0.6, 0.8]));
        let found = ranked(&query, &rows);
        for one in &found {
            prop_assert!((0.0..=1.0).contains(&one.score) && one.relevance > 0.0 && one.relevance <= 1.0 + 1e-9);
        }
        prop_assert!(found.windows(2).all(|pair| pair[0].score >= pair[1].score));
        let backwards: Vec<Row<'_>> = rows.into_iter().rev().collect();
        prop_assert_eq!(found, ranked(&query, &backwards), "the order of rows does not matter");
    }
}
