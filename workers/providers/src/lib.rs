//! Outbound: models, step functions of others, documents. The only crate that calls out.
//!
//! [`Performer`] implements the `Effects` port. Model adapters are pure request builders, answer
//! parsers and error classifiers, one file each; one transport and one retry loop serve them all.

mod attempts;
mod call;
pub mod config;
mod documents;
#[cfg(test)]
mod fake_server;
mod http;
mod model;
mod net;
mod performer;
mod scripted;

pub use config::{ConfigProblems, Profile, ProvidersConfig, Secret, Vendor};
pub use performer::Performer;
pub use scripted::{Request, Scripted};
