//! What LanceDB reports, as the failures that callers act on.

use std::error::Error;
use std::io;

use domain::failure::Failure;

/// `what` says what was tried: "appending to agent_steps".
pub fn of_lancedb(what: &str, error: &lancedb::Error) -> Failure {
    if let lancedb::Error::Lance { source } = error {
        return of_lance(what, source);
    }
    by_cause(what, error)
}

pub fn of_lance(what: &str, error: &lance::Error) -> Failure {
    if error.is_commit_status_unknown() {
        return Failure::in_doubt(format!("{what}: {}", brief(error)));
    }
    if let lance::Error::CorruptFile { .. } = error {
        return Failure::internal(format!("{what}: {}", brief(error)));
    }
    by_cause(what, error)
}

fn by_cause(what: &str, error: &(dyn Error + 'static)) -> Failure {
    let message = format!("{what}: {}", brief(error));
    if is_full(error) { Failure::storage_full(message) } else { Failure::unavailable(message) }
}

/// Whether no space is left. Some layers keep only the text of their cause.
pub fn is_full(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(io) = error.downcast_ref::<io::Error>()
            && matches!(io.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
        {
            return true;
        }
        next = error.source();
    }
    let text = error.to_string();
    text.contains("No space left on device") || text.contains("os error 28")
}

/// Whether the storage failed, rather than what is in it.
pub fn is_of_storage(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(storage) = error.downcast_ref::<object_store::Error>() {
            return !matches!(storage, object_store::Error::NotFound { .. });
        }
        next = error.source();
    }
    false
}

/// The first line, at a length that fits a log line.
pub fn brief(error: &dyn Error) -> String {
    const CHARS_MAX: usize = 400;
    let text = without_body(error.to_string());
    text.lines().next().unwrap_or_default().chars().take(CHARS_MAX).collect()
}

/// An answer of S3 may repeat the request, session token and all: of its body, only the code stays.
fn without_body(text: String) -> String {
    let Some(at) = ["<?xml", "<Error>"].iter().filter_map(|tag| text.find(tag)).min() else { return text };
    let (head, body) = text.split_at(at);
    let code = body.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
    format!("{head}{}", code.map_or("an error without a code", |(code, _)| code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemas::problem::Code;

    #[test]
    fn a_full_disk_is_told_apart_through_any_layer() {
        let io = io::Error::from_raw_os_error(28);
        let lance = lance::Error::wrapped(Box::new(io));
        assert_eq!(of_lance("x", &lance).code, Code::StorageFull);
        let as_text = lance::Error::io("Generic LocalFileSystem error: No space left on device (os error 28)");
        assert_eq!(of_lance("x", &as_text).code, Code::StorageFull);
        assert_eq!(of_lance("x", &lance::Error::io("timed out")).code, Code::Unavailable);
    }

    #[test]
    fn the_body_of_an_answer_is_not_repeated() {
        let answer = "403 Forbidden: <?xml version=\"1.0\"?>\n<Error><Code>SignatureDoesNotMatch</Code>\
                      <CanonicalRequest>x-amz-security-token:hush</CanonicalRequest></Error>";
        assert!(brief(&io::Error::other(answer)).ends_with("403 Forbidden: SignatureDoesNotMatch"));
        let cut = brief(&io::Error::other("500: <Error>x-amz-security-token:hush"));
        assert_eq!(cut, "500: an error without a code");
        assert_eq!(brief(&io::Error::other("expected List<Utf8>")), "expected List<Utf8>");
    }

    #[test]
    fn an_open_commit_is_in_doubt() {
        let unknown = lance::Error::commit_status_unknown_source(3, "lost".into());
        let failure = of_lance("x", &unknown);
        assert_eq!(failure.certainty, domain::failure::Certainty::MayHaveHappened);
    }
}
