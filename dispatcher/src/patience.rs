//! How long a request waits for history: a storage that hangs answers after minutes, or never.

use std::time::Duration;

use domain::failure::Failure;

/// Longer than the largest page takes from a bucket.
const PATIENCE: Duration = Duration::from_secs(10);

/// What was read, or that it is not available in time. Nothing depends on a read that is given up.
pub async fn history<T>(read: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::time::timeout(PATIENCE, read).await.unwrap_or_else(|_| {
        Err(Failure::unavailable(format!(
            "the history was not read within {} s; /health says what does not answer; nothing is lost: ask again \
             once it does",
            PATIENCE.as_secs()
        )))
    })
}
