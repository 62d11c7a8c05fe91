//! Prompt specs.

use schemas::limits::ENTRIES_MAX;

use super::{Found, parts, schema, template};
use crate::action::fields::Object;

const FIELDS: &[&str] = &[
    "id",
    "name",
    "description",
    "library_id",
    "project_id",
    "system_prompt",
    "template",
    "requires",
    "produces",
    "examples",
];

pub(super) fn check(object: &Object<'_>, found: &mut Found) {
    object.refuse_unknown(FIELDS, &mut found.problems);
    parts::labels(object, &mut found.problems);
    parts::owner(object, found);
    let problems = &mut found.problems;
    parts::required(object, "template", "the text, with places as in {{topic}}", problems);
    for name in ["system_prompt", "template"] {
        if let Some(text) = parts::prompt(object, name, problems) {
            template::check(object.path(name), text, problems);
        }
    }
    for name in ["requires", "produces"] {
        schema::field(object, name, problems);
    }
    for example in parts::objects(object, "examples", ENTRIES_MAX, problems) {
        example.refuse_unknown(&["input", "output"], problems);
        for name in ["input", "output"] {
            if !example.has_key(name) {
                problems.add(example.path(name), "is missing; an example has an input and an output");
            }
        }
    }
}
