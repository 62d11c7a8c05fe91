//! Calls of step functions, against a small server of our own.

use domain::effect::Effect;
use schemas::id::{Epoch, Namespace, SessionId, SessionKey};
use serde_json::json;

use super::*;
use crate::fake_server::{FakeServer, Say};

fn call() -> EffectCall {
    let session = SessionKey::new(Namespace::parse("default").expect("an id"), SessionId::parse("s-1").expect("an id"));
    let effect = Effect::NextDocument { paths: Vec::new(), glob: None, after: None };
    EffectCall { session, epoch: Epoch(1), key: "default:s-1:4:0".to_owned(), effect }
}

async fn post_to(url: &str, class: EffectClass, timeout_ms: u64, allow_private: bool) -> Outcome {
    let net = Net::new(allow_private).expect("a client");
    post(&net, &call(), url, &json!({"step": "start"}), timeout_ms, class).await
}

async fn against(replies: Vec<Say>, class: EffectClass) -> (Outcome, FakeServer) {
    let server = FakeServer::start(replies).await;
    let outcome = post_to(&format!("{}/step?token=hidden", server.url), class, 5_000, true).await;
    (outcome, server)
}

fn ok(body: &str) -> Say {
    Say::Answer(200, "content-type: application/json\r\n", body.to_owned())
}

fn failed(outcome: Outcome) -> EffectFailure {
    match outcome {
        Outcome::Failed(failure) => failure,
        other => panic!("expected a failure, got {other:?}"),
    }
}

#[tokio::test]
async fn posts_the_body_with_key_and_session() {
    let (outcome, server) = against(vec![ok("{\"state\": 1}")], EffectClass::Idempotent).await;
    assert_eq!(outcome, Outcome::Ok(json!({"state": 1})));
    let got = &server.requests()[0];
    assert!(got.head.starts_with("post /step?token=hidden http/1.1"), "{}", got.head);
    for header in ["idempotency-key: default:s-1:4:0", "x-stepfleet-session: s-1", "content-type: application/json"] {
        assert!(got.head.contains(header), "{}", got.head);
    }
    assert_eq!(got.body, "{\"step\":\"start\"}");
}

#[tokio::test]
async fn infrastructure_is_tried_again_with_the_same_key() {
    let replies = vec![Say::Answer(503, "retry-after: 0\r\n", String::new()), ok("{}")];
    let (outcome, server) = against(replies, EffectClass::Idempotent).await;
    assert_eq!(outcome, Outcome::Ok(json!({})));
    let keys: Vec<bool> = server.requests().iter().map(|r| r.head.contains("default:s-1:4:0")).collect();
    assert_eq!(keys, [true, true]);
}

#[tokio::test]
async fn business_is_not_tried_again_and_is_explained() {
    let (outcome, server) =
        against(vec![Say::Answer(422, "", "{\"why\": \"no\"}".to_owned())], EffectClass::Idempotent).await;
    let failure = failed(outcome);
    assert_eq!((failure.code, failure.retriable), (Code::StepFailed, false));
    assert!(failure.message.contains("status 422") && failure.message.contains("why"), "{}", failure.message);
    assert!(!failure.message.contains("hidden"), "{}", failure.message);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn an_answer_that_is_no_json_is_a_malformed_frame() {
    let failure = failed(against(vec![ok("<html>oops")], EffectClass::Idempotent).await.0);
    assert_eq!(failure.code, Code::FrameInvalid);
    assert!(failure.message.contains("begins with \"<html>oops\""), "{}", failure.message);
}

#[tokio::test]
async fn at_most_once_is_in_doubt_after_silence_and_is_not_repeated() {
    for reply in [Say::Cut, Say::HangUp] {
        let (outcome, server) = against(vec![reply], EffectClass::AtMostOnce).await;
        let failure = failed(outcome);
        assert_eq!((failure.code, failure.retriable, failure.may_have_happened), (Code::EffectInDoubt, false, true));
        assert_eq!(server.requests().len(), 1);
    }
    let server = FakeServer::start(vec![Say::Silence]).await;
    let failure = failed(post_to(&server.url, EffectClass::AtMostOnce, 50, true).await);
    assert_eq!((failure.code, server.requests().len()), (Code::EffectInDoubt, 1));
    // An answer, even a bad one, leaves no doubt.
    let failure = failed(against(vec![Say::Answer(500, "", String::new())], EffectClass::AtMostOnce).await.0);
    assert_eq!(failure.code, Code::StepFailed);
}

#[tokio::test]
async fn nobody_there_is_retriable_and_did_not_happen() {
    // A port that was just given back has nobody behind it.
    let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("bound").port();
    let failure = failed(post_to(&format!("http://127.0.0.1:{port}/"), EffectClass::Idempotent, 5_000, true).await);
    assert!(failure.retriable && !failure.may_have_happened, "{failure:?}");
    assert!(failure.message.contains("no connection") && failure.message.contains("after 3 attempts"), "{failure:?}");
}

#[tokio::test]
async fn private_addresses_are_refused_unless_allowed() {
    for url in
        ["http://127.0.0.1:9/", "http://localhost:9/", "http://[::1]:9/", "http://10.0.0.1/", "http://2130706433/"]
    {
        let failure = failed(post_to(url, EffectClass::Idempotent, 2_000, false).await);
        assert!(failure.message.contains("STEPFLEET_ALLOW_PRIVATE"), "{url}: {}", failure.message);
        assert!(!failure.retriable && !failure.may_have_happened, "{url}");
    }
    for url in ["ftp://x/", "nonsense", "file:///etc/passwd"] {
        let failure = failed(post_to(url, EffectClass::Idempotent, 2_000, true).await);
        assert!(!failure.may_have_happened, "{url}: {}", failure.message);
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let (outcome, server) =
        against(vec![Say::Answer(307, "location: /other\r\n", String::new())], EffectClass::Pure).await;
    assert!(failed(outcome).message.contains("redirect"));
    assert_eq!(server.requests().len(), 1);
}
