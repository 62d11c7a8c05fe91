//! What the broker's refusals mean to an operator.

use domain::failure::Failure;
use lapin::{Error, ErrorKind};

/// Reply codes of AMQP 0-9-1.
const ACCESS_REFUSED: u16 = 403;
const NOT_FOUND: u16 = 404;
const RESOURCE_LOCKED: u16 = 405;
const PRECONDITION_FAILED: u16 = 406;

/// A call that did not happen.
pub(super) fn failure(what: &str, error: &Error) -> Failure {
    match reply(error) {
        Some((ACCESS_REFUSED, said)) => Failure::internal(format!(
            "{what}: the broker refuses access ({said}); its user needs configure, write and read on ^stepfleet\\."
        )),
        _ => Failure::unavailable(format!("{what}: {error}{}", advice(error))),
    }
}

/// What to do about a certificate that is not trusted. It may be mended on the broker's side at any
/// time, so it is worth another try.
fn advice(error: &Error) -> &'static str {
    // A handshake that fails is an error of input and output, and only its text says which.
    match error.to_string().contains("certificate") {
        true => {
            "; name the authority of the broker's certificate with cacertfile=/path/to/ca.pem in \
             STEPFLEET_AMQP_URL, and the host as the certificate does"
        }
        false => "",
    }
}

/// A queue or exchange that cannot be declared.
pub(super) fn declaring(name: &str, error: &Error) -> Failure {
    match reply(error) {
        Some((PRECONDITION_FAILED, said)) => Failure::internal(format!(
            "{name} exists on the broker with other arguments than this version declares ({said}). Stop whatever \
             publishes to it, let it run empty, delete it with rabbitmqctl or the management page, and it is made anew"
        )),
        _ => failure(&format!("cannot declare {name}"), error),
    }
}

/// Whether there is no such queue or exchange. One that is on a node that is down is not found, either,
/// and only the text says which.
pub(super) fn is_absent(error: &Error) -> bool {
    let names_none = |said: &str| ["no queue ", "no exchange "].iter().any(|text| said.contains(text));
    reply(error).is_some_and(|(code, said)| code == NOT_FOUND && names_none(said))
}

/// Whether another connection has it for itself.
pub(super) fn is_locked(error: &Error) -> bool {
    reply(error).is_some_and(|(code, _)| code == RESOURCE_LOCKED)
}

/// Reply code and text, if the broker said no.
fn reply(error: &Error) -> Option<(u16, &str)> {
    match error.kind() {
        ErrorKind::ProtocolError(said) => Some((said.get_id(), said.get_message().as_str())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapin::protocol::{AMQPError, AMQPErrorKind};

    fn refusal(code: u16, text: &str) -> Error {
        let kind = AMQPErrorKind::from_id(code).unwrap();
        ErrorKind::ProtocolError(AMQPError::new(kind, text.into())).into()
    }

    #[test]
    fn other_arguments_are_named_with_the_remedy() {
        let failure = declaring("stepfleet.dead", &refusal(406, "inequivalent arg 'x-max-length'"));
        assert!(!failure.retriable);
        for part in ["stepfleet.dead", "x-max-length", "delete it"] {
            assert!(failure.message.contains(part), "{failure}");
        }
    }

    #[test]
    fn missing_rights_are_named_and_the_rest_is_worth_a_retry() {
        let refused = declaring("stepfleet.dead", &refusal(403, "access refused for user 'x'"));
        assert!(!refused.retriable && refused.message.contains("configure, write and read"), "{refused}");
        assert!(failure("cannot consume", &refusal(320, "closing")).retriable);
    }

    #[test]
    fn what_is_on_a_node_that_is_down_is_not_absent() {
        assert!(is_absent(&refusal(404, "NOT_FOUND - no queue 'stepfleet.dead' in vhost '/'")));
        assert!(is_absent(&refusal(404, "NOT_FOUND - no exchange 'stepfleet.events' in vhost '/'")));
        assert!(!is_absent(&refusal(404, "NOT_FOUND - home node 'rabbit@b' of durable queue 'q' is down")));
        assert!(!is_absent(&refusal(406, "PRECONDITION_FAILED - there is no queue like that")));
    }
}
