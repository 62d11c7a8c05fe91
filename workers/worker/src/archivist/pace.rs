//! How soon the next batch of memories, or of records, is due.

use std::time::Duration;

use schemas::limits::MEMORY_MOVE_INTERVAL_MS;

pub const INTERVAL: Duration = Duration::from_millis(MEMORY_MOVE_INTERVAL_MS);
/// Batches of mostly rows that cannot be moved come again and again: they take one part of the time in so
/// many, at most.
const FUTILE_ONE_IN: u32 = 10;
/// How often they are told.
pub const TOLD_EVERY: Duration = Duration::from_secs(60);

/// From the beginning of a batch, which took so long, to that of the next one. A full batch that moved
/// nothing is no reason to hurry.
pub fn wait(rows: usize, full: bool, left_out: usize, took: Duration) -> Duration {
    if full && rows > 0 {
        Duration::ZERO
    } else if left_out <= rows {
        INTERVAL
    } else {
        INTERVAL.max(took * FUTILE_ONE_IN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_of_rows_that_cannot_be_moved_makes_no_haste() {
        let after = |rows, full, left_out| wait(rows, full, left_out, INTERVAL);
        assert_eq!(after(5, true, 0), Duration::ZERO);
        assert_eq!(after(5, true, 9), Duration::ZERO, "what moves does not come again");
        assert_eq!(after(5, false, 0), INTERVAL);
        assert_eq!(after(5, false, 1), INTERVAL, "others do not wait longer for one");
        assert_eq!(after(0, false, 0), INTERVAL);
        for full in [true, false] {
            assert_eq!(after(0, full, 9), INTERVAL * FUTILE_ONE_IN);
        }
        assert_eq!(wait(0, false, 9, Duration::from_millis(1)), INTERVAL);
    }
}
