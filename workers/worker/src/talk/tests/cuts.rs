//! Calls that are cut short.

use domain::chat::{Message, Role};
use domain::converse::{Bound, Context, Measure, Placed, Scope};
use schemas::definition::CompactionSettings;
use testkit::fake::ScriptedEffects;
use testkit::fake::effects::Scripted;

use super::*;

/// A context of ten messages, of which the first two become a summary.
pub(super) fn long() -> Assembly {
    let mut long = assembly();
    let said = (1..=10).map(|n| {
        let role = if n % 2 == 1 { Role::User } else { Role::Assistant };
        Message::text(role, format!("This is message {n}."))
    });
    long.request.messages.splice(1..1, said);
    long.history = (1..=10).map(|n| Placed { at: n, offset: n as u64, at_ms: 1_000 }).collect();
    let compaction = CompactionSettings { chunk_size: 2, keep_recent: 4, ..domain::compact::defaults() };
    long.limits.context = Some(Context { tokens: 10, window: 100_000, compaction, summary_window: None });
    long
}

pub(super) fn first_piece<'a>(session: &'a SessionId, checks: &'a Checks) -> compact::Asked<'a> {
    compact::Asked { number: 1, assembly: None, summary: None, by_tool: false, without_model: false, checks, session }
}

/// Each piece is a call of its own, whose budgets may have been used up since the reply that it is for.
#[tokio::test(start_paused = true)]
async fn a_piece_over_a_budget_is_made_without_a_model() {
    let used_up = Bound { scope: Scope::Turn, what: Measure::Tokens, used: 100.0, max: 100.0, raised: 0 };
    let turn = Checks { known: vec![used_up], ..Checks::default() };
    let budget = NamespaceBudget { max_moves: Some(0), ..NamespaceBudget::default() };
    let namespaces = BTreeMap::from([(Namespace::default_ns(), budget)]);
    for (checks, budgets, scope) in [
        (turn, BTreeMap::new(), Some(Scope::Turn)),
        (Checks::default(), namespaces, Some(Scope::Namespace)),
        (Checks::default(), BTreeMap::new(), None),
    ] {
        let place = Place::new().await;
        let body = Json::of(&long());
        place.say(vec![LogRecord { turn_id: Some(turn_id("t1")), body, ..record(LogKind::Assembly, "a1") }]).await;
        let deps = TalkDeps { budgets, ..place.deps(place.ports.conversations.clone()) };
        let (namespace, talk, cut) = (Namespace::default_ns(), talk(TalkWork::Extract), Notify::new());
        let session = SessionId::parse("s1").expect("an id");
        let outcome = compact::compact(&deps, &namespace, &talk, first_piece(&session, &checks), &cut).await;
        let compacted = outcome.compacted().expect("an answer");
        assert_eq!(compacted.over.as_ref().map(|over| over.scope), scope);
        assert_eq!(place.models.asked().is_empty(), scope.is_some(), "{compacted:?}");
        if scope.is_some() {
            let made = compacted.made.as_ref().expect("a piece");
            assert!(made.messages > 0 && compacted.record.is_none() && compacted.failure.is_none(), "{compacted:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_is_cut_short_is_none_and_what_it_used_is_told() {
    for is_early in [true, false] {
        let place = Place::new().await;
        let body = Json::of(&long());
        place.say(vec![LogRecord { turn_id: Some(turn_id("t1")), body, ..record(LogKind::Assembly, "a1") }]).await;
        let deps = place.deps(place.ports.conversations.clone());
        let (namespace, talk, cut) = (Namespace::default_ns(), talk(TalkWork::Extract), Notify::new());
        let (session, checks) = (SessionId::parse("s1").expect("an id"), Checks::default());
        let asked = first_piece(&session, &checks);
        if is_early {
            cut.notify_one();
        }
        let later = async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            cut.notify_one();
        };
        let (outcome, ()) = tokio::join!(compact::compact(&deps, &namespace, &talk, asked, &cut), later);
        let compacted = outcome.compacted().expect("an answer");
        assert!(compacted.cut && compacted.made.is_none() && compacted.failure.is_none(), "{compacted:?}");
        let used = compacted.record.as_ref().and_then(|record| record.usage.as_ref()).map(|usage| usage.input_tokens);
        assert_eq!((used.is_none(), place.models.asked().is_empty()), (is_early, is_early), "{used:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_can_be_cut_while_the_one_before_it_is_still_being_dropped() {
    let place = Place::new().await;
    let nobody = |call: &EffectCall, _: usize| -> Scripted { panic!("asked for {:?}", call.effect) };
    let others = Arc::new(ScriptedEffects::new(Arc::new(nobody), place.clock.clone()));
    let talking = Talking::new(place.deps(place.ports.conversations.clone()), others);
    assert!(!talking.cut("k"), "it has not begun");
    let first = talking.cuttable("k");
    assert!(talking.cut("k") && !talking.cut("other"));
    let second = talking.cuttable("k");
    drop(first);
    assert!(talking.cut("k"));
    second.notify.notified().await;
    drop(second);
    assert!(!talking.cut("k"), "it has ended");
}
