//! Figures of the adapter on a running RabbitMQ: `STEPFLEET_AMQP_URL` names it. One JSON line per
//! metric.

use std::time::{Duration, Instant};

use broker::Rabbit;
use domain::ports::{Content, Deliveries, Queue};
use schemas::action::Lane;
use schemas::id::Shard;
use testkit::contract::queue::{SHARDS, input};

const BATCHES: u64 = 200;
const BATCH: u64 = 100;
const PUBLISHERS: u64 = 8;
const SAMPLES: usize = 500;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("STEPFLEET_AMQP_URL")?;
    let rabbit = Rabbit::start(&url, SHARDS)?;
    rabbit.ready().await?;
    latency(&*rabbit.queue()).await?;
    throughput(&rabbit).await?;
    Ok(())
}

/// From the call of publish to the delivery, one message at a time.
async fn latency(queue: &dyn Queue) -> Result<(), Box<dyn std::error::Error>> {
    let mut deliveries = queue.consume(Shard(0), Lane::Work).await?;
    drain(&mut *deliveries).await?;
    let (mut delivered, mut confirmed) = (Vec::new(), Vec::new());
    for n in 0..SAMPLES as u64 {
        let started = Instant::now();
        let actions = [input(0, n)];
        let (sent, delivery) = tokio::join!(queue.publish(&actions), async {
            let delivery = deliveries.next().await;
            delivered.push(started.elapsed());
            delivery
        });
        sent?;
        confirmed.push(started.elapsed());
        deliveries.ack(delivery.ok_or("the channel is lost")?.tag).await?;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    print("publish_to_delivery_us", &mut delivered);
    print("publish_to_both_us", &mut confirmed);
    Ok(())
}

/// Confirmed publishes a second, with a consumer that acknowledges all of them meanwhile.
async fn throughput(rabbit: &Rabbit) -> Result<(), Box<dyn std::error::Error>> {
    let started = Instant::now();
    let publishers: Vec<_> = (0..PUBLISHERS)
        .map(|shard| {
            let queue = rabbit.queue();
            tokio::spawn(async move {
                for batch in 0..BATCHES / PUBLISHERS {
                    let actions: Vec<_> = (0..BATCH).map(|n| input(shard as u16, batch * BATCH + n)).collect();
                    queue.publish(&actions).await?;
                }
                Ok::<(), domain::failure::Failure>(())
            })
        })
        .collect();
    for publisher in publishers {
        publisher.await??;
    }
    let count = BATCHES * BATCH;
    rate("confirmed_publishes_per_s", count, started.elapsed());
    let started = Instant::now();
    let mut received = 0;
    for shard in 0..PUBLISHERS {
        let mut deliveries = rabbit.queue().consume(Shard(shard as u16), Lane::Work).await?;
        received += drain(&mut *deliveries).await?;
    }
    // The last wait of each shard finds nothing.
    rate("deliveries_per_s", received, started.elapsed().saturating_sub(QUIET * PUBLISHERS as u32));
    Ok(())
}

const QUIET: Duration = Duration::from_millis(300);

async fn drain(deliveries: &mut dyn Deliveries) -> Result<u64, domain::failure::Failure> {
    let mut count = 0;
    while let Ok(Some(delivery)) = tokio::time::timeout(QUIET, deliveries.next()).await {
        count += u64::from(matches!(delivery.content, Content::Action(_)));
        deliveries.ack(delivery.tag).await?;
    }
    Ok(count)
}

fn print(metric: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_micros();
    println!("{{\"metric\":\"{metric}\",\"p50\":{},\"p99\":{},\"n\":{}}}", at(50), at(99), times.len());
}

fn rate(metric: &str, count: u64, time: Duration) {
    println!("{{\"metric\":\"{metric}\",\"value\":{:.0},\"n\":{count}}}", count as f64 / time.as_secs_f64());
}
