//! What a record of a call keeps where there is not enough room for all of it.

use serde_json::{Value, json};

use crate::chat::{CallContext, LOST_ATTEMPTS, ProviderCallRecord, Usage};

const LONG: usize = 600;

/// A record of which every part is long.
fn long() -> ProviderCallRecord {
    let mut record = ProviderCallRecord::open("c", &CallContext::default(), "p", "m", false, 0);
    record.request_metadata.insert("metadata".to_owned(), json!({"note": "x".repeat(LONG)}));
    let breakdown = Some(json!({"cached": "x".repeat(LONG)}));
    record.usage = Some(Usage { input_tokens: 7, total_tokens: 7, breakdown, ..Usage::default() });
    record.response_metadata.insert("error".to_owned(), json!("x".repeat(LONG)));
    record.response_metadata.insert("model".to_owned(), json!("x".repeat(LONG)));
    record.response_metadata.insert(LOST_ATTEMPTS.to_owned(), json!([{"input_tokens": 3, "estimated": true}]));
    record.request_id = Some("r".to_owned());
    record.cost = Some(0.5);
    record
}

fn bytes(record: &ProviderCallRecord) -> usize {
    json!(record).to_string().len()
}

/// Which parts are there as they were: notes, breakdown, the error, the rest of the answer.
fn kept(record: &ProviderCallRecord) -> [bool; 4] {
    let is_whole = |value: Option<&Value>| value.is_some_and(|value| value.to_string().len() > LONG);
    [
        is_whole(record.request_metadata.get("metadata")),
        is_whole(record.usage.as_ref().and_then(|usage| usage.breakdown.as_ref())),
        is_whole(record.response_metadata.get("error")),
        is_whole(record.response_metadata.get("model")),
    ]
}

#[test]
fn a_record_that_fits_stays_as_it_is() {
    assert_eq!(long().within(bytes(&long())), long());
}

/// Each room is a byte less than what the shortening before it came to.
#[test]
fn what_is_least_missed_goes_first_and_what_is_billed_never() {
    let mut room = bytes(&long()) - 1;
    for expected in [
        [false, true, true, true],
        [false, false, true, true],
        [false, false, false, true],
        [false, false, false, false],
    ] {
        let short = long().within(room);
        assert_eq!(kept(&short), expected, "{room} bytes");
        assert!(bytes(&short) <= room, "{} of {room} bytes", bytes(&short));
        assert_eq!((short.cost, short.usage.as_ref().map(|usage| usage.input_tokens)), (Some(0.5), Some(7)));
        assert_eq!(short.response_metadata[LOST_ATTEMPTS], long().response_metadata[LOST_ATTEMPTS]);
        if expected[3] {
            assert!(!short.response_metadata["error"].as_str().expect("a text").is_empty());
            assert_eq!(short.request_id.as_deref(), Some("r"));
        } else {
            assert_eq!((short.response_metadata.len(), short.request_id.as_deref()), (1, None));
        }
        room = bytes(&short) - 1;
    }
}
