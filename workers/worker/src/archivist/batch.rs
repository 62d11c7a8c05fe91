//! A batch of records of conversations, page by page, log after log. A record that cannot be taken holds up its
//! own log alone: the rest of that is left out, and told.

use domain::conversation::kept::{KeptRecords, LogPlace, Stretch};
use domain::failure::Failure;
use domain::ports::{TranscriptTail, UnarchivedRow};
use schemas::conversation::LogRow;
use schemas::limits::{
    RECORDS_ARCHIVED_BYTES_MAX, RECORDS_ARCHIVED_MAX, RECORDS_LIGHTENED_MAX, RECORDS_PAGE, RECORDS_PAGE_BYTES_MAX,
};

/// Records that one batch tells of by name.
const FINDINGS_MAX: usize = 10;

/// Of which records a batch is.
#[derive(Debug, Clone, Copy)]
pub enum What {
    /// Those that the archive does not have.
    Unarchived,
    /// Those whose bodies SQL may let go of, because they are so old.
    Heavy { older_than_ms: u64 },
}

impl What {
    async fn page(self, tail: &dyn TranscriptTail, after: Option<&LogPlace>) -> Result<Vec<UnarchivedRow>, Failure> {
        let (limit, bytes) = (RECORDS_PAGE, RECORDS_PAGE_BYTES_MAX);
        match self {
            Self::Unarchived => tail.unarchived(after, limit, bytes).await,
            Self::Heavy { older_than_ms } => tail.heavy_records(older_than_ms, after, limit, bytes).await,
        }
    }

    fn rows_max(self) -> usize {
        match self {
            Self::Unarchived => RECORDS_ARCHIVED_MAX,
            Self::Heavy { .. } => RECORDS_LIGHTENED_MAX,
        }
    }

    fn add(self, kept: &mut KeptRecords, place: &LogPlace, row: &LogRow) -> Result<(), Failure> {
        match self {
            Self::Unarchived => kept.add(place, row),
            Self::Heavy { .. } => {
                kept.add_whole(place, row);
                Ok(())
            }
        }
    }
}

pub struct Batch {
    what: What,
    pub kept: KeptRecords,
    pub stretches: Vec<Stretch>,
    /// Records in the stretches, and records that were read.
    pub rows: usize,
    seen: usize,
    bytes: usize,
    /// Where the last of the logs that are left out is stuck.
    stuck: Option<LogPlace>,
    /// How many those are, and why; the first few of them.
    pub left_out: usize,
    pub findings: Vec<String>,
    /// The last record that a full batch looked at.
    pub end: Option<LogPlace>,
}

impl Batch {
    /// What there is behind a place, as far as it fits.
    pub async fn collect(tail: &dyn TranscriptTail, what: What, mut after: Option<LogPlace>) -> Result<Self, Failure> {
        let mut batch = Self::new(what);
        loop {
            let page = what.page(tail, after.as_ref()).await?;
            let Some((last, _)) = page.last() else { return Ok(batch) };
            let mut last = last.clone();
            page.into_iter().for_each(|(place, row)| batch.take(place, row));
            if batch.is_stuck(&last) {
                // Behind all of that log.
                last.offset = u64::MAX;
            }
            after = Some(last);
            if batch.seen >= what.rows_max() || batch.bytes >= RECORDS_ARCHIVED_BYTES_MAX {
                batch.end = after;
                return Ok(batch);
            }
        }
    }

    fn new(what: What) -> Self {
        Self {
            what,
            kept: KeptRecords::default(),
            stretches: Vec::new(),
            rows: 0,
            seen: 0,
            bytes: 0,
            stuck: None,
            left_out: 0,
            findings: Vec::new(),
            end: None,
        }
    }

    fn is_stuck(&self, place: &LogPlace) -> bool {
        self.stuck.as_ref().is_some_and(|stuck| stuck.is_in_log_of(place))
    }

    fn take(&mut self, place: LogPlace, row: Result<LogRow, Failure>) {
        self.seen += 1;
        if self.is_stuck(&place) {
            return;
        }
        let added = row.and_then(|row| {
            self.bytes += 512 + row.record.body.as_str().len();
            self.what.add(&mut self.kept, &place, &row)
        });
        if let Err(failure) = added {
            self.leave_out(place, &failure);
            return;
        }
        self.rows += 1;
        match self.stretches.last_mut().filter(|stretch| stretch.first.is_in_log_of(&place)) {
            Some(stretch) => stretch.upto = place.offset,
            None => self.stretches.push(Stretch { upto: place.offset, first: place }),
        }
    }

    fn leave_out(&mut self, place: LogPlace, failure: &Failure) {
        self.left_out += 1;
        if self.findings.len() < FINDINGS_MAX {
            let LogPlace { namespace, conversation_id, offset } = &place;
            self.findings.push(format!("record {offset} of {namespace}/{conversation_id}: {failure}"));
        }
        self.stuck = Some(place);
    }
}
