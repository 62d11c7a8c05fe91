//! The process around the roles: configuration, telemetry, named tasks, threads apart, signals, the
//! lock on the data directory, traces, probes of the machine, and what is told of a store that is away.

pub mod background;
pub mod clock;
pub mod config;
pub mod datadir;
pub mod metrics;
pub mod open_files;
pub mod probe;
pub mod secret;
pub mod signals;
pub mod stall;
pub mod tasks;
pub mod telemetry;
pub mod trace;
