//! Where conversations are measured: in a fleet of this process alone, or in one that runs already.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Result;
use serde_json::{Value, json};

use super::super::rig::{self, Rig};
use super::model::Model;
use crate::client::Client;

pub struct Place {
    pub client: Client,
    pub model: Model,
    /// What ids begin with: a running fleet has the conversations of earlier runs.
    pub run: String,
    /// None: the fleet is somebody else's.
    rig: Option<Rig>,
}

impl Place {
    /// A private fleet, embedded in this process.
    pub async fn private() -> Result<Self> {
        let model = Model::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        let rig = Rig::start_as(&[], Some(model.settings())).await?;
        Ok(Self { client: rig.client.clone(), model, run: fresh(), rig: Some(rig) })
    }

    /// The fleet of the client, whose profile `bench` is the model that answers at the address meanwhile.
    pub async fn running(client: Client, model: SocketAddr) -> Result<Self> {
        Ok(Self { client, model: Model::start(model).await?, run: fresh(), rig: None })
    }

    /// Prints one line.
    pub fn report(&self, mut figures: Value) -> Result<()> {
        match &self.rig {
            Some(rig) => {
                figures["mode"] = json!("embedded");
                rig.report(figures)
            }
            None => {
                figures["mode"] = json!("fleet");
                rig::report(&std::env::temp_dir(), figures)
            }
        }
    }

    pub async fn stop(self) {
        if let Some(rig) = self.rig {
            rig.stop().await;
        }
    }
}

fn fresh() -> String {
    format!("bench-{}", ulid::Ulid::generate())
}
