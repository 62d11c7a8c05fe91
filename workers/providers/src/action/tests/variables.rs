//! Headers whose values are variables of the executor: sent to where the operator allows, and told to nobody.

use super::*;
use crate::fake_server::{FakeServer, Say};

/// What the variable `CRM_TOKEN` holds.
const VALUE: &str = "hunter2-hunter2\"x";

fn read(name: &str) -> Option<String> {
    match name {
        "CRM_TOKEN" => Some(format!("{VALUE}\n")),
        "BROKEN" => Some("a\nb".to_owned()),
        "BLANK" => Some(" ".to_owned()),
        _ => None,
    }
}

fn allowing(pairs: &[(&str, &str)]) -> Actions {
    with_private(pairs, true)
}

fn with_private(pairs: &[(&str, &str)], allow_private: bool) -> Actions {
    let variable = |(name, host): &(&str, &str)| HttpVariable { name: (*name).into(), host: (*host).into() };
    let variables = Variables::read_by(pairs.iter().map(variable).collect(), read);
    actions(ActionsConfig { variables, ..config(allow_private) })
}

fn asking(url: &str, value: &str) -> ActionCall {
    call(ActionKind::Http, json!({"url": url, "headers_env": {"Authorization": value}}), json!({}))
}

/// As it goes over the wire, in lower case.
fn has(got: &crate::fake_server::Got, value: &str) -> bool {
    got.head.contains(&format!("authorization: {}", value.to_lowercase()))
}

#[tokio::test]
async fn a_header_has_the_value_and_nothing_else_does() {
    let echo = json!({"you sent": [format!("Bearer {VALUE}")], VALUE: 1}).to_string();
    let server = FakeServer::start(vec![
        Say::Answer(200, "", echo),
        Say::Answer(200, "", format!("plain {VALUE}")),
        // In the middle of what is cut for a message.
        Say::Answer(500, "", format!("{}{VALUE}{VALUE}", "x".repeat(190))),
        Say::Answer(403, "", format!("Bearer {VALUE} is not welcome")),
        Say::Answer(403, "", json!({"not welcome": [VALUE]}).to_string()),
    ])
    .await;
    let actions = allowing(&[("CRM_TOKEN", "127.0.0.1")]);
    let asked = asking(&server.url, "Bearer CRM_TOKEN");
    let answer = actions.run(&asked).await.expect("an answer");
    assert_eq!(answer["body"], json!({"you sent": ["Bearer [key]"], "[key]": 1}));
    let answer = actions.run(&asking(&server.url, "CRM_TOKEN")).await.expect("an answer");
    assert_eq!(answer["body"], "plain [key]");
    for _ in 0..3 {
        let failed = actions.run(&asked).await.expect_err("a refusal");
        let told = format!("{failed:?}");
        assert!(!told.contains("hunter"), "{told}");
    }
    let got = server.requests();
    assert!(has(&got[0], &format!("Bearer {VALUE}")) && has(&got[1], VALUE), "{}", got[0].head);
}

#[tokio::test]
async fn a_redirect_takes_it_nowhere() {
    let elsewhere = FakeServer::start(vec![Say::Answer(200, "", "{}".into())]).await;
    let server = FakeServer::start(vec![Say::Answer(
        307,
        Box::leak(format!("location: {}/\r\n", elsewhere.url).into_boxed_str()),
        VALUE.to_owned(),
    )])
    .await;
    let failed = allowing(&[("CRM_TOKEN", "127.0.0.1")]).run(&asking(&server.url, "CRM_TOKEN")).await.unwrap_err();
    assert!(failed.error.message.contains("redirect"), "{}", failed.error.message);
    assert!(!failed.error.message.contains("hunter"), "{}", failed.error.message);
    assert_eq!((server.requests().len(), elsewhere.requests().len()), (1, 0));
}

#[tokio::test]
async fn only_what_the_operator_allows_is_sent_and_only_there() {
    let server = FakeServer::start(vec![Say::Answer(200, "", "{}".into())]).await;
    let refused = async |actions: Actions, value: &str| {
        let failed = actions.run(&asking(&server.url, value)).await.expect_err("a refusal");
        assert!(!failed.may_have_happened && failed.trouble.is_none(), "{failed:?}");
        failed.error.message
    };
    let nothing = refused(allowing(&[]), "CRM_TOKEN").await;
    assert!(nothing.contains("CRM_TOKEN@127.0.0.1 in http_env"), "{nothing}");
    let other = refused(allowing(&[("CRM_TOKEN", "crm.example.org"), ("HOME", "127.0.0.1")]), "CRM_TOKEN").await;
    assert!(other.contains("may not be sent to 127.0.0.1"), "{other}");
    let here = |name| [(name, "127.0.0.1")];
    for (name, words) in [("UNSET", "is not set"), ("BLANK", "is not set"), ("BROKEN", "characters that headers")] {
        let told = refused(allowing(&here(name)), name).await;
        assert!(told.contains(words) && told.contains(name), "{told}");
    }
    // What was written past the checks of definitions.
    let told = refused(allowing(&here("CRM_TOKEN")), "Bearer hunter2").await;
    assert!(told.contains("headers_env.Authorization: must be the name") && !told.contains("hunter2"), "{told}");
    assert!(server.requests().is_empty(), "nothing was sent");
    let ok = allowing(&here("CRM_TOKEN")).run(&asking(&server.url, "CRM_TOKEN")).await;
    assert!(ok.is_ok(), "{ok:?}");
}

#[tokio::test]
async fn in_the_open_it_is_sent_at_home_alone() {
    let away = with_private(&[("CRM_TOKEN", "crm.example.org")], false);
    let failed = away.run(&asking("http://crm.example.org/", "CRM_TOKEN")).await.unwrap_err();
    assert!(failed.error.message.contains("https alone"), "{}", failed.error.message);
    assert_eq!((failed.error.code, failed.may_have_happened), (ToolErrorCode::PermissionDenied, false));
}

#[tokio::test]
async fn a_probe_is_asked_with_it_too() {
    let server = FakeServer::start(vec![Say::Answer(200, "", VALUE.to_owned())]).await;
    let config = json!({"url": server.url, "probe": format!("{}/calls/{{{{key}}}}", server.url),
                        "headers_env": {"Authorization": "CRM_TOKEN"}});
    let asked = call(ActionKind::Http, config, json!({}));
    let found = allowing(&[("CRM_TOKEN", "127.0.0.1")]).probe(&asked).await;
    assert_eq!(found, Probe::Happened(json!({"status": 200, "body": "[key]"})));
    assert!(has(&server.requests()[0], VALUE));
    assert_eq!(allowing(&[]).probe(&asked).await, Probe::Unknown);
    assert_eq!(server.requests().len(), 1);
}
