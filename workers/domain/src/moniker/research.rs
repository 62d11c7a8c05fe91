//! `research`: works through questions about `state.subject`, one a step, and closes with a report.

use super::model::{ModelStep, Subject};

pub const RESEARCH: ModelStep = ModelStep {
    name: "research",
    task: Some(
        "Research the subject in state.subject. First step: put three to five questions worth answering into \
         state.questions and set state.findings to an empty list. Then one step per question: move it out of \
         state.questions, answer it in text, and add {question, finding, certainty} to state.findings; add a new \
         question only if a finding demands it. When no question is left: write a report from state.findings in \
         text, say what stayed uncertain, and set done to true. Guidance may change the questions.",
    ),
    subject: Subject::Needed,
    stops_on_done: true,
    loop_interval_ms: 0,
};
