//! What is said is copied beside the journal, once, whatever fails, and no log holds up another.

use domain::conversation::kept::{KeptRecords, LogPlace, Stretch, light};
use domain::ports::{Conversations, TranscriptArchive};
use domain::read::ArchivedConversations;
use domain::verify::verify_transcripts;
use schemas::conversation::{LogKind, LogRecord, LogRow, Talk};
use schemas::id::Namespace;
use schemas::json::Json;
use testkit::contract::words::{conversation_id, log_query, message, note, record};
use testkit::dice::Dice;

use super::*;

impl World {
    async fn say(&self, session: &str, log: Vec<LogRecord>) {
        self.ports.say(&self.owner, session, Talk { log, ..Talk::default() }).await;
    }

    /// The places of what is not recorded as archived, as `conversation:offset`.
    async fn unarchived(&self) -> Vec<String> {
        let rows = self.ports.transcripts.unarchived(None, 1_000, usize::MAX).await.expect("a read");
        rows.iter().map(|(place, _)| format!("{}:{}", place.conversation_id, place.offset)).collect()
    }

    /// A reply of a model with much in it, made now.
    fn reply(&self, id: &str) -> LogRecord {
        let body = Json::of(&serde_json::json!({"move": 1, "reasoning": "hm".repeat(200)}));
        LogRecord { at_ms: self.clock.now_ms(), body, ..record(LogKind::Move, id) }
    }

    /// Offsets of records whose bodies the archive alone has.
    async fn light(&self, conversation: &str) -> Vec<u64> {
        light(&self.ports.log_of(conversation).await)
    }

    /// A log as readers find it.
    async fn whole(&self, conversation: &str) -> Vec<LogRow> {
        let both = ArchivedConversations::new(self.ports.conversations.clone(), Arc::new(self.archive.clone()));
        both.log(&log_query(conversation)).await.expect("a read")
    }

    /// How many messages, moves and records the archive should have, and what is wrong with them.
    async fn verified(&self) -> (u64, Vec<String>) {
        let (tail, conversations) = (self.ports.transcripts.as_ref(), self.ports.conversations.as_ref());
        let verdict = verify_transcripts(tail, conversations, &self.archive).await.expect("a walk");
        (verdict.seen, verdict.findings)
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_said_is_in_the_archive_within_seconds() {
    let world = World::new();
    world.ports.talker("s1", "c1").await;
    let archivist = Archivist::start(world.deps(), ArchivistConfig::default());
    let said = vec![note("n1"), record(LogKind::Move, "m1"), record(LogKind::Assembly, "a1")];
    world.say("s1", said).await;
    pass(3_000).await;
    assert!(world.unarchived().await.is_empty());
    // A result that comes later is a row of its own.
    world.say("s1", vec![record(LogKind::ToolResult, "r1")]).await;
    pass(3_000).await;
    archivist.stop().await;
    assert!(world.unarchived().await.is_empty());
    let ids = world.archive.all_records().ids();
    assert_eq!(ids.messages, [(1, "n1".to_owned()), (4, "r1".to_owned())]);
    assert_eq!(ids.moves, [(2, "m1".to_owned()), (4, "r1".to_owned())]);
    let records: Vec<u64> = world.archive.all_records().ids().records.iter().map(|(offset, _)| *offset).collect();
    assert_eq!(records, [2, 3, 4]);
    assert_eq!(world.verified().await, (7, Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn an_archive_that_fails_and_archivists_that_die_double_nothing() {
    let mut world = World::new();
    world.archive = MemArchive::with_faults(Dice::new(7), 0.5, testkit::fake::Breakages::default());
    for (session, conversation) in [("s1", "c1"), ("s2", "c2")] {
        world.ports.talker(session, conversation).await;
    }
    for round in 0..20 {
        let archivist = Archivist::start(world.deps(), ArchivistConfig::default());
        for session in ["s1", "s2"] {
            let said = vec![note(&format!("n{round}")), record(LogKind::Move, &format!("m{round}"))];
            world.say(session, said).await;
        }
        pass(700 + 450 * (round % 4)).await;
        archivist.kill();
    }
    let archivist = Archivist::start(world.deps(), ArchivistConfig::default());
    // Attempts get rare while most of them fail.
    pass(3_600_000).await;
    archivist.stop().await;
    assert!(world.unarchived().await.is_empty());
    assert_eq!(world.verified().await, (120, Vec::new()));
    let records = world.archive.all_records();
    assert_eq!((records.messages.len(), records.moves.len(), records.records.len()), (40, 40, 40));
}

#[tokio::test(start_paused = true)]
async fn bodies_leave_the_database_after_their_time_and_are_found_all_the_while() {
    let world = World::new();
    world.ports.talker("s1", "c1").await;
    world.say("s1", vec![note("n1"), world.reply("m1"), record(LogKind::Assembly, "small")]).await;
    let config = ArchivistConfig { records_whole_ms: 3_600_000, ..ArchivistConfig::default() };
    let archivist = Archivist::start(world.deps(), config.clone());
    pass(config.records_whole_ms - 60_000).await;
    world.say("s1", vec![world.reply("m2")]).await;
    assert!(world.light("c1").await.is_empty());
    let whole = world.whole("c1").await;
    pass(3 * limits::RECORDS_LIGHTEN_INTERVAL_MS).await;
    assert_eq!(world.light("c1").await, [2], "the reply that is old");
    assert_eq!(world.whole("c1").await, whole);
    pass(config.records_whole_ms).await;
    assert_eq!(world.light("c1").await, [2, 4]);
    assert_eq!(world.whole("c1").await, whole);
    archivist.stop().await;
    let heavy = world.ports.transcripts.heavy_records(config.records_whole_ms, None, 10, usize::MAX).await;
    assert!(heavy.expect("a read").is_empty(), "nothing is looked at again");
    let (seen, findings) = world.verified().await;
    assert_eq!((seen, findings), (6, Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn bodies_that_an_earlier_release_did_not_archive_are_archived_before_they_leave() {
    let world = World::new();
    world.ports.talker("s1", "c1").await;
    // More than one batch.
    let count = limits::RECORDS_LIGHTENED_MAX as u64 + 9;
    world.say("s1", (1..=count).map(|n| world.reply(&format!("m{n}"))).collect()).await;
    let place = LogPlace { namespace: Namespace::default_ns(), conversation_id: conversation_id("c1"), offset: 1 };
    let all = [Stretch { first: place, upto: count }];
    world.ports.transcripts.record_archived(&all).await.expect("as that release did");
    let whole = world.whole("c1").await;
    let config = ArchivistConfig { records_whole_ms: 0, lighten_after_ms: 0, ..ArchivistConfig::default() };
    let archivist = Archivist::start(world.deps(), config.clone());
    pass(config.reader_lag_ms - 500).await;
    assert_eq!(world.archive.all_records().records.len() as u64, count);
    assert!(world.light("c1").await.is_empty(), "a reader may not see them in the archive yet");
    pass(3 * config.reader_lag_ms).await;
    assert_eq!(world.light("c1").await, (1..=count).collect::<Vec<_>>());
    archivist.stop().await;
    assert_eq!(world.whole("c1").await, whole);
}

#[tokio::test(start_paused = true)]
async fn late_results_are_moves_and_those_that_an_earlier_release_did_not_count_are_no_breach() {
    for is_old in [true, false] {
        let world = World::new();
        world.ports.talker("s1", "c1").await;
        world.say("s1", vec![record(LogKind::AsyncResult, "l1"), record(LogKind::Move, "m1")]).await;
        let conversation_id = conversation_id("c1");
        let place = LogPlace { namespace: Namespace::default_ns(), conversation_id, offset: 1 };
        let mut kept = KeptRecords::default();
        for row in world.ports.log_of("c1").await {
            kept.add(&LogPlace { offset: row.offset, ..place.clone() }, &row).expect("a record");
        }
        assert_eq!(kept.ids().moves, [(1, "l1".to_owned()), (2, "m1".to_owned())]);
        if is_old {
            kept.moves.retain(|kept| kept.id != "l1");
        }
        world.archive.add_records(kept).await.expect("added");
        world.ports.transcripts.record_archived(&[Stretch { first: place, upto: 2 }]).await.expect("recorded");
        assert_eq!(world.verified().await, (if is_old { 4 } else { 5 }, Vec::new()));
    }
}

#[tokio::test(start_paused = true)]
async fn no_body_is_lost_or_doubled_whoever_fails_or_dies_while_they_leave() {
    let mut world = World::new();
    world.archive = MemArchive::with_faults(Dice::new(11), 0.3, testkit::fake::Breakages::default());
    let config = ArchivistConfig { records_whole_ms: 0, lighten_after_ms: 0, ..ArchivistConfig::default() };
    for (session, conversation) in [("s1", "c1"), ("s2", "c2")] {
        world.ports.talker(session, conversation).await;
    }
    let mut whole: Vec<LogRow> = Vec::new();
    for round in 0..30 {
        let archivist = Archivist::start(world.deps(), config.clone());
        for session in ["s1", "s2"] {
            world.say(session, vec![note(&format!("n{round}")), world.reply(&format!("m{round}"))]).await;
        }
        pass(1_500 + 900 * (round % 5)).await;
        archivist.kill();
        let found = world.whole("c1").await;
        assert_eq!(found[..whole.len()], whole[..], "in round {round}");
        whole = found;
    }
    let archivist = Archivist::start(world.deps(), config);
    pass(3_600_000).await;
    archivist.stop().await;
    assert_eq!(world.whole("c1").await, whole);
    assert_eq!(world.light("c1").await, (1..=30).map(|n| 2 * n).collect::<Vec<u64>>());
    let (seen, findings) = world.verified().await;
    assert_eq!((seen, findings, world.archive.all_records().records.len()), (180, Vec::new(), 60));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_nowhere_is_found_out() {
    let world = World::new();
    world.ports.talker("s1", "c1").await;
    world.say("s1", vec![note("n1"), world.reply("m1")]).await;
    let place = LogPlace { namespace: Namespace::default_ns(), conversation_id: conversation_id("c1"), offset: 1 };
    let all = [Stretch { first: place, upto: 2 }];
    let archivist = Archivist::start(world.deps(), ArchivistConfig::default());
    pass(3_000).await;
    archivist.stop().await;
    assert_eq!(world.verified().await.1, Vec::<String>::new());
    world.ports.transcripts.lighten_records(&all).await.expect("lightened");
    assert_eq!(world.verified().await.1, Vec::<String>::new());
    let world = World { archive: MemArchive::default(), ..world };
    let (_, findings) = world.verified().await;
    assert!(
        findings.iter().any(|one| one.contains("of the records of default/c1, the one at 2 is missing")),
        "{findings:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_record_that_cannot_be_archived_holds_up_its_own_log_alone() {
    let world = World::new();
    for (session, conversation) in [("s1", "c1"), ("s2", "c2")] {
        world.ports.talker(session, conversation).await;
    }
    // A message of nobody; more follows than is read at a time.
    let more = (0..limits::RECORDS_PAGE + 9).map(|n| note(&format!("n{n}")));
    world.say("s1", [note("first"), message("odd", "x")].into_iter().chain(more).collect()).await;
    world.say("s2", vec![note("n1")]).await;
    let archivist = Archivist::start(world.deps(), ArchivistConfig::default());
    pass(3_000).await;
    let waiting = world.unarchived().await;
    assert_eq!((waiting[0].as_str(), waiting.len()), ("c1:2", limits::RECORDS_PAGE + 10), "nothing of the other log");
    world.say("s2", vec![note("n2")]).await;
    pass(5_000).await;
    assert_eq!(world.unarchived().await, waiting);
    archivist.stop().await;
    assert_eq!(world.verified().await, (3, Vec::new()));
}
