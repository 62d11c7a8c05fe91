//! The records of a turn that its model is shown: as a rule, one page of the log. A turn with more is read to its
//! end, from where its newest summary ends: memory stays bounded, and what is newest is never missing.

use std::ops::Deref;

use domain::converse::{self, BESIDE, Extent, SHOWN, Summary};
use domain::effect::{Outcome, TalkCall};
use domain::ports::LogQuery;
use schemas::conversation::{LogKind, LogRow};
use schemas::id::Namespace;
use schemas::limits::{MODEL_ANSWER_BYTES_MAX, MODEL_REQUEST_BYTES_MAX};
use schemas::problem::Code;

use super::{TalkDeps, failed, stored};

/// Summaries that are looked at in one go; those of the conversation are among them.
const SUMMARIES: usize = 16;

/// How much is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Records and bytes of a page.
    pub rows: usize,
    pub bytes: usize,
    /// Bytes of the largest record.
    pub record: usize,
    /// Bytes of all that is read, without pages that a summary stands for.
    pub all: usize,
}

pub(super) const BOUNDS: Bounds = Bounds {
    rows: 10_000,
    bytes: 2 * MODEL_REQUEST_BYTES_MAX,
    // A reply is there as it came, in parts, and as text and calls; everything else is smaller.
    record: 3 * MODEL_ANSWER_BYTES_MAX + (1 << 20),
    all: 4 * MODEL_REQUEST_BYTES_MAX,
};
const _: () = assert!(BOUNDS.record < BOUNDS.bytes && BOUNDS.bytes <= BOUNDS.all);

impl Bounds {
    /// Whether nothing was left out of a page: the next record would have fitted, whatever it is.
    fn is_last(&self, page: &[LogRow]) -> bool {
        page.is_empty() || (page.len() < self.rows && size(page).saturating_add(self.record) <= self.bytes)
    }
}

/// Records of a turn in the order of the log, up to its end.
#[derive(Debug, Default)]
pub(super) struct TurnLog {
    rows: Vec<LogRow>,
    /// Notes and results of work in the background that lie before them.
    heard_before: u32,
}

impl TurnLog {
    /// Notes and results of work in the background that the turn has in all.
    pub fn heard(&self) -> u32 {
        self.heard_before.saturating_add(converse::heard(&self.rows))
    }

    /// Offset of the last record.
    pub fn seen(&self) -> u64 {
        self.rows.last().map_or(0, |row| row.offset)
    }
}

impl Deref for TurnLog {
    type Target = [LogRow];

    fn deref(&self) -> &[LogRow] {
        &self.rows
    }
}

/// Reads what the model of a turn is shown behind its context.
pub(super) async fn turn_log(
    deps: &TalkDeps,
    namespace: &Namespace,
    talk: &TalkCall,
    bounds: Bounds,
) -> Result<TurnLog, Outcome> {
    let mut query = LogQuery { limit: bounds.rows, bytes: bounds.bytes, ..of_turn(namespace, talk, &SHOWN) };
    let first = stored(|| deps.conversations.log(&query)).await?;
    if bounds.is_last(&first) {
        return Ok(TurnLog { rows: first, heard_before: 0 });
    }
    query.after = summed_up(deps, namespace, talk).await?;
    if query.after == 0 {
        let rows = read_on(deps, talk, query, bounds, first).await?;
        return Ok(TurnLog { rows, heard_before: 0 });
    }
    drop(first);
    let heard_before = heard_upto(deps, &query).await?;
    let rows = read_on(deps, talk, query, bounds, Vec::new()).await?;
    Ok(TurnLog { rows, heard_before })
}

/// Reads the log to its end, behind the rows that are there.
async fn read_on(
    deps: &TalkDeps,
    talk: &TalkCall,
    mut query: LogQuery,
    bounds: Bounds,
    mut rows: Vec<LogRow>,
) -> Result<Vec<LogRow>, Outcome> {
    let mut bytes = size(&rows);
    loop {
        query.after = rows.last().map_or(query.after, |row| row.offset);
        let page = stored(|| deps.conversations.log(&query)).await?;
        bytes = bytes.saturating_add(size(&page));
        if bytes > bounds.all {
            return Err(too_long(talk, bounds));
        }
        let is_last = bounds.is_last(&page);
        rows.extend(page);
        if is_last {
            return Ok(rows);
        }
    }
}

/// No model takes so much, and a model that is shown a part does again what the rest says was done.
fn too_long(talk: &TalkCall, bounds: Bounds) -> Outcome {
    let message = format!(
        "the turn {} has more than {} bytes of replies and results that no summary stands for; let its tools answer \
         with less, and leave the agent's compaction on",
        talk.turn, bounds.all
    );
    failed(Code::TooLarge, message)
}

/// Where the records begin that the turn's newest summary does not stand for: behind what the first reply after it
/// was shown. 0 if there is no summary.
async fn summed_up(deps: &TalkDeps, namespace: &Namespace, talk: &TalkCall) -> Result<u64, Outcome> {
    let mut query = LogQuery { descending: true, limit: SUMMARIES, ..of_turn(namespace, talk, &[LogKind::Summary]) };
    loop {
        let page = stored(|| deps.conversations.log(&query)).await?;
        if let Some(summary) = page.iter().find_map(of_replies) {
            let id = converse::move_id(&talk.turn, summary.upto.saturating_add(1));
            let next = stored(|| deps.conversations.record(namespace, &talk.conversation, &id)).await?;
            return Ok(next.as_ref().map_or(0, converse::seen));
        }
        let Some(oldest) = page.last() else { return Ok(0) };
        query.before = Some(oldest.offset);
    }
}

fn of_replies(row: &LogRow) -> Option<Summary> {
    row.record.body.to::<Summary>().ok().filter(|summary| summary.scope == Extent::Turn)
}

/// Counts what came beside replies before the records that are read. A reply says how much of it the model knows.
async fn heard_upto(deps: &TalkDeps, read: &LogQuery) -> Result<u32, Outcome> {
    let before = Some(read.after.saturating_add(1));
    let mut query = LogQuery { kinds: BESIDE.to_vec(), after: 0, before, ..read.clone() };
    let mut heard = 0_u32;
    loop {
        // Without bodies that the archive alone has: nobody reads them.
        let page = stored(|| deps.conversations.log_of_sql(&query)).await?;
        let Some(last) = page.last() else { return Ok(heard) };
        query.after = last.offset;
        heard = heard.saturating_add(converse::heard(&page));
    }
}

/// Records of a turn, oldest first.
pub(super) fn of_turn(namespace: &Namespace, talk: &TalkCall, kinds: &[LogKind]) -> LogQuery {
    LogQuery {
        namespace: namespace.clone(),
        conversation_id: talk.conversation.clone(),
        kinds: kinds.to_vec(),
        turn_id: Some(talk.turn.clone()),
        after: 0,
        before: None,
        since_ms: None,
        descending: false,
        limit: BOUNDS.rows,
        bytes: BOUNDS.bytes,
    }
}

fn size(rows: &[LogRow]) -> usize {
    rows.iter().map(|row| row.record.body.as_str().len()).sum()
}

#[cfg(test)]
mod tests {
    use domain::converse::Shown;
    use domain::effect::TalkWork;
    use schemas::conversation::LogRecord;
    use schemas::json::Json;
    use serde_json::{Value, json};
    use testkit::contract::words::{record, turn_id};

    use super::super::tests::{Place, assembly, talk};
    use super::*;

    /// Pages of about two records.
    const SMALL: Bounds = Bounds { rows: 3, bytes: 500, record: 500, all: 1 << 20 };

    fn of(kind: LogKind, id: &str, body: &Value) -> LogRecord {
        LogRecord { turn_id: Some(turn_id("t1")), body: Json::of(body), ..record(kind, id) }
    }

    fn note(id: &str) -> LogRecord {
        of(LogKind::Note, id, &json!({"text": format!("the note {id}"), "from": "guidance"}))
    }

    fn summary(id: &str, upto: u64, scope: &str) -> LogRecord {
        let body = json!({"scope": scope, "upto": upto, "text": format!("[Summary up to {upto}]"), "batches": []});
        of(LogKind::Summary, id, &body)
    }

    async fn all(place: &Place) -> Vec<LogRow> {
        place.ports.log_of("c1").await.into_iter().filter(|row| row.record.turn_id == Some(turn_id("t1"))).collect()
    }

    /// The `number`th reply, and what came while its model was asked and after it.
    async fn reply(place: &Place, number: u64, meanwhile: Option<&str>) {
        let seen = all(place).await.last().map_or(0, |row| row.offset);
        let call = json!({"id": format!("c{number}"), "name": "look", "input": {}});
        let text = json!({"type": "text", "text": format!("reply {number} {}", "x".repeat(100))});
        let mut part = call.clone();
        part["type"] = "tool_call".into();
        let body = json!({"move": number, "parts": [text, part], "tool_calls": [call], "finish": "tool_calls",
            "seen": seen});
        let result = json!({"move": number, "tool_call_id": format!("c{number}"), "success": true, "result": number});
        let mut log: Vec<LogRecord> = meanwhile.map(note).into_iter().collect();
        log.push(of(LogKind::Move, &converse::move_id(&turn_id("t1"), number), &body));
        log.push(of(LogKind::ToolResult, &format!("t1.result.{number}"), &result));
        log.push(note(&format!("n{number}")));
        place.say(log).await;
    }

    async fn read(place: &Place, bounds: Bounds) -> Result<TurnLog, Outcome> {
        let deps = place.deps(place.ports.conversations.clone());
        turn_log(&deps, &Namespace::default_ns(), &talk(TalkWork::Extract), bounds).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_is_read_to_its_end_however_small_the_pages_are() {
        let place = Place::new().await;
        for number in 1..=5 {
            reply(&place, number, None).await;
        }
        let all = all(&place).await;
        let (by_rows, by_bytes) = (Bounds { bytes: 1 << 20, ..SMALL }, Bounds { rows: 1_000, ..SMALL });
        // A record that is larger than a page is a page.
        for bounds in [SMALL, by_rows, by_bytes, Bounds { bytes: 1, ..SMALL }, BOUNDS] {
            let log = read(&place, bounds).await.expect("the log");
            assert_eq!(log.to_vec(), all, "{bounds:?}");
            assert_eq!((log.heard(), log.seen()), (5, all.last().map_or(0, |row| row.offset)), "{bounds:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_turn_is_read_from_where_its_newest_summary_ends() {
        let place = Place::new().await;
        for number in 1..=3 {
            reply(&place, number, None).await;
        }
        place.say(vec![summary("s1", 1, "turn")]).await;
        // The fourth reply did not know of it.
        reply(&place, 4, Some("late")).await;
        for number in 5..=6 {
            reply(&place, number, None).await;
        }
        place.say(vec![summary("s2", 3, "turn"), summary("s3", 9, "conversation")]).await;
        let all = all(&place).await;
        let log = read(&place, SMALL).await.expect("the log");
        assert_eq!(log[0].record.id, "late");
        assert_eq!((log.heard(), log.seen()), (7, all.last().map_or(0, |row| row.offset)));
        let assembly = assembly();
        let request = |rows: &[LogRow]| Shown::of(&assembly, None, rows).request(false);
        let shown = request(&log);
        assert_eq!(shown, request(&all), "nothing of it is missing");
        let texts: String = shown.messages.iter().map(|message| message.plain_text()).collect();
        assert!(texts.contains("[Summary up to 3]") && texts.contains("the note late"), "{texts}");
        assert!(!texts.contains("reply 3") && texts.contains("reply 4") && texts.contains("reply 6"), "{texts}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_no_model_could_be_shown_fails_with_the_reason() {
        let place = Place::new().await;
        for number in 1..=5 {
            reply(&place, number, None).await;
        }
        let failed = read(&place, Bounds { all: 1_000, ..SMALL }).await.expect_err("it is too long");
        let Outcome::Failed(failure) = failed else { panic!("{failed:?}") };
        assert_eq!(failure.code, Code::TooLarge);
        assert!(failure.message.contains("more than 1000 bytes"), "{}", failure.message);
        place.say(vec![summary("s1", 4, "turn")]).await;
        assert!(read(&place, Bounds { all: 1_000, ..SMALL }).await.is_ok(), "what is summed up does not count");
    }
}
