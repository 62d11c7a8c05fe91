//! `interrupt {guidance, mode?}`: guidance for exactly one later step (SPEC K-21).

use super::fields::{self, Object, Problems};

pub(super) const FIELDS: &[&str] = &["guidance", "mode"];

/// Cancels the running model call and runs the step again with the guidance.
pub const MODE_NOW: &str = "now";

pub(super) fn check(payload: &Object<'_>, problems: &mut Problems) {
    payload.refuse_unknown(FIELDS, problems);
    if !payload.has("guidance") {
        problems.add("payload.guidance", "is missing; send an object such as {\"subject\": \"dogs\"}");
    }
    payload.object("guidance", problems);
    if let Some(mode) = payload.string("mode", problems)
        && mode != MODE_NOW
    {
        let what = fields::not_one_of(mode, &[MODE_NOW]);
        problems.add("payload.mode", format!("{what}; leave it out for the next step"));
    }
}
