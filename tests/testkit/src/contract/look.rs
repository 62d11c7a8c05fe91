//! Contract of `Conversations::look`.

use domain::ports::{LogQuery, Look, LookQuery};
use schemas::conversation::{LogKind, LogRecord, LogRow, Talk, Turn, TurnStatus};

use super::Ports;
use super::build::*;
use super::words::*;

pub async fn suite(make: &impl AsyncFn() -> Ports) {
    a_look_tells_how_a_conversation_stands(&make().await).await;
    a_look_is_bounded(&make().await).await;
}

fn query(id: &str) -> LookQuery {
    let log = LogQuery { kinds: vec![LogKind::Message], ..log_query(id) };
    LookQuery { log, active_max: 10, ended_max: 10, followed: Vec::new() }
}

async fn look(ports: &Ports, query: &LookQuery) -> Look {
    ports.conversations.look(query).await.expect("a look").expect("the conversation")
}

fn ids(turns: &[Turn]) -> Vec<&str> {
    turns.iter().map(|turn| turn.turn_id.as_str()).collect()
}

fn said(page: &[LogRow]) -> Vec<&str> {
    page.iter().map(|row| row.record.id.as_str()).collect()
}

fn ended(one: Turn) -> Turn {
    Turn { status: TurnStatus::Completed, ..one }
}

fn of(turn: &str, one: LogRecord) -> LogRecord {
    LogRecord { turn_id: Some(turn_id(turn)), ..one }
}

async fn a_look_tells_how_a_conversation_stands(ports: &Ports) {
    let owner = worker("w1");
    assert!(ports.conversations.look(&query("c1")).await.expect("a look").is_none(), "there is none yet");
    ports.talker("s1", "c1").await;
    ports.talker("s2", "c2").await;
    let turns = vec![
        turn("t3", "c1", "s1", 10),
        ended(turn("t1", "c1", "s1", 20)),
        turn("t2", "c1", "s1", 20),
        ended(turn("t5", "c1", "s1", 5)),
        ended(turn("t6", "c1", "s1", 6)),
    ];
    let log = vec![
        message("m1", "free"),
        of("t1", message("m2", "bound")),
        of("t5", note("n1")),
        of("t2", message("m3", "x")),
    ];
    ports.say(&owner, "s1", Talk { log, turns, ..Talk::default() }).await;
    ports.say(&owner, "s2", Talk { turns: vec![turn("t9", "c2", "s2", 1)], ..Talk::default() }).await;

    let found = look(ports, &query("c1")).await;
    assert_eq!(found.conversation, ports.forum("c1").await);
    assert_eq!(found.conversation.last_offset, 4);
    assert_eq!(ids(&found.active), ["t3", "t2"], "by age");
    assert_eq!(said(&found.page), ["m1", "m2", "m3"], "of the kinds that were asked for");
    assert_eq!(found.page[1], ports.log_of("c1").await[1]);
    assert_eq!(ids(&found.ended), ["t1"], "what the page names");

    let followed = vec![turn_id("t5"), turn_id("t3"), turn_id("none")];
    let mut later = LookQuery { followed, ..query("c1") };
    later.log.after = 2;
    let found = look(ports, &later).await;
    assert_eq!(said(&found.page), ["m3"]);
    assert_eq!(ids(&found.ended), ["t5"], "what is followed and has ended, and not what came before the cursor");
    later.log.kinds.clear();
    assert_eq!(said(&look(ports, &later).await.page), ["n1", "m3"], "no kinds are all kinds");
    let mut elsewhere = query("c1");
    elsewhere.log.namespace = namespace("other");
    assert!(ports.conversations.look(&elsewhere).await.expect("a look").is_none());
}

async fn a_look_is_bounded(ports: &Ports) {
    let owner = worker("w1");
    ports.talker("s1", "c1").await;
    let at = |n: i64| (turn(&format!("a{n}"), "c1", "s1", n), ended(turn(&format!("e{n}"), "c1", "s1", n)));
    let turns: Vec<Turn> = (0..6).flat_map(|n| <[Turn; 2]>::from(at(n))).collect();
    let log = (0..6).map(|n| of(&format!("e{n}"), message(&format!("m{n}"), "word"))).collect();
    ports.say(&owner, "s1", Talk { log, turns, ..Talk::default() }).await;
    let found = look(ports, &LookQuery { active_max: 2, ended_max: 3, ..query("c1") }).await;
    assert_eq!((ids(&found.active), ids(&found.ended)), (vec!["a0", "a1"], vec!["e3", "e4", "e5"]));
    let mut short = query("c1");
    short.log.limit = 2;
    let found = look(ports, &short).await;
    assert_eq!((said(&found.page), ids(&found.ended)), (vec!["m0", "m1"], vec!["e0", "e1"]), "of this page alone");
    let body = found.page[0].record.body.as_str().len();
    let mut light = query("c1");
    light.log.bytes = 3 * body + 1;
    assert_eq!(said(&look(ports, &light).await.page), ["m0", "m1", "m2"]);
    light.log.bytes = 1;
    let found = look(ports, &light).await;
    assert_eq!((said(&found.page), ids(&found.ended)), (vec!["m0"], vec!["e0"]), "one at least");
}
