//! `summarize`: a summary of `state.text`, or of what is known about `state.subject`.

use super::model::{ModelStep, Subject};

pub const SUMMARIZE: ModelStep = ModelStep {
    name: "summarize",
    task: Some(
        "Summarize state.text; if there is none, summarize what matters about state.subject. First step: collect \
         the key points in state.points, most important first. Following steps: write the summary in text, a few \
         sentences that stand alone, true to the source, with numbers and names where they matter, and set done to \
         true. Leave state.text out of the new state once the points are collected.",
    ),
    subject: Subject::Needed,
    stops_on_done: true,
    loop_interval_ms: 0,
};
