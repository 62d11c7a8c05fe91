//! Watermarks: per table and shard, the journal's `seq` up to which the table has all rows.
//!
//! A watermark is written in the same commit as the rows it speaks of, as a property of the
//! transaction. Compactions carry a copy, and before old versions are pruned the manifest's
//! configuration gets one, which every later version keeps. The watermark of a table is the
//! highest found; all of them only ever grow.

use std::collections::HashMap;
use std::sync::Arc;

use domain::failure::Failure;
use domain::ports::Watermarks;
use lance::Dataset;
use schemas::id::Shard;
use schemas::record::JournalRow;

use crate::failure::of_lance;

pub const KEY: &str = "stepfleet.watermark";

/// Versions looked back at, at most. Every append has a watermark, and between two of them there
/// are a handful of commits of upkeep.
const LOOK_BACK_MAX: u64 = 10_000;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks(Watermarks);

impl Marks {
    /// Reads the watermark of a table from storage.
    pub async fn stored(dataset: &Dataset) -> Result<Self, Failure> {
        let mut marks = Self::default();
        if let Some(text) = dataset.manifest().config.get(KEY) {
            marks.merge(&Self::parse(text)?);
        }
        let newest = dataset.version().version;
        for version in (1..=newest).rev().take(LOOK_BACK_MAX as usize) {
            let transaction = match dataset.read_transaction_by_version(version).await {
                Ok(transaction) => transaction,
                // Pruned, and so is everything before it.
                Err(error) if is_missing(&error) => break,
                Err(error) => return Err(of_lance("reading the archive's watermark", &error)),
            };
            let properties = transaction.and_then(|found| found.transaction_properties);
            if let Some(text) = properties.as_ref().and_then(|found| found.get(KEY)) {
                marks.merge(&Self::parse(text)?);
                break;
            }
        }
        Ok(marks)
    }

    pub fn covers(&self, row: &JournalRow) -> bool {
        self.0.get(&row.shard).is_some_and(|seq| row.seq <= *seq)
    }

    /// Whether everything up to the other's marks is covered.
    pub fn reach(&self, other: &Self) -> bool {
        other.0.iter().all(|(shard, seq)| self.0.get(shard).is_some_and(|mine| mine >= seq))
    }

    pub fn with_rows<'r>(&self, rows: impl Iterator<Item = &'r JournalRow>) -> Self {
        let mut marks = self.clone();
        for row in rows {
            marks.raise(row.shard, row.seq);
        }
        marks
    }

    pub fn merge(&mut self, other: &Self) {
        for (shard, seq) in &other.0 {
            self.raise(*shard, *seq);
        }
    }

    pub fn into_watermarks(self) -> Watermarks {
        self.0
    }

    pub fn properties(&self) -> Arc<HashMap<String, String>> {
        Arc::new(HashMap::from([(KEY.to_owned(), self.text())]))
    }

    /// `{"<shard>": <seq>, …}`.
    pub fn text(&self) -> String {
        serde_json::Value::from_iter(self.0.iter().map(|(shard, seq)| (shard.to_string(), *seq))).to_string()
    }

    fn parse(text: &str) -> Result<Self, Failure> {
        let bad = |why: String| Failure::internal(format!("the archive's watermark is damaged: {why}"));
        let map: HashMap<String, u64> = serde_json::from_str(text).map_err(|why| bad(why.to_string()))?;
        let entry = |(shard, seq): (String, u64)| {
            shard.parse().map(|shard| (Shard(shard), seq)).map_err(|_| bad(format!("{shard:?} is no shard")))
        };
        map.into_iter().map(entry).collect::<Result<Watermarks, _>>().map(Self)
    }

    fn raise(&mut self, shard: Shard, seq: u64) {
        let mark = self.0.entry(shard).or_default();
        *mark = (*mark).max(seq);
    }
}

fn is_missing(error: &lance::Error) -> bool {
    error.is_not_found() || matches!(error, lance::Error::DatasetNotFound { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(of: &[(u16, u64)]) -> Marks {
        Marks(of.iter().map(|(shard, seq)| (Shard(*shard), *seq)).collect())
    }

    #[test]
    fn the_text_comes_back() {
        let some = marks(&[(0, 7), (31, u64::MAX)]);
        assert_eq!(Marks::parse(&some.text()), Ok(some));
        for bad in ["", "[]", "{\"x\": 1}", "{\"1\": -1}", "{\"70000\": 1}"] {
            assert!(Marks::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn marks_only_grow() {
        let (a, b) = (marks(&[(0, 7), (1, 3), (2, 1)]), marks(&[(0, 5), (1, 9)]));
        let mut both = a.clone();
        both.merge(&b);
        assert_eq!(both, marks(&[(0, 7), (1, 9), (2, 1)]));
        assert!(both.reach(&a) && both.reach(&b) && !a.reach(&b) && !b.reach(&a));
    }
}
