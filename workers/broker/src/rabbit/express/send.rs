//! The publishing side: copies go out one by one, without confirms, and are dropped whenever the
//! broker cannot take them at once.

use std::time::Duration;

use domain::failure::Failure;
use lapin::Channel;
use lapin::options::BasicPublishOptions;
use schemas::topology::EXCHANGE_EVENTS;
use tokio::sync::mpsc;

use super::super::link::{Link, Up};
use super::super::{backoff, fault, topology};
use super::Parcel;

/// A write that takes longer means a connection in trouble.
const WRITE_MAX: Duration = Duration::from_secs(2);

pub(super) async fn run(mut link: Link, mut parcels: mpsc::Receiver<Parcel>) {
    let mut failures = 0;
    loop {
        let up = tokio::select! {
            biased;
            up = link.up() => up,
            parcel = parcels.recv() => match parcel {
                // Its message is refused, too.
                Some(_) => continue,
                None => None,
            },
        };
        let Some(up) = up else { return };
        match channel(&up).await {
            Ok(channel) => {
                failures = 0;
                if !send(&up, &channel, &mut parcels).await {
                    return;
                }
            }
            // The publisher, on the same connection, tells of the same trouble.
            Err(failure) => tracing::debug!(%failure, "cannot send actions by express"),
        }
        failures += 1;
        tokio::time::sleep(backoff::after(failures)).await;
    }
}

async fn channel(up: &Up) -> Result<Channel, Failure> {
    let opened = up.connection.create_channel().await;
    let channel = opened.map_err(|error| fault::failure("cannot open a channel", &error))?;
    topology::events(&channel).await?;
    Ok(channel)
}

/// Sends until the channel is lost; `false` when nobody sends any any more.
async fn send(up: &Up, channel: &Channel, parcels: &mut mpsc::Receiver<Parcel>) -> bool {
    while let Some(parcel) = parcels.recv().await {
        // On a blocked connection it would wait for who knows how long.
        if up.weather.borrow().blocked.is_some() {
            continue;
        }
        if !matches!(tokio::time::timeout(WRITE_MAX, write(channel, parcel)).await, Ok(Ok(()))) {
            return true;
        }
    }
    false
}

async fn write(channel: &Channel, parcel: Parcel) -> lapin::Result<()> {
    let options = BasicPublishOptions::default();
    let sent = channel.basic_publish(EXCHANGE_EVENTS.into(), parcel.key, options, &parcel.body, parcel.properties);
    sent.await?.await.map(drop)
}
