//! The gateway against fakes of its ports: every route, every refusal, every kind of stream.

mod accept;
mod auth;
mod bulk;
mod control;
mod dead;
mod definitions;
mod docs;
mod fleet;
mod hostile;
mod ingress;
mod lists;
mod names;
mod namespaces;
mod publish;
mod serve;
mod shell;
mod socket;
mod steps;
mod stream;
mod why;
mod world;
