//! Contract of the engine's `ConversationStore` (S-133): what every store of conversations does,
//! whatever it is made of.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::chat::{CallContext, ImageSource, Part, ProviderCallRecord, RequestOutcome, ToolCall, Usage};
use domain::context::{
    Content, Conversation, ConversationMessage, ConversationTurn, MessageKind, MessageRole, NewMessage, TurnError,
    TurnStatus,
};
use domain::ports::library::{ConversationStore, Page, StoreError};
use schemas::id::{ConversationId, MessageId, TurnId};
use serde_json::{Map, Value, json};

/// Runs on fresh, empty stores that `make` gives.
pub async fn suite(make: &impl AsyncFn() -> Arc<dyn ConversationStore>) {
    what_is_missing_is_none(&*make().await).await;
    conversations_are_kept_and_updated(&*make().await).await;
    messages_are_in_the_order_of_their_times(&*make().await).await;
    messages_come_back_as_they_were(&*make().await).await;
    an_append_is_whole_or_nothing(&*make().await).await;
    turns_are_kept_and_updated(&*make().await).await;
    turns_are_in_the_order_of_their_times(&*make().await).await;
    what_has_ended_does_not_change(&*make().await).await;
    nothing_is_seen_from_another_conversation(&*make().await).await;
    writers_do_not_lose_what_others_write(make().await).await;
    of_two_ends_of_a_turn_the_first_counts(make().await).await;
}

/// For stores that outlive the process: `open` opens one and the same store, each time anew.
pub async fn durable(open: &impl AsyncFn() -> Arc<dyn ConversationStore>) {
    let messages = [user("c", "m1", 1, "hi"), user("c", "m2", 1, "there")];
    let mut ended = turn("c", "t1", 1);
    {
        let store = open().await;
        conversation(&*store, "c").await;
        store.append_messages(&id("c"), &messages).await.expect("appended");
        store.create_turn(&ended).await.expect("created");
        ended.status = TurnStatus::Succeeded;
        store.update_turn(&ended).await.expect("updated");
    }
    let store = open().await;
    assert!(store.get_conversation(&id("c")).await.expect("read").is_some(), "the conversation is there");
    assert_eq!(store.get_messages(&id("c"), Page::all()).await.expect("read"), messages);
    assert_eq!(store.list_turns(&id("c"), Page::all()).await.expect("read"), [ended.clone()]);
    ended.status = TurnStatus::Failed;
    assert!(matches!(store.update_turn(&ended).await, Err(StoreError::TurnEnded(_))), "an end stays one");
    assert!(matches!(store.append_messages(&id("c"), &messages).await, Err(StoreError::Exists { .. })));
}

fn id(text: &str) -> ConversationId {
    ConversationId::parse(text).expect("an id")
}

fn turn_id(text: &str) -> TurnId {
    TurnId::parse(text).expect("an id")
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

fn message(conversation: &str, name: &str, at_ms: i64, new: NewMessage) -> ConversationMessage {
    new.complete(&id(conversation), MessageId::parse(name).expect("an id"), at_ms)
}

fn user(conversation: &str, name: &str, at_ms: i64, text: &str) -> ConversationMessage {
    message(conversation, name, at_ms, NewMessage::user(text))
}

fn turn(conversation: &str, name: &str, started_at_ms: i64) -> ConversationTurn {
    ConversationTurn {
        id: turn_id(name),
        conversation_id: id(conversation),
        agent: "ana".into(),
        input_messages: Vec::new(),
        output_messages: Vec::new(),
        provider_calls: Vec::new(),
        status: TurnStatus::Running,
        trigger_type: None,
        started_at_ms,
        finished_at_ms: None,
        error: None,
        metadata: Map::new(),
    }
}

async fn conversation(store: &dyn ConversationStore, name: &str) -> Conversation {
    let made = Conversation {
        id: id(name),
        agent: "ana".into(),
        subject_id: None,
        title: None,
        created_at_ms: 1_893_456_000_123,
        updated_at_ms: 1_893_456_000_123,
        metadata: Map::new(),
    };
    store.create_conversation(&made).await.expect("created");
    made
}

async fn messages(store: &dyn ConversationStore, name: &str, page: Page) -> String {
    let found = store.get_messages(&id(name), page).await.expect("messages");
    found.iter().map(|one| one.id.as_str()).collect::<Vec<_>>().join(" ")
}

async fn turns(store: &dyn ConversationStore, name: &str, page: Page) -> String {
    let found = store.list_turns(&id(name), page).await.expect("turns");
    found.iter().map(|one| one.id.as_str()).collect::<Vec<_>>().join(" ")
}

async fn what_is_missing_is_none(store: &dyn ConversationStore) {
    assert_eq!(store.get_conversation(&id("none")).await, Ok(None));
    assert_eq!(store.get_messages(&id("none"), Page::all()).await, Ok(Vec::new()));
    assert_eq!(store.list_turns(&id("none"), Page::newest(3)).await, Ok(Vec::new()));
    assert_eq!(store.get_turn(&id("none"), &turn_id("t")).await, Ok(None));
    let lost = store.append_messages(&id("none"), &[user("none", "m", 1, "x")]).await;
    assert_eq!(lost, Err(StoreError::NoConversation(id("none"))));
    assert_eq!(store.create_turn(&turn("none", "t", 1)).await, Err(StoreError::NoConversation(id("none"))));
    let made = conversation(store, "c").await;
    let other = Conversation { id: id("none"), ..made };
    assert_eq!(store.update_conversation(&other).await, Err(StoreError::NoConversation(id("none"))));
    assert_eq!(store.update_turn(&turn("c", "t", 1)).await, Err(StoreError::NoTurn(turn_id("t"))));
    assert_eq!(store.get_turn(&id("c"), &turn_id("t")).await, Ok(None));
    assert_eq!(store.get_messages(&id("c"), Page::all()).await, Ok(Vec::new()));
    assert_eq!(store.get_conversation(&id("none")).await, Ok(None), "an update makes nothing");
    // What was refused is free: nothing of it was kept.
    store.append_messages(&id("c"), &[user("c", "m", 1, "x")]).await.expect("appended");
    store.create_turn(&turn("c", "t", 1)).await.expect("created");
}

async fn conversations_are_kept_and_updated(store: &dyn ConversationStore) {
    let made = Conversation {
        subject_id: Some("tenant 'ü' \"1\"; --".into()),
        title: Some("A title\nof two lines".into()),
        metadata: object(json!({"cohort": "b", "deep": {"list": [1, 2.5, null, true, "x"]}})),
        ..conversation(store, "first").await
    };
    assert_eq!(
        store.create_conversation(&made).await,
        Err(StoreError::Exists { what: "conversation", id: "first".into() })
    );
    let before = store.get_conversation(&id("first")).await.expect("read").expect("it is there");
    assert_eq!((before.title.as_deref(), before.created_at_ms), (None, 1_893_456_000_123), "a refusal changes nothing");
    store.update_conversation(&made).await.expect("updated");
    assert_eq!(store.get_conversation(&id("first")).await, Ok(Some(made.clone())));
    let cleared = Conversation { title: None, metadata: Map::new(), updated_at_ms: 1_893_456_000_124, ..made };
    store.update_conversation(&cleared).await.expect("updated");
    assert_eq!(store.get_conversation(&id("first")).await, Ok(Some(cleared)), "what is taken out is out");
}

async fn messages_are_in_the_order_of_their_times(store: &dyn ConversationStore) {
    conversation(store, "c").await;
    // Ids do not decide: they go the other way.
    let first = [user("c", "z", 10, "1"), user("c", "y", 20, "2"), user("c", "x", 20, "3")];
    store.append_messages(&id("c"), &first).await.expect("appended");
    assert_eq!(messages(store, "c", Page::all()).await, "z y x");
    let later = [user("c", "w", 20, "4"), user("c", "v", 5, "0"), user("c", "u", 15, "1.5")];
    store.append_messages(&id("c"), &later).await.expect("appended");
    let all = "v z u y x w";
    assert_eq!(messages(store, "c", Page::all()).await, all, "by time, then as they came");
    for (page, expected) in [
        (Page::oldest(2), "v z"),
        (Page::newest(2), "w x"),
        (Page::newest(4), "w x y u"),
        (Page::oldest(6), all),
        (Page::oldest(100), all),
        (Page::newest(100), "w x y u z v"),
        (Page::oldest(0), ""),
        (Page::newest(0), ""),
    ] {
        assert_eq!(messages(store, "c", page).await, expected, "{page:?}");
    }
    store.append_messages(&id("c"), &[]).await.expect("nothing is appended");
    assert_eq!(messages(store, "c", Page::all()).await, all);
    assert_eq!(turns(store, "c", Page::all()).await, "", "messages are no turns");
}

async fn messages_come_back_as_they_were(store: &dyn ConversationStore) {
    conversation(store, "c").await;
    let call = ToolCall {
        id: "k".into(),
        name: "look".into(),
        input: json!({"where": "über \"all\""}),
        invalid: None,
        signature: Some("opaque==".into()),
    };
    let image = Part::Image { source: ImageSource::Base64 { media_type: "image/png".into(), data: "aGk=".into() } };
    let full = NewMessage {
        kind: MessageKind::ToolCall,
        name: Some("ana".into()),
        provider_message_id: Some("msg_1".into()),
        compacts_through: Some(MessageId::parse("m0").expect("an id")),
        metadata: object(json!({"tokens": 12, "ui": {"fold": true}})),
        ..NewMessage::assistant(vec![Part::text("a\u{0}b\nü 日本"), image, Part::ToolCall(call)])
    };
    let contents =
        [json!(""), json!("plain"), json!({"form": {"size": 3.5, "none": null}}), json!([]), json!([1, [2]]), json!(7)];
    let mut all = vec![message("c", "m1", -5, full)];
    all[0].turn_id = Some(turn_id("t"));
    for (n, content) in (2..).zip(contents) {
        let role = if n % 2 == 0 { MessageRole::Other } else { MessageRole::System };
        all.push(message("c", &format!("m{n}"), n, NewMessage::new(role, Content::from(content))));
    }
    let large = "x".repeat(300_000);
    all.push(message("c", "large", 100, NewMessage::new(MessageRole::Tool, large)));
    store.append_messages(&id("c"), &all).await.expect("appended");
    assert_eq!(store.get_messages(&id("c"), Page::all()).await, Ok(all));
}

async fn an_append_is_whole_or_nothing(store: &dyn ConversationStore) {
    conversation(store, "c").await;
    conversation(store, "d").await;
    store.append_messages(&id("c"), &[user("c", "m1", 1, "x")]).await.expect("appended");
    let taken = |name: &str| Err(StoreError::Exists { what: "message", id: name.to_owned() });
    let mixed = [user("c", "m2", 2, "x"), user("c", "m1", 3, "changed")];
    assert_eq!(store.append_messages(&id("c"), &mixed).await, taken("m1"));
    let twice = [user("c", "m3", 2, "x"), user("c", "m3", 3, "y")];
    assert_eq!(store.append_messages(&id("c"), &twice).await, taken("m3"));
    assert_eq!(store.append_messages(&id("d"), &[user("d", "m1", 1, "x")]).await, taken("m1"), "ids are there once");
    assert_eq!(
        (messages(store, "c", Page::all()).await, messages(store, "d", Page::all()).await),
        ("m1".into(), "".into())
    );
    let kept = store.get_messages(&id("c"), Page::all()).await.expect("messages");
    assert_eq!(kept[0].content, Content::from("x"), "a message never changes");
    store.append_messages(&id("c"), &[user("c", "m2", 2, "x"), user("c", "m3", 3, "y")]).await.expect("now it works");
    assert_eq!(messages(store, "c", Page::all()).await, "m1 m2 m3");
}

fn full_turn() -> ConversationTurn {
    let context = CallContext {
        conversation_id: "c".into(),
        turn_id: "t".into(),
        agent: "ana".into(),
        parent_turn_id: Some("t0".into()),
        ..CallContext::default()
    };
    let mut call = ProviderCallRecord::open("call-1", &context, "openai", "m-1", true, 11);
    call.request_id = Some("req_1".into());
    call.usage = Some(Usage { input_tokens: 3, output_tokens: 4, total_tokens: 7, ..Usage::default() });
    call.cost = Some(0.25);
    call.finished_at_ms = Some(19);
    call.outcome = Some(RequestOutcome {
        ok: true,
        status: Some(200),
        error_category: None,
        attempts: 2,
        started_at_ms: 11,
        finished_at_ms: 19,
    });
    ConversationTurn {
        input_messages: vec![user("c", "m1", 1, "hi")],
        output_messages: vec![message("c", "m2", 20, NewMessage::assistant("hello"))],
        provider_calls: vec![call],
        trigger_type: Some("user_message".into()),
        finished_at_ms: Some(20),
        metadata: object(json!({"plan": {"route": [1, "b"]}})),
        ..turn("c", "t", 10)
    }
}

async fn turns_are_kept_and_updated(store: &dyn ConversationStore) {
    conversation(store, "c").await;
    conversation(store, "d").await;
    let mut one = turn("c", "t", 10);
    one.status = TurnStatus::Pending;
    store.create_turn(&one).await.expect("created");
    assert_eq!(store.get_turn(&id("c"), &one.id).await, Ok(Some(one.clone())));
    for other in [one.clone(), turn("d", "t", 1)] {
        let taken = StoreError::Exists { what: "turn", id: "t".into() };
        assert_eq!(store.create_turn(&other).await, Err(taken), "turn ids are unique in the whole system");
    }
    for status in [TurnStatus::Running, TurnStatus::Succeeded] {
        one = ConversationTurn { status, ..full_turn() };
        store.update_turn(&one).await.expect("updated");
        assert_eq!(store.get_turn(&id("c"), &one.id).await, Ok(Some(one.clone())));
    }
    for (n, status) in [(1, TurnStatus::Failed), (2, TurnStatus::Cancelled)] {
        let mut bad = ConversationTurn { id: turn_id(&format!("bad{n}")), ..full_turn() };
        store.create_turn(&bad).await.expect("created");
        bad.status = status;
        bad.error = Some(TurnError {
            provider: Some("openai".into()),
            raw: Some(json!({"type": "overloaded_error"})),
            ..TurnError::new("provider_failed", "it is \"busy\"")
        });
        store.update_turn(&bad).await.expect("updated");
        assert_eq!(store.get_turn(&id("c"), &bad.id).await, Ok(Some(bad)));
    }
    assert_eq!(messages(store, "c", Page::all()).await, "", "messages of a turn are stored by append alone");
}

async fn turns_are_in_the_order_of_their_times(store: &dyn ConversationStore) {
    conversation(store, "c").await;
    for (name, at_ms) in [("z", 10), ("y", 20), ("x", 20), ("w", 15)] {
        store.create_turn(&turn("c", name, at_ms)).await.expect("created");
    }
    let ended = ConversationTurn { status: TurnStatus::Succeeded, ..turn("c", "z", 10) };
    store.update_turn(&ended).await.expect("updated");
    for (page, expected) in [
        (Page::all(), "z w y x"),
        (Page::oldest(1), "z"),
        (Page::newest(2), "x y"),
        (Page::newest(9), "x y w z"),
        (Page::oldest(0), ""),
    ] {
        assert_eq!(turns(store, "c", page).await, expected, "{page:?}");
    }
}

async fn what_has_ended_does_not_change(store: &dyn ConversationStore) {
    conversation(store, "c").await;
    for (n, status) in [TurnStatus::Succeeded, TurnStatus::Failed, TurnStatus::Cancelled].into_iter().enumerate() {
        let mut one = turn("c", &format!("t{n}"), 1);
        store.create_turn(&one).await.expect("created");
        one.status = status;
        store.update_turn(&one).await.expect("ended");
        store.update_turn(&one).await.expect("the same again is no change");
        for other in TurnStatus::ALL {
            let changed = ConversationTurn { status: other, agent: "bo".into(), ..one.clone() };
            assert_eq!(store.update_turn(&changed).await, Err(StoreError::TurnEnded(one.id.clone())), "{status:?}");
        }
        assert_eq!(store.get_turn(&id("c"), &one.id).await, Ok(Some(one)));
    }
}

async fn nothing_is_seen_from_another_conversation(store: &dyn ConversationStore) {
    conversation(store, "c").await;
    conversation(store, "c.1").await;
    store.append_messages(&id("c"), &[user("c", "m1", 1, "mine")]).await.expect("appended");
    let mine = turn("c", "t1", 1);
    store.create_turn(&mine).await.expect("created");
    assert_eq!(
        (messages(store, "c.1", Page::all()).await, turns(store, "c.1", Page::all()).await),
        ("".into(), "".into())
    );
    assert_eq!(store.get_turn(&id("c.1"), &mine.id).await, Ok(None));
    let moved = ConversationTurn { conversation_id: id("c.1"), ..mine.clone() };
    assert_eq!(store.update_turn(&moved).await, Err(StoreError::NoTurn(mine.id.clone())), "it stays where it is");
    assert_eq!(store.get_turn(&id("c"), &mine.id).await, Ok(Some(mine)));
}

async fn writers_do_not_lose_what_others_write(store: Arc<dyn ConversationStore>) {
    const WRITERS: i64 = 12;
    conversation(&*store, "c").await;
    let writers = (0..WRITERS).map(|n| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let pair = [user("c", &format!("a{n}"), n, "x"), user("c", &format!("b{n}"), n, "y")];
            store.append_messages(&id("c"), &pair).await.expect("appended");
            store.create_turn(&turn("c", &format!("t{n}"), n)).await.expect("created");
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.expect("a writer");
    }
    let all = messages(&*store, "c", Page::all()).await;
    let expected: Vec<String> = (0..WRITERS).map(|n| format!("a{n} b{n}")).collect();
    assert_eq!(all, expected.join(" "), "none is lost, pairs stay together");
    let found: BTreeSet<String> = turns(&*store, "c", Page::all()).await.split(' ').map(str::to_owned).collect();
    assert_eq!(found.len(), WRITERS as usize);
}

async fn of_two_ends_of_a_turn_the_first_counts(store: Arc<dyn ConversationStore>) {
    conversation(&*store, "c").await;
    store.create_turn(&turn("c", "t", 1)).await.expect("created");
    let writers = (0..8).map(|n| {
        let store = Arc::clone(&store);
        let end = ConversationTurn {
            status: if n % 2 == 0 { TurnStatus::Succeeded } else { TurnStatus::Cancelled },
            finished_at_ms: Some(n),
            ..turn("c", "t", 1)
        };
        tokio::spawn(async move { store.update_turn(&end).await.is_ok().then_some(end) })
    });
    let mut won = Vec::new();
    for writer in writers.collect::<Vec<_>>() {
        won.extend(writer.await.expect("a writer"));
    }
    assert_eq!(won.len(), 1, "one end: {won:?}");
    assert_eq!(store.get_turn(&id("c"), &turn_id("t")).await, Ok(won.pop()));
}
