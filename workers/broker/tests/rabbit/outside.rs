//! A client of the broker that is not of the fleet.

use async_trait::async_trait;
use lapin::message::Delivery;
use lapin::options::{
    BasicGetOptions, BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties};
use testkit::contract::queue::Stranger;

pub struct Outside {
    connection: Connection,
    channel: Channel,
}

impl Outside {
    pub async fn connect(url: &str) -> Self {
        let connection = Connection::connect(url, ConnectionProperties::default()).await.expect("a connection");
        let channel = connection.create_channel().await.expect("a channel");
        channel.confirm_select(ConfirmSelectOptions::default()).await.expect("confirms");
        Self { connection, channel }
    }

    pub async fn put_as(&self, queue: &str, body: &[u8], properties: BasicProperties) {
        let options = BasicPublishOptions { mandatory: true, immediate: false };
        let sent = self.channel.basic_publish("".into(), queue.into(), options, body, properties).await;
        let confirmed = sent.expect("sent").await.expect("answered");
        assert_eq!(confirmed, Confirmation::Ack(None));
    }

    /// Many at once; returns once the queue has all of them.
    pub async fn put_many(&self, queue: &str, count: u64, nth: impl Fn(u64) -> (Vec<u8>, BasicProperties)) {
        let options = BasicPublishOptions { mandatory: true, immediate: false };
        let mut confirms = Vec::new();
        for n in 0..count {
            let (body, properties) = nth(n);
            let sent = self.channel.basic_publish("".into(), queue.into(), options, &body, properties).await;
            confirms.push(sent.expect("sent"));
        }
        for confirm in confirms {
            assert_eq!(confirm.await.expect("answered"), Confirmation::Ack(None));
        }
    }

    /// Takes one message, if there is one.
    pub async fn take(&self, queue: &str) -> Option<Vec<u8>> {
        let got = self.channel.basic_get(queue.into(), BasicGetOptions { no_ack: true }).await;
        got.expect("answered").map(|message| message.delivery.data)
    }

    /// Takes one message, if there is one, and does not acknowledge it.
    pub async fn hold(&self, queue: &str) -> Option<Delivery> {
        let got = self.channel.basic_get(queue.into(), BasicGetOptions { no_ack: false }).await;
        got.expect("answered").map(|message| message.delivery)
    }

    /// Goes, without a word on what it holds.
    pub async fn leave(self) {
        self.connection.close(200, "OK".into()).await.expect("closed");
    }

    /// By an exchange, which may have no queue for it.
    pub async fn put_on(&self, exchange: &str, key: &str, body: &[u8], properties: BasicProperties) {
        let options = BasicPublishOptions::default();
        let sent = self.channel.basic_publish(exchange.into(), key.into(), options, body, properties).await;
        assert_eq!(sent.expect("sent").await.expect("answered"), Confirmation::Ack(None));
    }

    /// A queue that is this connection's alone, for as long as that lasts.
    pub async fn reserve(&self, queue: &str) {
        let options = QueueDeclareOptions { exclusive: true, ..QueueDeclareOptions::default() };
        self.channel.queue_declare(queue.into(), options, FieldTable::default()).await.expect("declared");
    }

    /// A classic queue where the fleet wants a quorum queue.
    pub async fn occupy(&self, queue: &str) {
        let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
        self.channel.queue_declare(queue.into(), options, FieldTable::default()).await.expect("declared");
    }

    pub async fn delete(&self, queue: &str) {
        self.channel.queue_delete(queue.into(), QueueDeleteOptions::default()).await.expect("deleted");
    }
}

#[async_trait]
impl Stranger for Outside {
    async fn put(&self, queue: &str, body: &[u8]) {
        self.put_as(queue, body, BasicProperties::default()).await;
    }
}
