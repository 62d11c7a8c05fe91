//! What is said is copied beside the journal, once, whatever fails, and no log holds up another.

use domain::verify::verify_transcripts;
use schemas::conversation::{LogKind, LogRecord, Talk};
use testkit::contract::words::{message, note, record};
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

    /// How many messages and moves the archive should have, and what is wrong with them.
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
    assert_eq!(world.verified().await, (4, Vec::new()));
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
    pass(1_800_000).await;
    archivist.stop().await;
    assert!(world.unarchived().await.is_empty());
    assert_eq!(world.verified().await, (80, Vec::new()));
    let records = world.archive.all_records();
    assert_eq!((records.messages.len(), records.moves.len()), (40, 40));
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
