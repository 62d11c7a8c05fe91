//! Estimates and budgets.

use proptest::prelude::*;

use super::*;
use crate::chat::ImageSource;

#[test]
fn s145_a_token_is_four_characters_rounded_up() {
    for (text, tokens) in [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("ünïc", 1), ("日本語日本", 2)] {
        assert_eq!(estimate_tokens(text), tokens, "{text:?}");
    }
}

#[test]
fn everything_in_a_message_is_counted() {
    assert_eq!(estimate_message(&Message::text(Role::User, "12345678")), 2);
    let split = Message::new(Role::User, vec![Part::text("12"), Part::text("345"), Part::text("678")]);
    assert_eq!(estimate_message(&split), 2, "parts are not rounded one by one");
    // "look" and "{}".
    assert_eq!(estimate_message(&Message::new(Role::Assistant, vec![call("k")])), 2);
    assert_eq!(estimate_message(&Message::new(Role::Tool, vec![Part::tool_result("k", "12345", false)])), 2);
    let data = "A".repeat(1_000_000);
    let image = Part::Image { source: ImageSource::Base64 { media_type: "image/png".into(), data } };
    let message = Message::new(Role::User, vec![Part::text("1234"), image]);
    assert_eq!(estimate_message(&message), 1 + IMAGE_TOKENS, "base64 is not read by the model");
    assert_eq!(estimate_messages(&[message.clone(), message]), 2 * (1 + IMAGE_TOKENS));
}

#[test]
fn s145_only_more_than_the_budget_is_too_much() {
    let budget = ContextBudget::default();
    assert_eq!(
        (budget.tokens(), should_compress(160_000, &budget), should_compress(160_001, &budget)),
        (160_000, false, true)
    );
    for (context_budget, model_max_tokens, tokens) in
        [(0.29, 100, 29), (0.7, 10, 7), (1.0, 8_192, 8_192), (0.1, 3, 0), (0.333, 1_000, 333), (0.5, 3, 1)]
    {
        let budget = ContextBudget { context_budget, model_max_tokens };
        assert_eq!(budget.tokens(), tokens, "{budget:?}");
        assert!(!should_compress(tokens, &budget) && should_compress(tokens + 1, &budget), "{budget:?}");
    }
}

#[test]
fn a_budget_that_makes_no_sense_is_refused_with_the_remedy() {
    assert_eq!(ContextBudget::default().check(), Ok(()));
    for context_budget in [0.0, -0.5, 1.01, f64::NAN, f64::INFINITY] {
        let told = ContextBudget { context_budget, ..ContextBudget::default() }.check().expect_err("no share");
        assert!(told.contains("above 0 and at most 1"), "{told}");
    }
    assert!(ContextBudget { model_max_tokens: 0, ..ContextBudget::default() }.check().is_err());
}

proptest! {
    #[test]
    fn longer_texts_are_never_estimated_shorter(a in ".{0,80}", b in ".{0,80}") {
        let both = estimate_tokens(&format!("{a}{b}"));
        prop_assert!(both >= estimate_tokens(&a).max(estimate_tokens(&b)));
        prop_assert!(both <= estimate_tokens(&a) + estimate_tokens(&b));
    }

    #[test]
    fn a_budget_is_the_whole_part_of_the_product(percent in 1_u64..=100, window in 1_u64..2_000_000) {
        let budget = ContextBudget { context_budget: percent as f64 / 100.0, model_max_tokens: window };
        prop_assert_eq!(budget.tokens(), percent * window / 100);
    }
}
