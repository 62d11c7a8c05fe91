//! Whether the archive has what is recorded as archived of conversations, once (invariant J1).

use std::collections::HashSet;

use schemas::conversation::{LogKind, LogRow};
use schemas::limits::{RECORDS_PAGE, RECORDS_PAGE_BYTES_MAX};

use crate::conversation::kept::{KeptRecords, LogPlace, cut, fill, light, light_bytes};
use crate::failure::Failure;
use crate::ports::{Conversations, LogQuery, TranscriptArchive, TranscriptTail};

/// Findings kept in all.
const FINDINGS_MAX: usize = 1_000;

/// What a walk over logs found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TranscriptVerdict {
    /// Messages, moves and bodies of records that the archive should have.
    pub seen: u64,
    pub broken: u64,
    pub findings: Vec<String>,
}

/// Compares both, log by log, up to where each is recorded as archived. Works beside a running fleet.
/// `conversations` is SQL by itself: the union that readers get would hide what is missing.
///
/// # Errors
/// SQL or the archive cannot be read.
pub async fn verify_transcripts(
    tail: &dyn TranscriptTail,
    conversations: &dyn Conversations,
    archive: &dyn TranscriptArchive,
) -> Result<TranscriptVerdict, Failure> {
    let mut verdict = TranscriptVerdict::default();
    let mut after: Option<LogPlace> = None;
    loop {
        let ends = tail.archived_ends(after.as_ref(), RECORDS_PAGE).await?;
        for end in &ends {
            verdict.walk(end, conversations, archive).await?;
        }
        if ends.len() < RECORDS_PAGE {
            return Ok(verdict);
        }
        after = ends.into_iter().next_back();
    }
}

impl TranscriptVerdict {
    /// One log, a page at a time.
    async fn walk(
        &mut self,
        end: &LogPlace,
        conversations: &dyn Conversations,
        archive: &dyn TranscriptArchive,
    ) -> Result<(), Failure> {
        let mut after = LogPlace { offset: 0, ..end.clone() };
        while after.offset < end.offset {
            let query = LogQuery {
                namespace: end.namespace.clone(),
                conversation_id: end.conversation_id.clone(),
                kinds: Vec::new(),
                turn_id: None,
                after: after.offset,
                before: Some(end.offset + 1),
                since_ms: None,
                descending: false,
                limit: RECORDS_PAGE,
                bytes: RECORDS_PAGE_BYTES_MAX,
            };
            let mut rows = conversations.log(&query).await?;
            cut(&mut rows, RECORDS_PAGE_BYTES_MAX);
            let lightened = light(&rows);
            if !lightened.is_empty() {
                fill(&mut rows, archive.bodies(end, &lightened).await?);
            }
            let mut wanted = KeptRecords::default();
            for row in &rows {
                wanted.add(&LogPlace { offset: row.offset, ..end.clone() }, row)?;
            }
            let upto = rows.last().map_or(end.offset, |row| row.offset);
            let (mut wanted, found) = (wanted.ids(), archive.record_ids(&after, upto).await?);
            // What SQL has whole may be missing yet: earlier releases did not archive it. What is light may not.
            wanted.records.retain(|one| lightened.contains(&one.0) || found.records.contains(one));
            // Nor did they count late results among the moves.
            let is_late = |row: &LogRow| row.record.kind == LogKind::AsyncResult;
            let late: HashSet<u64> = rows.iter().filter(|row| is_late(row)).map(|row| row.offset).collect();
            wanted.moves.retain(|one| !late.contains(&one.0) || found.moves.contains(one));
            let lost = rows.iter().filter(|row| light_bytes(&row.record).is_some());
            wanted.records.extend(lost.map(|row| (row.offset, row.record.id.clone())));
            wanted.records.sort();
            self.see(end, "messages", &wanted.messages, &found.messages);
            self.see(end, "moves", &wanted.moves, &found.moves);
            self.see(end, "records", &wanted.records, &found.records);
            after.offset = upto;
        }
        Ok(())
    }

    fn see(&mut self, log: &LogPlace, what: &str, wanted: &[(u64, String)], found: &[(u64, String)]) {
        self.seen += wanted.len() as u64;
        if wanted == found {
            return;
        }
        let missing = wanted.iter().filter(|one| !found.contains(one)).map(|(offset, _)| (offset, "is missing"));
        let double = found.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| (&pair[0].0, "is there twice"));
        let strange = found.iter().filter(|one| !wanted.contains(one)).map(|(offset, _)| (offset, "is none of its"));
        for (offset, wrong) in missing.chain(double).chain(strange) {
            self.broken += 1;
            if self.findings.len() < FINDINGS_MAX {
                let LogPlace { namespace, conversation_id, .. } = log;
                self.findings.push(format!(
                    "J1: of the {what} of {namespace}/{conversation_id}, the one at {offset} {wrong} in the archive"
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use schemas::id::{ConversationId, Namespace};

    use super::*;

    #[test]
    fn what_is_missing_doubled_or_strange_is_a_breach() {
        let conversation_id = ConversationId::parse("c1").expect("an id");
        let log = LogPlace { namespace: Namespace::default_ns(), conversation_id, offset: 9 };
        let at = |offsets: &[u64]| offsets.iter().map(|offset| (*offset, format!("r{offset}"))).collect::<Vec<_>>();
        let mut verdict = TranscriptVerdict::default();
        verdict.see(&log, "moves", &at(&[1, 2, 5]), &at(&[1, 2, 5]));
        assert_eq!((verdict.seen, verdict.broken), (3, 0));
        verdict.see(&log, "moves", &at(&[1, 2, 5]), &at(&[1, 1, 4, 5]));
        assert_eq!((verdict.seen, verdict.broken), (6, 3));
        assert_eq!(verdict.findings[0], "J1: of the moves of default/c1, the one at 2 is missing in the archive");
        assert!(verdict.findings[1].contains("at 1 is there twice"), "{:?}", verdict.findings);
        assert!(verdict.findings[2].contains("at 4 is none of its"), "{:?}", verdict.findings);
        // Another record at the same place is neither.
        verdict.see(&log, "messages", &at(&[3]), &[(3, "other".to_owned())]);
        assert_eq!(verdict.broken, 5);
    }
}
