//! Wall-clock time as a parameter. Durations are the runtime's business.

pub trait Clock: Send + Sync {
    /// Milliseconds since the Unix epoch.
    fn now_ms(&self) -> i64;
}
