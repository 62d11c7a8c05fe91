//! `tell_a_joke`: a joke about `state.subject` every three seconds until it is stopped
//! (SPEC Q-LIF-08).

use super::model::{ModelStep, Subject};

pub const TELL_A_JOKE: ModelStep = ModelStep {
    name: "tell_a_joke",
    task: Some(
        "Tell one short, kind joke about the subject in state.subject, in text. Keep in state.recent the gist of \
         your last five jokes in a few words each, and do not repeat them. Count the jokes in state.told. The job \
         never ends: done is false.",
    ),
    subject: Subject::Default("cats"),
    stops_on_done: false,
    loop_interval_ms: 3_000,
};
