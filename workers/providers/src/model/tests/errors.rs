//! Errors of the providers, by class.

use super::*;

#[test]
fn error_answers_are_classed() {
    use Vendor::{Anthropic, Gemini, Openai, OpenaiResponses};
    let cases = [
        (
            Anthropic,
            529,
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}),
            Class::Overloaded,
        ),
        (Anthropic, 401, json!({"error": {"type": "authentication_error", "message": "key"}}), Class::Auth),
        (Anthropic, 400, json!({"error": {"type": "invalid_request_error", "message": "max"}}), Class::Invalid),
        (
            Anthropic,
            400,
            json!({"error": {"type": "invalid_request_error", "message": "Your credit balance is too low"}}),
            Class::Quota,
        ),
        (Anthropic, 413, json!({"error": {"type": "request_too_large", "message": "big"}}), Class::Invalid),
        (
            Openai,
            429,
            json!({"error": {"message": "slow", "type": "requests", "code": "rate_limit_exceeded"}}),
            Class::RateLimit,
        ),
        (Openai, 429, json!({"error": {"message": "pay", "code": "insufficient_quota"}}), Class::Quota),
        (Openai, 400, json!({"error": {"message": "filtered", "code": "content_filter"}}), Class::Safety),
        (
            Openai,
            401,
            json!({"error": {"message": "no", "type": "invalid_request_error", "code": "invalid_api_key"}}),
            Class::Auth,
        ),
        (Openai, 404, json!({"error": "model not found"}), Class::Invalid),
        (Openai, 503, json!("down"), Class::Overloaded),
        (Openai, 304, json!({}), Class::Unknown),
        (OpenaiResponses, 400, json!({"error": {"message": "no", "code": "invalid_prompt"}}), Class::Safety),
        (Gemini, 400, json!([{"error": {"message": "API key not valid", "status": "INVALID_ARGUMENT"}}]), Class::Auth),
        (Gemini, 403, json!({"error": {"message": "no", "status": "PERMISSION_DENIED"}}), Class::Auth),
        (Gemini, 500, json!({"error": {"message": "oops"}}), Class::Overloaded),
        (
            Gemini,
            429,
            json!({"error": {"message": "quota", "status": "RESOURCE_EXHAUSTED", "details": [
                {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},
                {"retryDelay": "30s"}]}}),
            Class::Quota,
        ),
    ];
    for (vendor, status, body, class) in cases {
        let error = failure::of_answer(vendor, status, Some(&body), body.to_string().as_bytes());
        assert_eq!((error.class, error.status), (class, Some(status)), "{status} {body}");
        assert!(error.message.starts_with(vendor.as_str()), "{}", error.message);
    }
    let body = json!({"error": {"message": "slow", "details": [{"@type": "x"}, {"retryDelay": "1.5s"}]}});
    assert_eq!(failure::of_answer(Vendor::Gemini, 429, Some(&body), b"").retry_after_ms, Some(1_500));
}

#[test]
fn a_key_that_is_wanted_and_was_not_sent_names_where_to_set_it() {
    let refused = |class| CallError::new(class, "openai: the key was refused (status 401): no");
    let keyless = Endpoint { key: None, ..endpoint(Vendor::Openai, "http://h/v1") };
    let error = failure::of_key(refused(Class::Auth), &keyless);
    assert!(error.message.starts_with("openai: no key was sent; set OPENAI_API_KEY (openai: "), "{}", error.message);
    let others = [(Class::Invalid, keyless), (Class::Auth, endpoint(Vendor::Openai, "http://h/v1"))];
    for (class, endpoint) in others {
        assert_eq!(failure::of_key(refused(class), &endpoint), refused(class));
    }
}

#[test]
fn errors_in_a_stream_are_classed_like_a_status() {
    let cases = [
        (json!({"error": {"type": "overloaded_error", "message": "x"}}), Class::Overloaded),
        (json!({"error": {"type": "rate_limit_error", "message": "x"}}), Class::RateLimit),
        (json!({"error": {"type": "authentication_error", "message": "x"}}), Class::Auth),
        (json!({"error": {"type": "invalid_request_error", "message": "x"}}), Class::Invalid),
        (json!({"error": {"type": "timeout_error", "message": "x"}}), Class::Timeout),
        (json!({"error": {"type": "billing_error", "message": "x"}}), Class::Quota),
        (json!({"error": {"message": "x", "type": "BadRequestError", "code": 400}}), Class::Invalid),
        (json!({"error": {"code": 429, "message": "x", "status": "RESOURCE_EXHAUSTED"}}), Class::RateLimit),
        (json!({"type": "error", "code": "server_error", "message": "x"}), Class::Overloaded),
        (json!({"error": {"code": "context_length_exceeded", "type": "server_error", "message": "x"}}), Class::Invalid),
        (json!({"error": "the engine died"}), Class::Overloaded),
        (json!({"error": {}}), Class::Overloaded),
    ];
    for (event, class) in cases {
        let error = failure::in_stream(Vendor::Openai, &event);
        assert_eq!((error.class, error.status), (class, None), "{event}");
    }
}
