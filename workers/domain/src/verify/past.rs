//! Whether journal and archive have the same past. One of the two may have been lost, moved away or
//! restored from a copy of another time; going on would lose more, and hide it.

use crate::failure::Failure;
use crate::ports::{Archive, Journal, JournalLag};

/// Each shard of the journal, and up to where the archive has it.
///
/// # Errors
/// The two are not of the same time. Nothing may be archived or trimmed then.
pub async fn common_past(archive: &dyn Archive, journal: &dyn Journal) -> Result<Vec<(JournalLag, u64)>, Failure> {
    // Somebody else may be archiving: of what is counted twice, the earlier count is the lower one.
    let before = journal.lag().await?;
    let archived = archive.watermarks().await?;
    let after = journal.lag().await?;
    let mut past = Vec::with_capacity(after.len());
    for (before, after) in before.iter().zip(after) {
        let theirs = archived.get(&after.shard).copied().unwrap_or(0);
        check(before, &after, theirs)?;
        past.push((after, theirs));
    }
    Ok(past)
}

fn check(before: &JournalLag, after: &JournalLag, theirs: u64) -> Result<(), Failure> {
    let shard = after.shard;
    if theirs > after.seq {
        // New rows would be taken for old ones and be lost.
        return Err(Failure::internal(format!(
            "the archive has rows of shard {shard} up to {theirs}, the journal only up to {}: the database is older \
             than the archive (was it restored from a copy?); restore both from the same time",
            after.seq
        )));
    }
    if theirs < before.archived_seq {
        return Err(Failure::internal(format!(
            "the archive has rows of shard {shard} up to {theirs}, but {} were archived: history is missing (was it \
             moved, or restored from a copy?); set history_uri to where it is, or restore database and history from \
             the same time",
            before.archived_seq
        )));
    }
    Ok(())
}
