//! Logs: for people on a terminal, JSON lines otherwise. They go to stderr; stdout is for answers.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Inner workings of what we use are of no interest unless asked for. lapin repeats whole messages in
/// its warnings, and what matters of the broker is logged by ourselves. Lance's scanner tells of each search of
/// memories what will be otherwise in a later release.
const QUIET: &str = "lance=warn,lance_io=error,lancedb=warn,datafusion=warn,object_store=warn,sqlx=warn,hyper=warn,\
                     h2=warn,lapin=off,lance::dataset::scanner=error";

/// A filter in the syntax of `tracing_subscriber::EnvFilter`, as in `info,worker=debug`.
///
/// # Errors
/// What is wrong with the filter.
pub fn parse_filter(text: &str) -> Result<EnvFilter, String> {
    let all = if text.is_empty() { "info" } else { text };
    EnvFilter::try_new(format!("{QUIET},{all}")).map_err(|error| error.to_string())
}

/// Starts logging for this process. A second call changes nothing.
pub fn start(filter: EnvFilter) {
    let registry = tracing_subscriber::registry().with(filter);
    let stderr = std::io::stderr;
    let installed = if stderr().is_terminal() {
        let layer = tracing_subscriber::fmt::layer().with_writer(stderr).with_target(true);
        registry.with(layer).try_init()
    } else {
        let layer = tracing_subscriber::fmt::layer().json().flatten_event(true).with_writer(stderr);
        registry.with(layer).try_init()
    };
    if installed.is_err() {
        tracing::debug!("logging was started before");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_makes_no_sense_is_refused() {
        assert!(parse_filter("worker=louder").is_err());
        assert!(parse_filter("").is_ok());
        assert!(parse_filter("debug,store=trace").is_ok());
    }
}
