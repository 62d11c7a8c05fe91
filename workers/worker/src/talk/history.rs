//! What came before a turn, read from the end of its conversation's log: as a rule, in one page.

use std::time::Duration;

use domain::conversation::kept::{KeptBody, fill, light_calls, without_light};
use domain::effect::{Outcome, TalkCall};
use domain::ports::{ConversationKey, Conversations, LogQuery};
use schemas::conversation::{LogKind, LogRow, Message, MessageRole};
use schemas::id::Namespace;
use schemas::limits::MODEL_REQUEST_BYTES_MAX;

use super::ends::End;
use super::{TalkDeps, stored};

/// Records of one conversation that are looked at, newest first.
const ROWS_MAX: usize = 2_000;
/// Fewer are not read at a time.
const PAGE_MIN: usize = 16;
/// Of an ordinary turn: what was asked, a reply and its message, or a call and its result besides.
const ROWS_OF_TURN: usize = 4;
/// What was said.
const SAID: [LogKind; 2] = [LogKind::Message, LogKind::Summary];
/// That, and what was done: replies that call tools are told again with the results.
const DONE: [LogKind; 6] =
    [LogKind::Message, LogKind::Summary, LogKind::Move, LogKind::ToolResult, LogKind::AsyncResult, LogKind::Note];
/// Replies, and what came of their calls.
const CALLED: [LogKind; 3] = [LogKind::Move, LogKind::ToolResult, LogKind::AsyncResult];
/// How long the archive may take for bodies that it alone has.
const ARCHIVE_MS: u64 = 1_000;
/// Once replies and results came to so much, only what was said is looked for further back.
const DONE_BYTES_MAX: usize = MODEL_REQUEST_BYTES_MAX / 2;
/// Records that may have come since the last turn read the end of the log. Of more it is read anew.
const SINCE_MAX: usize = 256;
/// Summaries by earlier sessions that are looked at.
const SUMMARIES_MAX: usize = 20;

/// What was said and done since the `recent`th last message that was there to be answered, oldest first, and the newest
/// summaries. The session's own is among them however old it is.
pub(super) async fn history(
    deps: &TalkDeps,
    namespace: &Namespace,
    talk: &TalkCall,
    recent: usize,
    summary: Option<&str>,
) -> Result<Vec<LogRow>, Outcome> {
    let key = ConversationKey { namespace: namespace.clone(), conversation_id: talk.conversation.clone() };
    let known = match deps.ends.take(&key, recent) {
        Some(end) => since(deps, namespace, talk, end).await?,
        None => None,
    };
    let Window { mut kept, is_full, mut has_summaries, .. } = match known {
        Some(window) => window,
        None => read(deps, namespace, talk, recent).await?,
    };
    let mut own = None;
    match summary {
        Some(id) if kept.iter().all(|row| row.record.id != id) => {
            own = stored(|| deps.conversations.record(namespace, &talk.conversation, id)).await?;
        }
        // One that an earlier session of the agent has made.
        None if is_full && !has_summaries => {
            has_summaries = true;
            let mut query = log_query(namespace, talk, &[LogKind::Summary]);
            query.before = kept.last().map(|row| row.offset);
            query.limit = SUMMARIES_MAX;
            kept.extend(stored(|| deps.conversations.log(&query)).await?);
        }
        _ => {}
    }
    if light_calls(&kept).is_none() {
        deps.ends.put(key, End { rows: kept.clone(), recent, is_full, has_summaries });
    }
    // Not kept: others of the conversation have their own, which may lie between.
    kept.extend(own);
    complete(deps.conversations.as_ref(), log_query(namespace, talk, &CALLED), &mut kept).await;
    kept.reverse();
    Ok(kept)
}

/// Reads the end of a log, a page at a time.
async fn read(deps: &TalkDeps, namespace: &Namespace, talk: &TalkCall, recent: usize) -> Result<Window, Outcome> {
    let mut window = Window::of(recent);
    let mut pages = Pages::new(log_query(namespace, talk, &DONE), recent);
    while !window.is_full && pages.query.limit > 0 {
        let page = stored(|| deps.conversations.log_of_sql(&pages.query)).await?;
        pages.took(&page);
        page.into_iter().for_each(|row| window.add(row));
    }
    // A log that is too long to be read to its beginning has more before it.
    window.is_full |= !pages.has_ended;
    window.has_summaries = !window.is_full;
    Ok(window)
}

/// The same of an end that is known up to some record; `None` if too much came since, or if that record is not there
/// any more: a database that was put back gives numbers again.
async fn since(deps: &TalkDeps, namespace: &Namespace, talk: &TalkCall, end: End) -> Result<Option<Window>, Outcome> {
    let after = end.upto().saturating_sub(1);
    let query = LogQuery { after, limit: SINCE_MAX, ..log_query(namespace, talk, &DONE) };
    let mut news = stored(|| deps.conversations.log_of_sql(&query)).await?;
    // A page may end by its bytes as well as by its records: it is whole if it goes down to what is known.
    let place = |row: Option<&LogRow>| row.map(|row| (row.offset, row.record.id.clone()));
    if place(news.pop().as_ref()) != place(end.rows.first()) {
        return Ok(None);
    }
    let mut window = Window::of(end.recent);
    news.into_iter().chain(end.rows).for_each(|row| window.add(row));
    window.is_full |= end.is_full;
    window.has_summaries = end.has_summaries;
    Ok(Some(window))
}

/// Gives calls of tools the bodies that the archive alone has, and leaves out what does not come soon: no turn waits
/// for an archive that is away.
async fn complete(conversations: &dyn Conversations, query: LogQuery, kept: &mut Vec<LogRow>) {
    if let Some((oldest, newest)) = light_calls(kept) {
        let (after, before) = (oldest.saturating_sub(1), Some(newest.saturating_add(1)));
        let query = LogQuery { after, before, bytes: DONE_BYTES_MAX, ..query };
        let read = conversations.log(&query);
        match tokio::time::timeout(Duration::from_millis(ARCHIVE_MS), read).await {
            Ok(Ok(rows)) => {
                let body = |row: LogRow| KeptBody { offset: row.offset, id: row.record.id, body: row.record.body };
                fill(kept, rows.into_iter().map(body).collect());
            }
            Ok(Err(failure)) => tracing::debug!(%failure, "earlier calls of tools are left out of a context"),
            Err(_) => tracing::debug!("the archive is slow: earlier calls of tools are left out of a context"),
        }
    }
    without_light(kept);
}

/// The way back through a log, a page at a time.
struct Pages {
    /// For the next page; without a limit there is none.
    query: LogQuery,
    /// Records that were read.
    seen: usize,
    /// Bytes of what was said, and of the rest.
    said: usize,
    done: usize,
    /// The beginning of the log was read.
    has_ended: bool,
}

impl Pages {
    fn new(mut query: LogQuery, recent: usize) -> Self {
        // Where there are more, the next page is larger.
        query.limit = recent.saturating_add(2).saturating_mul(ROWS_OF_TURN).clamp(PAGE_MIN, ROWS_MAX);
        Self { query, seen: 0, said: 0, done: 0, has_ended: false }
    }

    fn took(&mut self, page: &[LogRow]) {
        let query = &mut self.query;
        for row in page {
            let sum = if SAID.contains(&row.record.kind) { &mut self.said } else { &mut self.done };
            *sum += row.record.body.as_str().len();
        }
        self.seen += page.len();
        // The page of a log that has ended, or that has come to its bytes.
        let mut is_last = page.len() < query.limit || self.said >= MODEL_REQUEST_BYTES_MAX;
        self.has_ended = page.len() < query.limit;
        if self.done > DONE_BYTES_MAX && query.kinds != SAID {
            query.kinds = SAID.to_vec();
            is_last = page.is_empty();
        }
        query.before = page.last().map(|row| row.offset).or(query.before);
        query.limit = if is_last { 0 } else { query.limit.saturating_mul(2).min(ROWS_MAX.saturating_sub(self.seen)) };
        query.bytes = MODEL_REQUEST_BYTES_MAX.saturating_sub(self.said);
    }
}

/// The end of a conversation, from its newest message back.
struct Window {
    inputs_left: usize,
    kept: Vec<LogRow>,
    is_full: bool,
    /// It has the summaries before it, too.
    has_summaries: bool,
}

impl Window {
    fn of(recent: usize) -> Self {
        Self { inputs_left: recent.saturating_add(1), kept: Vec::new(), is_full: false, has_summaries: false }
    }

    fn add(&mut self, row: LogRow) {
        let is_input = is_input(&row);
        self.is_full |= is_input && self.inputs_left == 0;
        self.inputs_left = self.inputs_left.saturating_sub(usize::from(is_input));
        if !self.is_full || row.record.kind == LogKind::Summary {
            self.kept.push(row);
        }
    }
}

/// Newest first.
fn log_query(namespace: &Namespace, talk: &TalkCall, kinds: &[LogKind]) -> LogQuery {
    LogQuery {
        namespace: namespace.clone(),
        conversation_id: talk.conversation.clone(),
        kinds: kinds.to_vec(),
        turn_id: None,
        after: 0,
        before: None,
        since_ms: None,
        descending: true,
        limit: ROWS_MAX,
        bytes: MODEL_REQUEST_BYTES_MAX,
    }
}

/// Whether turns begin with it: a message of a person, or the question of an agent that calls another one.
fn is_input(row: &LogRow) -> bool {
    row.record.kind == LogKind::Message
        && row.record.body.to::<Message>().is_ok_and(|message| message.role == MessageRole::User)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use domain::conversation::kept::{HEAVY, KeptRecords, LogPlace, RecordIds, Stretch, light};
    use domain::effect::TalkWork;
    use domain::failure::Failure;
    use domain::ports::TranscriptArchive;
    use domain::read::ArchivedConversations;
    use schemas::conversation::LogRecord;
    use schemas::json::Json;
    use serde_json::json;
    use testkit::contract::words::{conversation_id, message, record, turn_id};
    use testkit::unreliable::{Faults, Unreliable};

    use super::super::tests::{Place, talk};
    use super::*;

    fn query() -> LogQuery {
        log_query(&Namespace::default_ns(), &talk(TalkWork::Extract), &DONE)
    }

    /// An archive that may be away, and counts who asks it.
    struct Shelf {
        bodies: Vec<KeptBody>,
        is_away: bool,
        asked: AtomicUsize,
    }

    #[async_trait]
    impl TranscriptArchive for Shelf {
        async fn add_records(&self, _records: KeptRecords) -> Result<(), Failure> {
            Ok(())
        }

        async fn record_ids(&self, _after: &LogPlace, _upto: u64) -> Result<RecordIds, Failure> {
            Ok(RecordIds::default())
        }

        async fn bodies(&self, _log: &LogPlace, offsets: &[u64]) -> Result<Vec<KeptBody>, Failure> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            if self.is_away {
                std::future::pending::<()>().await;
            }
            Ok(self.bodies.iter().filter(|body| offsets.contains(&body.offset)).cloned().collect())
        }
    }

    /// A log of a turn with these records between two messages, all of which SQL has as light as it gets. Gives the
    /// bodies that are gone.
    async fn lightened(place: &Place, kinds: &[LogKind]) -> Vec<KeptBody> {
        let large = Json::of(&json!({"text": "x".repeat(1_000)}));
        let of_turn = |kind: &LogKind| LogRecord {
            turn_id: Some(turn_id("t1")),
            body: large.clone(),
            ..record(*kind, kind.as_str())
        };
        let mut log = vec![message("m1", "said")];
        log.extend(kinds.iter().map(of_turn));
        log.push(message("m2", "said"));
        place.say(log).await;
        let ports = &place.ports;
        let rows = ports.log_of("c1").await;
        let (namespace, conversation_id) = (Namespace::default_ns(), conversation_id("c1"));
        let upto = rows.last().expect("records").offset;
        let all = [Stretch { first: LogPlace { namespace, conversation_id, offset: 1 }, upto }];
        ports.transcripts.record_archived(&all).await.expect("a write");
        ports.transcripts.lighten_records(&all).await.expect("a write");
        let heavy = rows.into_iter().filter(|row| HEAVY.contains(&row.record.kind));
        heavy.map(|row| KeptBody { offset: row.offset, id: row.record.id, body: row.record.body }).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_archive_is_asked_for_calls_of_tools_alone_and_never_waited_for() {
        let (plain, called) = (vec![LogKind::Move], vec![LogKind::Move, LogKind::ToolResult]);
        for (kinds, is_away, asked, found) in [
            (plain, true, 0, vec!["m1", "m2"]),
            (called.clone(), false, 1, vec!["m1", called[0].as_str(), called[1].as_str(), "m2"]),
            (called, true, 1, vec!["m1", "m2"]),
        ] {
            let place = Place::new().await;
            let bodies = lightened(&place, &kinds).await;
            assert_eq!(bodies.len(), kinds.len());
            let shelf = Arc::new(Shelf { bodies, is_away, asked: AtomicUsize::new(0) });
            let both = ArchivedConversations::new(place.ports.conversations.clone(), shelf.clone());
            let deps = place.deps(Arc::new(both));
            let (namespace, talk) = (Namespace::default_ns(), talk(TalkWork::Extract));
            let read = history(&deps, &namespace, &talk, 20, None);
            let rows = tokio::time::timeout(Duration::from_secs(5), read).await.expect("soon").expect("a read");
            let ids: Vec<&str> = rows.iter().map(|row| row.record.id.as_str()).collect();
            assert_eq!((ids, light(&rows), shelf.asked.load(Ordering::Relaxed)), (found, Vec::new(), asked));
        }
    }

    /// What a user said.
    fn asked(id: &str) -> LogRecord {
        let body = json!({"message_id": id, "sender_type": "user", "role": "user", "event_type": "utterance",
                          "text": "said"});
        LogRecord { body: Json::of(&body), ..record(LogKind::Message, id) }
    }

    /// An agent that calls another one begins a turn, as a person does.
    #[tokio::test(start_paused = true)]
    async fn the_question_of_an_agent_counts_like_that_of_a_person() {
        let place = Place::new().await;
        let deps = place.deps(place.ports.conversations.clone());
        let mut question = asked("q2").body.to_value();
        question["sender_type"] = json!("agent");
        question["agent_id"] = json!("boss");
        let question = LogRecord { body: Json::of(&question), ..asked("q2") };
        place.say(vec![asked("m1"), question, asked("m3")]).await;
        let (namespace, talk) = (Namespace::default_ns(), talk(TalkWork::Extract));
        let rows = history(&deps, &namespace, &talk, 1, None).await.expect("a read");
        let ids: Vec<&str> = rows.iter().map(|row| row.record.id.as_str()).collect();
        assert_eq!(ids, ["q2", "m3"], "the turn before, and its own");
    }

    /// What turns have read of a conversation is what they would read now, however the two are mixed.
    #[tokio::test(start_paused = true)]
    async fn what_was_read_before_is_read_on() {
        let place = Place::new().await;
        let kept = place.deps(place.ports.conversations.clone());
        let (namespace, talk) = (Namespace::default_ns(), talk(TalkWork::Extract));
        for n in 0..40 {
            let mut log = vec![LogRecord { turn_id: Some(turn_id("t1")), ..record(LogKind::Move, &format!("r{n}")) }];
            if n % 3 > 0 {
                log.push(asked(&format!("m{n}")));
            }
            if n % 16 == 9 {
                log.push(record(LogKind::Summary, &format!("s{n}")));
            }
            place.say(log).await;
            let fresh = place.deps(place.ports.conversations.clone());
            let recent = if n < 30 { 5 } else { 7 };
            let read = async |deps: &TalkDeps| history(deps, &namespace, &talk, recent, None).await.expect("a read");
            let (known, anew) = (read(&kept).await, read(&fresh).await);
            let ids = |rows: &[LogRow]| rows.iter().map(|row| row.record.id.clone()).collect::<Vec<_>>();
            let mut known = ids(&known);
            // Summaries that were seen once stay in sight.
            known.retain(|id| !id.starts_with('s') || ids(&anew).contains(id));
            assert_eq!(known, ids(&anew), "after {n}");
        }
        let key = ConversationKey { namespace, conversation_id: talk.conversation };
        let last = place.ports.log_of("c1").await.last().expect("records").offset;
        assert_eq!(kept.ends.take(&key, 7).map(|end| end.upto()), Some(last));
    }

    /// What one session's summary stands for is no edge for the summaries of others.
    #[tokio::test(start_paused = true)]
    async fn the_old_summary_of_one_session_hides_no_other() {
        let place = Place::new().await;
        let deps = place.deps(place.ports.conversations.clone());
        place.say(vec![record(LogKind::Summary, "of-one"), record(LogKind::Summary, "of-another")]).await;
        place.say((0..40).map(|n| asked(&format!("m{n}"))).collect()).await;
        let (namespace, talk) = (Namespace::default_ns(), talk(TalkWork::Extract));
        let read = async |summary| history(&deps, &namespace, &talk, 5, summary).await.expect("a read");
        let has = |rows: &[LogRow], id: &str| rows.iter().any(|row| row.record.id == id);
        let first = read(Some("of-one")).await;
        assert!(has(&first, "of-one") && !has(&first, "of-another") && first.len() < 10, "{first:?}");
        assert!(has(&read(None).await, "of-another"));
        assert!(has(&read(Some("of-one")).await, "of-one"));
    }

    /// Nobody knows what lies before, and it is looked up once.
    #[tokio::test(start_paused = true)]
    async fn a_log_that_is_too_long_to_be_read_to_its_beginning_hides_no_summary() {
        let place = Place::new().await;
        let faults = Faults::none("w");
        let conversations = Unreliable::new(place.ports.conversations.clone(), faults.clone());
        let deps = place.deps(Arc::new(conversations));
        place.say(vec![record(LogKind::Summary, "old")]).await;
        place.say((0..=ROWS_MAX).map(|n| record(LogKind::Note, &format!("n{n}"))).collect()).await;
        let (namespace, talk) = (Namespace::default_ns(), talk(TalkWork::Extract));
        let read = async || history(&deps, &namespace, &talk, 5, None).await.expect("a read");
        let first = read().await;
        let ids: Vec<&str> = first.iter().map(|row| row.record.id.as_str()).collect();
        assert_eq!((ids.len(), &ids[..2]), (ROWS_MAX + 1, &["old", "n1"][..]), "of the notes all but the oldest");
        let pages = faults.calls();
        assert_eq!(read().await, first);
        assert_eq!(faults.calls(), pages + 1, "it is known by then");
    }

    /// A log whose last records were lost with a database gives their numbers to others.
    #[tokio::test(start_paused = true)]
    async fn an_end_that_the_log_does_not_have_is_not_read_on() {
        let place = Place::new().await;
        let deps = place.deps(place.ports.conversations.clone());
        place.say(vec![message("m1", "said"), message("m2", "said")]).await;
        let (namespace, talk) = (Namespace::default_ns(), talk(TalkWork::Extract));
        let key = ConversationKey { namespace: namespace.clone(), conversation_id: talk.conversation.clone() };
        let lost = LogRow { record: message("lost", "said"), ..row(2, LogKind::Message, 1) };
        deps.ends.put(key, End { rows: vec![lost], recent: 5, is_full: false, has_summaries: true });
        let rows = history(&deps, &namespace, &talk, 5, None).await.expect("a read");
        let ids: Vec<&str> = rows.iter().map(|row| row.record.id.as_str()).collect();
        assert_eq!(ids, ["m1", "m2"]);
    }

    fn row(offset: u64, kind: LogKind, bytes: usize) -> LogRow {
        let body = Json::of(&json!("x".repeat(bytes)));
        let id = format!("r{offset}");
        let record = LogRecord { kind, id, turn_id: None, agent_id: None, session_id: None, at_ms: 0, body };
        LogRow { offset, record }
    }

    #[test]
    fn a_page_that_is_not_full_is_the_last_and_after_a_full_one_comes_a_larger() {
        let mut pages = Pages::new(query(), 2);
        assert_eq!(pages.query.limit, 16);
        let page: Vec<LogRow> = (0..16).rev().map(|n| row(100 + n, LogKind::Move, 10)).collect();
        pages.took(&page);
        assert_eq!((pages.query.limit, pages.query.before), (32, Some(100)));
        pages.took(&page[..3]);
        assert_eq!(pages.query.limit, 0);
    }

    /// Results may be large; they must not keep the words of earlier turns out.
    #[test]
    fn behind_very_large_results_only_what_was_said_is_looked_for() {
        let mut pages = Pages::new(query(), 2);
        let large = [row(90, LogKind::ToolResult, DONE_BYTES_MAX), row(80, LogKind::Message, 10)];
        pages.took(&large);
        assert_eq!((pages.query.limit, pages.query.before), (32, Some(80)), "the page ended by its bytes");
        assert_eq!(pages.query.kinds, SAID);
        pages.took(&large[1..]);
        assert_eq!(pages.query.limit, 0);
    }
}
