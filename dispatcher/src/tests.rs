//! The gateway against fakes of its ports: every route, every refusal, every kind of stream.

mod accept;
mod auth;
mod bulk;
mod control;
mod conversations;
mod dead;
mod definitions;
mod docs;
mod fleet;
mod follow;
mod hostile;
mod ingress;
mod lists;
mod messages;
mod namespaces;
mod operations;
mod pools;
mod publish;
mod shell;
mod socket;
mod steps;
mod stream;
mod talk_socket;
mod turns;
mod why;
mod world;
