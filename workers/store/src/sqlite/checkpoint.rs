//! Folding the write-ahead log into the file, beside the writer. Done by the writer itself, as
//! SQLite does by default, it stops every commit for as long as the disk takes for all of it.

use std::sync::Weak;
use std::time::Duration;

use sqlx::{Connection, Row, SqliteConnection};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::writer::{CHECKPOINT, Writer};

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Less than this (4 MiB) is left in the log: folding costs the same two syncs whatever its size.
const FRAMES_MIN: i64 = 1024;
/// With this much (16 MiB) in the log, its last part is folded while the writer waits: only then
/// does the log begin anew instead of growing.
const FRAMES_MANY: i64 = 4096;
/// How much may be left for that part.
const FRAMES_LEFT_MAX: i64 = 1024;

/// Tells the size of the log, and does nothing.
const LOOK: &str = "PRAGMA wal_checkpoint(NOOP)";

pub(super) struct Checkpointer {
    stop: CancellationToken,
    task: Mutex<Option<JoinHandle<()>>>,
}

pub(super) fn start(connection: SqliteConnection, writer: Weak<Writer>) -> Checkpointer {
    let stop = CancellationToken::new();
    let task = tokio::spawn(run(connection, writer, stop.clone()));
    Checkpointer { stop, task: Mutex::new(Some(task)) }
}

impl Checkpointer {
    pub(super) async fn stop(&self) {
        self.stop.cancel();
        if let Some(task) = self.task.lock().await.take() {
            // A panic has been reported by the runtime already; the log is folded at close anyway.
            let _ = task.await;
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn run(mut connection: SqliteConnection, writer: Weak<Writer>, stop: CancellationToken) {
    let mut works = true;
    while stop.run_until_cancelled(tokio::time::sleep(LOOK_EVERY)).await.is_some() {
        let Some(writer) = writer.upgrade() else { break };
        let folded = fold(&mut connection, &writer).await;
        if let Err(error) = &folded
            && works
        {
            tracing::warn!(%error, "the store's log cannot be folded into its file at present");
        }
        works = folded.is_ok();
    }
    // Its file is closed by the writer; this connection holds nothing.
    let _ = connection.close().await;
}

async fn fold(connection: &mut SqliteConnection, writer: &Writer) -> Result<(), sqlx::Error> {
    let (frames, done) = ask(connection, LOOK).await?;
    if frames == done || (frames - done < FRAMES_MIN && frames < FRAMES_MANY) {
        return Ok(());
    }
    ask(connection, CHECKPOINT).await?;
    let (frames, done) = ask(connection, LOOK).await?;
    if frames >= FRAMES_MANY && frames - done <= FRAMES_LEFT_MAX {
        // A closed store has folded everything itself.
        let _ = writer.checkpoint().await;
    }
    Ok(())
}

/// Frames in the log, and how many of them are in the file.
async fn ask(connection: &mut SqliteConnection, pragma: &'static str) -> Result<(i64, i64), sqlx::Error> {
    let row = sqlx::query(pragma).fetch_one(connection).await?;
    Ok((row.try_get(1)?, row.try_get(2)?))
}
