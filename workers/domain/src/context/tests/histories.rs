//! Which messages are shown, and which are answered.

use proptest::prelude::*;

use super::*;

fn shown(script: &str, max_messages: usize) -> String {
    let limits = HistoryLimits { max_messages: Some(max_messages), max_tokens: None };
    texts(&build_history(&conversation(script), &limits)).join(" ")
}

#[test]
fn without_limits_all_is_shown_but_notes() {
    let whole = build_history(&conversation("suanctau"), &HistoryLimits::default());
    assert_eq!(texts(&whole), ["s0", "u1", "a2", "c4", "t5", "a6", "u7"]);
}

#[test]
fn a_limit_keeps_the_newest_and_begins_with_a_user() {
    for (script, max, expected) in [
        ("uauau", 9, "u0 a1 u2 a3 u4"),
        ("uauau", 3, "u2 a3 u4"),
        ("uauau", 4, "u2 a3 u4"),
        ("uauau", 2, "u4"),
        ("uauau", 1, "u4"),
        ("uauau", 0, "u4"),
        ("suauau", 3, "s0 u3 a4 u5"),
        ("ssuauau", 1, "s0 s1 u6"),
    ] {
        assert_eq!(shown(script, max), expected, "{script} {max}");
    }
}

#[test]
fn a_result_is_never_shown_without_its_call() {
    for (script, max, expected) in [
        // The question stays although the chain after it is long.
        ("uuctctct", 4, "u1 c6 t7"),
        ("uuctctct", 5, "u1 c4 t5 c6 t7"),
        ("uuctctct", 3, "u1 c6 t7"),
        // A result cannot be left out, nor its call.
        ("uuctctct", 1, "u1 c6 t7"),
        ("uctt", 2, "u0 c1 t2 t3"),
        ("uctau", 4, "u4"),
    ] {
        assert_eq!(shown(script, max), expected, "{script} {max}");
    }
}

#[test]
fn tokens_are_a_limit_too() {
    let messages = conversation("suauau");
    let shown = |max_tokens| {
        let limits = HistoryLimits { max_messages: None, max_tokens: Some(max_tokens) };
        texts(&build_history(&messages, &limits)).join(" ")
    };
    // Every text here is one token.
    assert_eq!(shown(6), "s0 u1 a2 u3 a4 u5");
    assert_eq!(shown(5), "s0 u3 a4 u5");
    assert_eq!(shown(4), "s0 u3 a4 u5");
    assert_eq!(shown(3), "s0 u5");
    assert_eq!(shown(0), "s0 u5", "the newest is always shown");
}

#[test]
fn a_summary_stands_for_what_is_before_it() {
    let mut messages = conversation("suaua");
    let summary = NewMessage {
        kind: MessageKind::Summary,
        compacts_through: Some(messages[3].id.clone()),
        ..NewMessage::system("[Context Summary]")
    };
    messages.push(stored(5, summary.clone()));
    messages.push(stored(6, NewMessage::user("u6")));
    let shown = |messages: &[ConversationMessage]| texts(&build_history(messages, &HistoryLimits::default()));
    assert_eq!(shown(&messages), ["s0", "[Context Summary]", "u3", "a4", "u6"]);
    // A newer one replaces it.
    let newer = NewMessage { compacts_through: Some(messages[6].id.clone()), content: "newer".into(), ..summary };
    messages.push(stored(7, newer));
    assert_eq!(shown(&messages), ["s0", "newer"]);
    // What it covers was not even loaded.
    assert_eq!(shown(&messages[7..]), ["newer"]);
}

#[test]
fn a_turn_answers_what_came_after_the_last_answer() {
    for (script, inputs, trigger) in [
        ("su", "u1", "user_message"),
        ("uauu", "u2 u3", "user_message"),
        ("uact", "t3", "tool_result"),
        ("uas", "s2", "system_trigger"),
        ("uasu", "u3", "user_message"),
        ("ua", "", "system_trigger"),
        ("", "", "system_trigger"),
        ("un", "u0", "user_message"),
    ] {
        let found = turn_inputs(&conversation(script));
        let shown: Vec<Message> = found.iter().map(ConversationMessage::for_model).collect();
        assert_eq!((texts(&shown).join(" ").as_str(), trigger_of(&found)), (inputs, trigger), "{script}");
    }
}

#[test]
fn open_calls_are_found() {
    let open = |script: &str| unanswered_calls(&conversation(script)).len();
    assert_eq!((open("uc"), open("uct"), open("ucu"), open("ucta"), open("ua")), (1, 0, 1, 0, 0));
    let two = Message::new(Role::Assistant, vec![call("a"), call("b")]);
    let one = Message::new(Role::Tool, vec![Part::tool_result("b", "x", false)]);
    let messages = [stored(1, two.into()), stored(2, one.into())];
    assert_eq!(unanswered_calls(&messages).iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["a"]);
}

proptest! {
    #[test]
    fn every_cut_is_one_that_providers_take(
        script in "s{0,2}u(a|ct|ctct|u|n|us){0,12}", max_messages in 0_usize..12, max_tokens in 0_u64..12,
    ) {
        let messages = conversation(&script);
        let limits = HistoryLimits { max_messages: Some(max_messages), max_tokens: Some(max_tokens) };
        let history = build_history(&messages, &limits);
        let calls = |message: &Message| message.content.iter().filter_map(Part::as_tool_call).next().map(|c| c.id.clone());
        for (at, message) in history.iter().enumerate() {
            if let Part::ToolResult { call_id, .. } = &message.content[0] {
                prop_assert!(history[..at].iter().any(|one| calls(one).as_ref() == Some(call_id)), "{:?}", texts(&history));
            }
        }
        let spoken: Vec<&Message> = history.iter().filter(|one| one.role != Role::System).collect();
        prop_assert_eq!(spoken.first().map(|one| one.role), Some(Role::User));
        let whole = texts(&build_history(&messages, &HistoryLimits::default()));
        let shown = texts(&history);
        prop_assert_eq!(shown.last(), whole.last());
        let order: Vec<_> = shown.iter().map(|text| whole.iter().position(|one| one == text)).collect();
        prop_assert!(order.windows(2).all(|pair| pair[0] < pair[1]), "in order, each once");
    }
}
