//! A broker that is reached over TLS, and whose certificate is looked at.

use domain::failure::Certainty;
use domain::ports::Content;
use schemas::action::Lane;
use schemas::id::Shard;
use schemas::problem::Code;
use testkit::contract::queue::{SHARDS, input, soon};

use super::{Node, Rabbit, next, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_is_spoken_and_only_to_who_can_show_a_right_certificate() {
    let node = Node::start_with_tls();
    let (url, stranger) = (node.told("AMQPS_URL"), node.told("TLS_STRANGER"));
    let rabbit = Rabbit::start(&url, SHARDS).expect("the URL is right");
    soon("the broker", rabbit.ready()).await.expect("ready");
    let encrypted = node.ctl(&["list_connections", "ssl"]);
    assert!(encrypted.contains("true") && !encrypted.contains("false"), "{encrypted}");
    let mut deliveries = rabbit.queue().consume(Shard(1), Lane::Work).await.expect("it can be consumed");
    let sent = input(1, 1);
    rabbit.queue().publish(std::slice::from_ref(&sent)).await.expect("it is confirmed");
    let delivery = next(&mut deliveries).await;
    assert!(matches!(&delivery.content, Content::Action(action) if action.action_id == sent.action_id));
    let survey = soon("the survey", Rabbit::survey(&url, SHARDS, &[])).await.expect("it can be looked at");
    assert!(survey.server.is_some() && survey.missing.is_empty(), "{survey:?}");

    let (address, ca) = url.split_once("cacertfile=").expect("ops/services names the authority");
    assert_ne!(ca, stranger);
    let strange = format!("{address}cacertfile={stranger}");
    let renamed = url.replace("@127.0.0.1:", "@localhost:");
    let unnamed = address.trim_end_matches('?').to_owned();
    for (wrong, why) in [(strange, "another authority"), (renamed, "another name"), (unnamed, "no authority")] {
        let rabbit = Rabbit::start(&wrong, SHARDS).expect("the URL is right");
        let failure = until(why, async || {
            let failure = rabbit.queue().ping().await.expect_err("it must not connect");
            failure.message.contains("certificate").then_some(failure)
        })
        .await;
        assert!(failure.message.contains("cacertfile=/path"), "{why}: {failure}");
        assert_eq!((failure.code, failure.certainty), (Code::Unavailable, Certainty::DidNotHappen), "{why}");
        let password = url.split(':').nth(2).and_then(|rest| rest.split('@').next()).expect("a password");
        assert!(!failure.message.contains(password), "{why}: the password is shown");
    }
}
