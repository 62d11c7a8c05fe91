//! The static model finds what is meant, and the API adapter keeps its promises.

use std::sync::LazyLock;

use super::StaticEmbedder;

mod api;

static MODEL: LazyLock<StaticEmbedder> = LazyLock::new(StaticEmbedder::load);

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The place of the right text, from 0, among all texts.
fn rank(query: &str, texts: &[&str], right: usize) -> usize {
    let query = MODEL.vector(query);
    let scores: Vec<f32> = texts.iter().map(|text| cosine(&query, &MODEL.vector(text))).collect();
    scores.iter().filter(|score| **score > scores[right]).count()
}

#[test]
fn vectors_are_those_of_the_reference() {
    // Computed by an independent implementation from the same files.
    let cases: [(&str, [f32; 4]); 5] = [
        ("Hello, World!", [-0.008619, -0.160045, -0.086856, -0.055350]),
        ("Straße in Zürich: naïve café", [0.025054, 0.258622, -0.407804, 0.215392]),
        ("東京タワー 한국어", [0.612848, -0.180050, -0.166077, 0.214844]),
        ("unaffable xyzzyq 🙂", [0.356349, -0.218897, -0.191051, -0.159828]),
        ("don't stop-believing (2024)", [0.089506, -0.408722, -0.189038, -0.288303]),
    ];
    for (text, wanted) in cases {
        let vector = MODEL.vector(text);
        assert_eq!(vector.len(), 256);
        for (found, wanted) in vector.iter().zip(wanted) {
            assert!((found - wanted).abs() < 2e-5, "{text}: {:?}", &vector[..4]);
        }
    }
}

#[test]
fn paraphrases_are_found() {
    let facts = [
        "The user prefers answers in short bullet points.",
        "Deployments happen every Thursday after the standup.",
        "The database password rotates every ninety days.",
        "Anna's birthday is on the third of May.",
        "The billing service is written in Go and owned by the payments team.",
        "Customers in Germany must be invoiced with VAT.",
        "The office coffee machine is broken again.",
        "Our mobile app crashes when the network is lost during login.",
        "The quarterly budget for marketing was cut by ten percent.",
        "Backups are stored in a bucket in Frankfurt.",
        "The cat is allergic to chicken.",
        "The flight to Lisbon leaves at seven in the morning.",
    ];
    let queries = [
        "how should I format my replies, brief lists?",
        "when do we release to production?",
        "how often is the database password changed?",
        "when was Anna born?",
        "which team owns the payments code?",
        "tax on invoices for German clients",
        "espresso maker does not work",
        "login failure on phones without connection",
        "marketing spending reduced",
        "where are backups kept?",
        "pet food allergy",
        "what time does my plane depart?",
    ];
    let ranks: Vec<usize> = queries.iter().enumerate().map(|(right, query)| rank(query, &facts, right)).collect();
    let first = ranks.iter().filter(|rank| **rank == 0).count();
    let near = ranks.iter().filter(|rank| **rank < 3).count();
    assert!(first >= 10 && near >= 11, "{ranks:?}");
}

#[test]
fn a_text_has_one_vector_of_length_one() {
    for text in ["a", "Hello, World!", "多言語 テスト", "ÀÉÎõü naïve", "🙂 smile", "mixed\tspaces\n\nhere"]
    {
        let vector = MODEL.vector(text);
        assert!((cosine(&vector, &vector) - 1.0).abs() < 1e-5, "{text}");
        assert_eq!(vector, StaticEmbedder::load().vector(text), "{text}");
    }
}

#[test]
fn case_accents_and_invisible_characters_do_not_matter() {
    let plain = MODEL.vector("the cafe in zurich");
    for same in
        ["The CAFÉ in Zürich", "the cafe\u{301} in zu\u{308}rich", "the\u{200B} ca\u{AD}fe  in\u{A0}zurich\u{0}"]
    {
        assert_eq!(MODEL.vector(same), plain, "{same:?}");
    }
    // A composed syllable and its letters are the same.
    assert_eq!(
        MODEL.vector("한국어"),
        MODEL.vector("\u{1112}\u{1161}\u{11AB}\u{1100}\u{116E}\u{11A8}\u{110B}\u{1165}")
    );
}

#[test]
fn what_is_not_known_is_like_nothing() {
    let long = "x".repeat(101);
    for nothing in ["", " \n\t", "\u{0}\u{FFFD}", "🙂🙃", &long] {
        assert!(MODEL.vector(nothing).iter().all(|number| *number == 0.0), "{nothing:?}");
    }
}

#[test]
fn long_texts_take_bounded_time_and_their_beginning_counts() {
    let start = std::time::Instant::now();
    let text = "The quick brown fox jumps over the lazy dog. ".repeat(100_000 / 45 + 1);
    let vector = MODEL.vector(&text);
    let hostile = MODEL.vector(&"ab'".repeat(100_000)).len() + MODEL.vector(&"é".repeat(100_000)).len();
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
    assert_eq!((vector.len(), hostile), (256, 512));
    let beginning: String = text.chars().take(schemas::limits::EMBEDDING_TEXT_CHARS_MAX).collect();
    assert_eq!(MODEL.vector(&beginning), vector);
}

proptest::proptest! {
    #[test]
    fn any_text_is_survived(text in "\\PC{0,200}") {
        let vector = MODEL.vector(&text);
        let length = cosine(&vector, &vector);
        proptest::prop_assert!(length == 0.0 || (length - 1.0).abs() < 1e-4);
    }
}
