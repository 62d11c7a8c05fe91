//! Does to the fleet what the plan says.

mod deploy;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::Signal;
use serde_json::json;
use tokio::time::sleep;

use crate::diary::{Bar, Diary, now_ms};
use crate::fleet::Fleet;
use crate::foreign::Foreign;
use crate::plan::{Fault, Mode, Phase, Plan, Planned, Service};
use crate::seen::Takeover;
use crate::seen::outage::Outage;
use crate::watch::Watch;

/// The hands that break things, and what they know.
pub struct Hands {
    pub fleet: Arc<Fleet>,
    pub diary: Arc<Diary>,
    pub watch: Arc<Watch>,
    pub meddler: Foreign,
    pub shards: u64,
    pub plan: Arc<Plan>,
    /// When the broker was away and nothing else was broken.
    pub outages: Mutex<Vec<Outage>>,
}

impl Hands {
    /// Phase after phase until the time is over.
    pub async fn work(self: Arc<Self>, until: Instant) -> Vec<Takeover> {
        let mut takeovers = Vec::new();
        for (number, phase) in self.plan.phases.iter().enumerate() {
            if Instant::now() >= until {
                break;
            }
            let kinds: Vec<&str> = phase.faults.iter().map(|planned| planned.fault.kind()).collect();
            self.diary.tell("phase", &json!({ "number": number, "faults": kinds }));
            takeovers.extend(self.clone().phase(phase).await);
            sleep(Duration::from_millis(phase.recovery_ms)).await;
        }
        takeovers
    }

    async fn phase(self: Arc<Self>, phase: &Phase) -> Vec<Takeover> {
        let alone = phase.faults.len() == 1;
        let faults = phase.faults.iter().cloned().map(|planned| tokio::spawn(self.clone().one(planned, alone)));
        let mut takeovers = Vec::new();
        for done in futures::future::join_all(faults).await {
            match done {
                Ok(takeover) => takeovers.extend(takeover),
                Err(error) => self.diary.complain(format!("a fault broke the harness: {error}")),
            }
        }
        takeovers
    }

    async fn one(self: Arc<Self>, planned: Planned, alone: bool) -> Option<Takeover> {
        sleep(Duration::from_millis(planned.after_ms)).await;
        let (kind, target) = (planned.fault.kind(), planned.fault.target());
        self.diary.tell("fault", &json!({ "kind": kind, "target": target, "ms": planned.lasts_ms }));
        let from_ms = now_ms();
        let mut takeover = None;
        let outcome = self.perform(&planned, alone, &mut takeover).await;
        let note = outcome.unwrap_or_else(|error| {
            let what = format!("{kind} ({target}) failed: {error:#}");
            self.diary.complain(what.clone());
            what
        });
        self.diary.bar(Bar { kind: kind.into(), target, from_ms, to_ms: now_ms(), note });
        takeover
    }

    async fn perform(&self, planned: &Planned, alone: bool, takeover: &mut Option<Takeover>) -> Result<String> {
        let pause = Duration::from_millis(planned.lasts_ms);
        match &planned.fault {
            Fault::Kill(name) => {
                let member = self.fleet.member(name)?;
                let mut member = member.lock().await;
                *takeover = self.watch.lost(planned.fault.kind(), &mut member, alone);
                member.kill().await?;
                sleep(pause).await;
                member.start()?;
            }
            Fault::Freeze(name) => {
                let member = self.fleet.member(name)?;
                let mut member = member.lock().await;
                *takeover = self.watch.lost(planned.fault.kind(), &mut member, alone);
                member.signal(Signal::STOP)?;
                sleep(pause).await;
                member.signal(Signal::CONT)?;
            }
            Fault::KillService(service) => {
                self.fleet.services.run("kill", &[service.name()]).await?;
                self.away(*service, planned, alone).await;
                self.fleet.services.start_again(service.name()).await?;
            }
            Fault::FreezeService(Service::Bucket) => {
                let bucket = self.fleet.bucket.as_ref().context("there is no bucket")?;
                bucket.run("stop", &[]).await?;
                sleep(pause).await;
                bucket.run("cont", &[]).await?;
            }
            Fault::FreezeService(service) => {
                self.fleet.services.run("stop", &[service.name()]).await?;
                self.away(*service, planned, alone).await;
                self.fleet.services.run("cont", &[service.name()]).await?;
            }
            Fault::Net { process, service, mode } => {
                self.fleet.network(process, *service, *mode);
                sleep(pause).await;
                self.fleet.network(process, *service, Mode::Open);
            }
            Fault::MemoryAlarm => {
                self.fleet.services.run("ctl", &["set_vm_memory_high_watermark", "0.0001"]).await?;
                sleep(pause).await;
                self.fleet.services.run("ctl", &["set_vm_memory_high_watermark", "0.4"]).await?;
            }
            // Drawn all the same, so that a seed means the same everywhere.
            Fault::ClockStep { .. } if self.fleet.clock.is_none() => return Ok("left out".into()),
            Fault::DiskFull if self.fleet.disk.is_none() => return Ok("left out".into()),
            Fault::ClockStep { process, seconds } => {
                self.fleet.set_clock(process, *seconds)?;
                sleep(pause).await;
                self.fleet.set_clock(process, 0)?;
            }
            Fault::DiskFull => {
                let disk = self.fleet.disk.as_ref().context("there is no small disk")?;
                disk.fill()?;
                sleep(pause).await;
                disk.free()?;
            }
            Fault::RollingRestart => return self.rolling_restart().await,
            Fault::Guest { cycles, kill } => return self.guest(*cycles, *kill, pause).await,
            Fault::Drain(name) => return self.drain(name).await,
            Fault::Meddle { seed } => {
                let answer = self.meddler.meddle(&self.queues(), pause.as_secs_f64(), *seed).await?;
                return Ok(format!("{answer}"));
            }
        }
        Ok(String::new())
    }

    /// While a service is away. Coming back keeps the machine busy, which says nothing of the fleet.
    async fn away(&self, service: Service, planned: &Planned, alone: bool) {
        let from_ms = now_ms();
        sleep(Duration::from_millis(planned.lasts_ms)).await;
        if service == Service::Rabbitmq
            && alone
            && let Ok(mut outages) = self.outages.lock()
        {
            outages.push(Outage { fault: planned.fault.kind().to_owned(), from_ms, to_ms: now_ms() });
        }
    }

    pub fn outages(&self) -> Vec<Outage> {
        self.outages.lock().map(|outages| outages.clone()).unwrap_or_default()
    }

    fn queues(&self) -> Vec<String> {
        let shards = 0..self.shards;
        shards.flat_map(|n| ["work", "control"].map(|lane| format!("stepfleet.shard.{n}.{lane}"))).collect()
    }

    /// Nothing is broken any more, as far as the harness has broken it.
    pub async fn heal(&self) {
        for (name, member) in self.fleet.members() {
            for service in Service::ALL {
                self.fleet.network(name, service, Mode::Open);
            }
            let mut member = member.lock().await;
            if name == "guest" {
                continue;
            }
            // Running processes take no harm from it.
            drop(member.signal(Signal::CONT));
            let healed = async {
                member.start()?;
                member.await_ready().await
            };
            if let Err(error) = healed.await {
                self.diary.complain(format!("{error:#}, after the last fault"));
            }
        }
    }
}
