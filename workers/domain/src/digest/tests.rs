//! Digests of small documents: what is picked, and what is not.

use proptest::prelude::*;

use super::*;

const ARTICLE: &str = "\
# The Group Commit

Copyright (c) 2020 Somebody. All rights reserved.

A group commit is a technique by which a database writes the changes of many transactions with one flush of the disk. \
Flushing is slow: a disk takes about a millisecond for it, whatever the amount. Let's look at the details!

It was known for long. Transactions that arrive while a flush is running wait and are committed together by the next flush.

```
let x = flush();
```

The larger the batch, the smaller the share of each transaction in the cost of the flush. The batch grows by itself \
under load, so that a busy database commits more transactions per flush than an idle one.

| a | b |
|---|---|
| 1 | 2 |

A limit on the size of the batch keeps the latency of a single transaction within bounds. See below.
";

#[test]
fn an_article_is_told_by_its_statements() {
    let found = digest(ARTICLE, 3);
    assert_eq!(found.title.as_deref(), Some("The Group Commit"));
    let text: Vec<&str> = found.sentences.iter().map(|s| s.text.as_str()).collect();
    assert_eq!(text.len(), 3, "{text:?}");
    assert!(text[0].starts_with("A group commit is a technique"), "{text:?}");
    for out in ["Copyright", "let x", "It was known", "Let's", "See below"] {
        assert!(!text.iter().any(|t| t.contains(out)), "{out}: {text:?}");
    }
    assert!(found.sentences.windows(2).all(|two| two[0].position < two[1].position));
    assert!(found.terms.iter().take(6).any(|t| t.word == "transactions"), "{:?}", found.terms);
}

#[test]
fn nothing_is_made_of_nothing() {
    for text in ["", "   \n\n", "```\ncode\n```", "1 2 3\n4 5 6", "\u{0}\u{1}"] {
        let found = digest(text, 3);
        assert!(found.sentences.is_empty(), "{text:?}: {:?}", found.sentences);
    }
}

#[test]
fn titles_are_found_where_documents_have_them() {
    let title = |text: &str| digest(text, 1).title;
    assert_eq!(
        title("package X;\n# no title\n\n=head1 NAME\n\nX - does things\n\n=cut\n").as_deref(),
        Some("X - does things")
    );
    assert_eq!(title("Some words first.\n\n## Usage\n\nMore words.").as_deref(), None);
    assert_eq!(title("## Usage\n\nWords.\n\n# The Tool\n\nWords.").as_deref(), Some("The Tool"));
}

#[test]
fn a_repeated_sentence_is_picked_once() {
    let text = "The scheduler assigns every task to the worker with the least load at that time.\n\n".repeat(5)
        + "Workers report their load to the scheduler once a second over the control channel.\n";
    let found = digest(&text, 4);
    assert_eq!(found.sentences.len(), 2, "{:?}", found.sentences);
}

#[test]
fn a_huge_text_is_cut_at_a_character() {
    let text = "é".repeat(TEXT_BYTES_MAX);
    assert!(cut(&text).len() <= TEXT_BYTES_MAX && cut(&text).ends_with('é'));
}

const PARTS: [(&str, &str); 6] = [
    ("page cache", "The page cache of the storage engine holds hot blocks in memory and drops the coldest ones first."),
    ("compaction", "Compaction merges small files of the storage engine into large ones and gives back their space."),
    ("journal", "Each change is appended to the journal before the storage engine touches any other file on disk."),
    ("index", "An ordered index lets readers of the storage engine skip whole ranges that hold no match for them."),
    ("snapshot", "Readers work on a snapshot, so that compaction in the storage engine never waits for anybody."),
    ("checksum", "Every block carries a checksum that the storage engine verifies when it is loaded from disk."),
];

fn corpus() -> Collection {
    let mut all = Collection::default();
    for (name, matter) in PARTS {
        let notice = "Visit the community forum to meet other friendly people who run it at home.";
        let text = format!(
            "# The {name}\n\n{matter} Tuning the {name} of the storage engine is rarely worth it for small data. {notice}\n"
        );
        all.add(&format!("/docs/{name}.md"), &digest(&text, 3));
    }
    all
}

#[test]
fn the_digest_of_digests_has_sources_and_themes() {
    let all = corpus();
    let overview = all.overview(8);
    let points: usize = overview.topics.iter().map(|t| t.points.len()).sum();
    assert!((4..=8).contains(&points), "{overview:?}");
    for topic in &overview.topics {
        assert!(topic.points.iter().all(|p| (1..=overview.sources.len()).contains(&p.source)));
    }
    assert!(overview.themes.iter().any(|t| t.contains("engine")), "{:?}", overview.themes);
    let text = overview.render("Digest");
    assert!(text.contains("Sources\n[1] /docs/") && text.contains(".md (The "), "{text}");
    assert!(!text.contains("community forum"), "what stands in every document is no matter: {text}");
}

#[test]
fn the_collection_stays_bounded() {
    let mut all = Collection::default();
    for n in 0..300 {
        let words: Vec<String> = (0..40).map(|k| format!("w{}x{}", n, k)).collect();
        let text = format!(
            "Document about {} is here. Topic {} explains the matter of {} in depth. {} and {} {}.",
            words[..5].join(" "),
            words[6],
            words[7..12].join(" "),
            words[6],
            words[7],
            words[12..20].join(" ")
        );
        all.add(&n.to_string(), &digest(&text, 5));
    }
    assert!(all.candidates.len() <= CANDIDATES_MAX && all.terms.len() <= TERMS_MAX);
    assert_eq!(all.documents, 300);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_is_digested(text in "([A-Za-z`*_<>\\[\\]().,!?:;#=\\-é日 ]{0,60}\n{1,2}){0,12}", count in 0usize..6) {
        let found = digest(&text, count);
        prop_assert!(found.sentences.len() <= count);
        prop_assert_eq!(&found, &digest(&text, count));
        let mut all = Collection::default();
        all.add("x", &found);
        let overview = all.overview(4);
        prop_assert!(overview.topics.iter().map(|t| t.points.len()).sum::<usize>() <= 4);
    }
}
