//! What somebody else's worker says when it gives a claimed task back: `POST /api/pools/{id}/release`.

use schemas::id::OperationId;
use schemas::limits::{NAME_BYTES_MAX, RETRY_DELAY_MS_MAX};
use schemas::problem::Problem;
use serde_json::Value;

use crate::action::fields::{Object, Problems, kind_of, wrong};
use crate::time::parse_rfc3339;

const FIELDS: &[&str] = &["operation_id", "until", "worker", "begun", "after_ms"];
const EXAMPLE: &str = "{\"operation_id\": \"…\", \"until\": \"…\"}";
const MISSING: &str = "is missing; repeat that of the task, as it was claimed";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    pub operation_id: OperationId,
    pub worker: String,
    /// The end of the claim that is meant.
    pub until_ms: i64,
    /// Whether it may have had an effect.
    pub begun: bool,
    pub after_ms: u64,
}

/// Checks a whole body. The error names every wrong field. `worker`: who gives back unless the body names somebody.
pub fn parse(body: &Value, worker: &str) -> Result<Release, Box<Problem>> {
    let Some(map) = body.as_object() else {
        return Err(wrong("body", format!("must be a JSON object such as {EXAMPLE}, not {}", kind_of(body))));
    };
    let (object, mut problems) = (Object::new("", map), Problems::default());
    object.refuse_unknown(FIELDS, &mut problems);
    for name in ["operation_id", "until"] {
        if !object.has(name) {
            problems.add(name, MISSING);
        }
    }
    let claim = object.id::<OperationId>("operation_id", &mut problems).zip(until(&object, &mut problems));
    // As at the claim: an empty name counts as none.
    let worker = object.string("worker", &mut problems).filter(|name| !name.is_empty()).unwrap_or(worker);
    if worker.len() > NAME_BYTES_MAX {
        problems.add("worker", format!("must have at most {NAME_BYTES_MAX} bytes"));
    }
    let begun = object.boolean("begun", &mut problems).unwrap_or(false);
    let after_ms = object.whole("after_ms", 0, RETRY_DELAY_MS_MAX, &mut problems).unwrap_or(0);
    problems.into_result()?;
    let (operation_id, until_ms) = claim.ok_or_else(|| wrong("operation_id", MISSING.to_owned()))?;
    Ok(Release { operation_id, worker: worker.to_owned(), until_ms, begun, after_ms })
}

fn until(object: &Object<'_>, problems: &mut Problems) -> Option<i64> {
    let until_ms = parse_rfc3339(object.string("until", problems)?);
    if until_ms.is_none() {
        problems.add("until", "must be that of the task, a time such as 2030-01-31T08:30:00.123Z");
    }
    until_ms
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wrong_fields(body: Value) -> Vec<String> {
        let problem = parse(&body, "token").expect_err("it is refused");
        problem.errors.iter().map(|error| error.field.clone()).collect()
    }

    #[test]
    fn what_is_left_out_means_the_token_not_begun_and_at_once() {
        let least = parse(&json!({"operation_id": "o1", "until": "1970-01-01T00:00:01.234Z"}), "token").unwrap();
        let expected = Release {
            operation_id: OperationId::parse("o1").unwrap(),
            worker: "token".to_owned(),
            until_ms: 1_234,
            begun: false,
            after_ms: 0,
        };
        assert_eq!(least, expected);
        let whole = json!({"operation_id": "o1", "until": "1970-01-01T00:00:01.234Z", "worker": "w1", "begun": true,
                           "after_ms": 5});
        let expected = Release { worker: "w1".to_owned(), begun: true, after_ms: 5, ..expected };
        assert_eq!(parse(&whole, "token").unwrap(), expected);
    }

    #[test]
    fn every_wrong_field_is_named() {
        assert_eq!(wrong_fields(json!([])), ["body"]);
        assert_eq!(wrong_fields(json!({})), ["operation_id", "until"]);
        let all = json!({"operation_id": "", "until": "soon", "worker": "w".repeat(NAME_BYTES_MAX + 1), "begun": 1,
                         "after_ms": RETRY_DELAY_MS_MAX + 1, "attempt": 1});
        let mut fields = wrong_fields(all);
        fields.sort();
        assert_eq!(fields, ["after_ms", "attempt", "begun", "operation_id", "until", "worker"]);
    }
}
