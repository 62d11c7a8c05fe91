//! The process around the roles: configuration, telemetry, named tasks, threads apart, signals, the
//! lock on the data directory, traces, and probes of the machine.

pub mod background;
pub mod clock;
pub mod config;
pub mod datadir;
pub mod metrics;
pub mod open_files;
pub mod probe;
pub mod secret;
pub mod signals;
pub mod tasks;
pub mod telemetry;
pub mod trace;
