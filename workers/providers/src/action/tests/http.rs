//! Requests to a server of this machine, and those that are never made.

use super::*;
use crate::fake_server::{FakeServer, Say};

async fn run(settings: Value, input: Value) -> Result<Value, ActionFailure> {
    actions(config(true)).run(&call(ActionKind::Http, settings, input)).await
}

fn ok(body: &str) -> Say {
    Say::Answer(200, "", body.to_owned())
}

#[tokio::test]
async fn address_headers_and_body_are_filled_in() {
    let server = FakeServer::start(vec![ok("{\"n\": 1}")]).await;
    let settings = json!({"url": format!("{}/items/{{{{input.id}}}}?q={{{{id}}}}", server.url), "method": "PUT",
        "headers": {"X-Who": "{{context.agent_id}}"}, "body": {"id": "{{input.id}}", "n": "{{input.n}}", "s": "n={{n}}"}});
    let answer = run(settings, json!({"id": "a/b ü", "n": 3})).await.unwrap();
    assert_eq!(answer, json!({"status": 200, "body": {"n": 1}}));
    let got = &server.requests()[0];
    assert!(got.head.starts_with("put /items/a%2fb%20%c3%bc?q=a%2fb%20%c3%bc "), "{}", got.head);
    for line in ["x-who: ana", "idempotency-key: default:t1.1.0", "x-stepfleet-session: s1"] {
        assert!(got.head.contains(line), "{line}: {}", got.head);
    }
    assert_eq!(serde_json::from_str::<Value>(&got.body).unwrap(), json!({"id": "a/b ü", "n": 3, "s": "n=3"}));
}

#[tokio::test]
async fn a_body_that_is_json_in_a_text_stays_json() {
    let server = FakeServer::start(vec![ok("plain")]).await;
    let settings = json!({"url": server.url, "body": "{\"text\": \"{{input.text}}\"}"});
    let answer = run(settings, json!({"text": "say \"hi\"\n"})).await.unwrap();
    assert_eq!(answer["body"], "plain");
    let got = &server.requests()[0];
    assert!(got.head.starts_with("post "), "{}", got.head);
    assert_eq!(serde_json::from_str::<Value>(&got.body).unwrap(), json!({"text": "say \"hi\"\n"}));
}

#[tokio::test]
async fn statuses_are_classed() {
    for (say, trouble, code) in [
        (Say::Answer(500, "", "oops".into()), Some(Trouble::ServerError), ToolErrorCode::ExecutionFailed),
        (
            Say::Answer(429, "retry-after: 2\r\n", String::new()),
            Some(Trouble::RateLimit),
            ToolErrorCode::ExecutionFailed,
        ),
        (Say::Answer(404, "", "none".into()), None, ToolErrorCode::NotFound),
        (Say::Answer(403, "", String::new()), None, ToolErrorCode::PermissionDenied),
        (Say::Answer(422, "", "bad".into()), None, ToolErrorCode::InvalidInput),
        (
            Say::Answer(302, "location: http://169.254.169.254/\r\n", String::new()),
            None,
            ToolErrorCode::ExecutionFailed,
        ),
        (Say::Cut, Some(Trouble::Network), ToolErrorCode::ExecutionFailed),
    ] {
        let server = FakeServer::start(vec![say.clone()]).await;
        let failed = run(json!({"url": server.url}), json!({})).await.unwrap_err();
        assert_eq!((failed.trouble, failed.error.code), (trouble, code), "{say:?}: {}", failed.error.message);
        assert_eq!(server.requests().len(), 1, "attempts are the executor's business");
    }
    let server = FakeServer::start(vec![Say::Answer(429, "retry-after: 2\r\n", String::new())]).await;
    let failed = run(json!({"url": server.url}), json!({})).await.unwrap_err();
    assert_eq!((failed.retry_after_ms, failed.may_have_happened), (Some(2_000), false));
}

/// Who answers whole knows that it failed. A line that breaks knows nothing, and neither does a gateway that got no
/// good answer itself.
#[tokio::test]
async fn what_the_server_itself_reports_is_not_in_doubt() {
    for (say, reported) in [
        (Say::Answer(500, "", "oops".into()), true),
        (Say::Answer(500, "", String::new()), true),
        (Say::Answer(503, "", String::new()), false),
        (Say::Answer(429, "", String::new()), true),
        (Say::Answer(502, "", String::new()), false),
        (Say::Answer(504, "", String::new()), false),
        (Say::Cut, false),
    ] {
        let server = FakeServer::start(vec![say.clone()]).await;
        let failed = run(json!({"url": server.url, "method": "POST"}), json!({})).await.unwrap_err();
        assert_eq!(failed.reported, reported, "{say:?}: {}", failed.error.message);
        assert!(failed.trouble.is_some(), "{say:?}");
    }
}

#[tokio::test]
async fn silence_is_a_timeout_that_may_have_happened() {
    let server = FakeServer::start(vec![Say::Silence]).await;
    let mut slow = call(ActionKind::Http, json!({"url": server.url}), json!({}));
    slow.timeout_ms = 100;
    let failed = actions(config(true)).run(&slow).await.unwrap_err();
    assert_eq!((failed.trouble, failed.may_have_happened), (Some(Trouble::Timeout), true));
    let nobody = run(json!({"url": "http://127.0.0.1:1/"}), json!({})).await.unwrap_err();
    assert_eq!((nobody.trouble, nobody.may_have_happened), (Some(Trouble::Network), false));
}

#[tokio::test]
async fn hosts_are_those_that_the_definition_allows() {
    let server = FakeServer::start(vec![ok("{}")]).await;
    let port = server.url.rsplit(':').next().unwrap().to_owned();
    // The input gives the whole address: only with a list, and only to hosts of it.
    let whole = |hosts: Value| json!({"url": "{{{input.url}}}", "allow_hosts": hosts});
    let there = json!({"url": format!("http://127.0.0.1:{port}/x")});
    assert!(run(whole(json!(["127.0.0.1"])), there.clone()).await.is_ok());
    for (settings, input) in [
        (whole(json!(["example.org", "*.example.org"])), there.clone()),
        (json!({"url": "{{{input.url}}}"}), there),
        // What is pasted behind the host must not become a part of it.
        (json!({"url": format!("http://127.0.0.1{{{{{{input.path}}}}}}")}), json!({"path": format!(":{port}/")})),
        (json!({"url": format!("http://127.0.0.1:{port}/")}), json!({})),
    ] {
        let result = run(settings.clone(), input).await;
        let is_written = settings["url"].as_str().unwrap().ends_with(&format!(":{port}/"));
        match result {
            Ok(_) => assert!(is_written, "{settings}"),
            Err(failed) => {
                assert_eq!(failed.error.code, ToolErrorCode::PermissionDenied, "{settings}");
                assert!(failed.error.message.contains("allow_hosts"), "{}", failed.error.message);
            }
        }
    }
    let hidden = run(json!({"url": format!("http://user:word@127.0.0.1:{port}/")}), json!({})).await.unwrap_err();
    assert!(hidden.error.message.contains("user name"), "{}", hidden.error.message);
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn private_addresses_are_not_called_unless_allowed() {
    let server = FakeServer::start(vec![ok("{}")]).await;
    let private = call(ActionKind::Http, json!({ "url": server.url }), json!({}));
    let failed = actions(config(false)).run(&private).await.unwrap_err();
    assert_eq!((failed.error.code, failed.may_have_happened), (ToolErrorCode::PermissionDenied, false));
    assert!(failed.error.message.contains("STEPFLEET_ALLOW_PRIVATE"), "{}", failed.error.message);
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn headers_of_the_connection_are_not_for_definitions() {
    for (name, value) in [("Host", "evil.example"), ("bad name", "x"), ("X-A", "a\nb")] {
        let settings = json!({"url": "http://127.0.0.1:1/", "headers": {name: value}});
        let failed = run(settings, json!({})).await.unwrap_err();
        assert_eq!(failed.error.code, ToolErrorCode::InvalidInput, "{name}: {}", failed.error.message);
    }
}

#[tokio::test]
async fn a_probe_tells_whether_it_happened() {
    for (say, expected) in [
        (ok("{\"id\": 7}"), Probe::Happened(json!({"status": 200, "body": {"id": 7}}))),
        (Say::Answer(404, "", String::new()), Probe::DidNotHappen),
        (Say::Answer(500, "", String::new()), Probe::Unknown),
    ] {
        let server = FakeServer::start(vec![say]).await;
        let settings = json!({"url": server.url, "probe": format!("{}/by-key/{{{{key}}}}", server.url)});
        let probed = actions(config(true)).probe(&call(ActionKind::Http, settings, json!({}))).await;
        assert_eq!(probed, expected);
        assert!(server.requests()[0].head.starts_with("get /by-key/default%3at1.1.0 "));
    }
    let without = call(ActionKind::Http, json!({"url": "http://127.0.0.1:1/"}), json!({}));
    assert_eq!(actions(config(true)).probe(&without).await, Probe::Unknown);
}
