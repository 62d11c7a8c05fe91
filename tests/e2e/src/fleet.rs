//! A fleet of processes on PostgreSQL and RabbitMQ: two gateways and two workers, with a database and a
//! virtual host of their own. Needs what `ops/test fleet` gives; elsewhere these tests are left out.

mod broker;
mod bucket;
mod commands;
mod first;
mod gate;
mod letters;
mod live;
mod member;
mod roles;
mod scenarios;
mod traces;
mod waits;

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::Value;
use tempfile::TempDir;

use self::member::Member;
use crate::harness::{Harness, WAIT_MAX, command, run_command, wait};
use crate::scenario::fleet::list;
use crate::services::{self, Services};

/// Fewer than by default: each has two queues that the broker makes for every fleet.
const SHARDS: u16 = 8;
const GATEWAYS: usize = 2;
const WORKERS: usize = 2;
/// Shards that have stayed where they are for several looks of the workers have come to rest.
const STEADY: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(100);

/// A fleet under test. Its processes are killed when it is dropped.
struct Fleet {
    gateways: Vec<Member>,
    workers: Vec<Member>,
    /// One of each gateway, once they have been ready.
    clients: Vec<Harness>,
    services: Services,
    token: String,
    /// What every process is told.
    envs: Vec<(String, String)>,
    /// Workers that there have been.
    hired: usize,
    // The last: it goes when the processes are gone.
    dir: TempDir,
}

impl Fleet {
    /// A fleet that runs, and whose shards have come to rest.
    async fn start() -> Self {
        Self::start_on(SHARDS).await
    }

    async fn start_on(shards: u16) -> Self {
        let mut fleet = Self::plan();
        fleet.migrate(shards).await;
        fleet.up().await;
        fleet
    }

    /// A fleet of which nothing runs, on a database without a schema.
    fn plan() -> Self {
        let services = services::empty().expect("services: `ops/test fleet` starts them");
        let dir = TempDir::new().expect("a temporary directory");
        let token = format!("sf_{:032x}", rand::random::<u128>());
        let told = [
            ("STEPFLEET_HISTORY_URI", dir.path().join("history").display().to_string()),
            ("STEPFLEET_TOKEN", token.clone()),
            // Step functions of the tests listen on this machine.
            ("STEPFLEET_ALLOW_PRIVATE", "true".to_owned()),
        ];
        let mut envs = services.settings();
        envs.extend(told.map(|(name, value)| (name.to_owned(), value)));
        Self {
            gateways: (1..=GATEWAYS).map(|number| Member::new("dispatcher", number, dir.path())).collect(),
            workers: (1..=WORKERS).map(|number| Member::new("worker", number, dir.path())).collect(),
            clients: Vec::new(),
            services,
            token,
            envs,
            hired: WORKERS,
            dir,
        }
    }

    /// For processes that start from now on.
    fn set(&mut self, name: &str, value: &str) {
        self.envs.push((name.to_owned(), value.to_owned()));
    }

    async fn migrate(&self, shards: u16) {
        let (mut command, dir) = (command(), self.dir.path());
        command.envs(self.services.settings());
        let (ok, out, err) = run_command(command, dir, dir, &["migrate", "--shards", &shards.to_string()]).await;
        assert!(ok, "{out}{err}");
    }

    /// Starts all processes and waits until they work.
    async fn up(&mut self) {
        self.launch();
        self.ready().await;
        self.settled().await;
    }

    /// Starts all processes and waits for nothing.
    fn launch(&mut self) {
        for member in self.gateways.iter_mut().chain(&mut self.workers) {
            member.start(&self.envs);
        }
    }

    /// Waits until every process says that it is ready.
    async fn ready(&mut self) {
        for member in self.gateways.iter_mut().chain(&mut self.workers) {
            member.ready().await;
        }
        let clients: Vec<Harness> = self.gateways.iter().map(|gateway| self.client(gateway.url())).collect();
        self.clients = clients;
    }

    /// Its commands go straight to the services, whatever the processes were told.
    fn client(&self, url: &str) -> Harness {
        let mut envs = self.envs.clone();
        envs.extend(self.services.settings());
        envs.push(("STEPFLEET_URL".to_owned(), url.to_owned()));
        Harness::beside(self.dir.path().to_owned(), url.to_owned(), self.token.clone(), envs)
    }

    /// The client of the first gateway.
    fn here(&self) -> &Harness {
        &self.clients[0]
    }

    /// The client of the second one.
    fn there(&self) -> &Harness {
        &self.clients[1]
    }

    fn members(&self) -> impl Iterator<Item = &Member> {
        self.gateways.iter().chain(&self.workers)
    }

    /// One more worker, once the shards that it takes are there.
    async fn hire(&mut self) {
        self.hired += 1;
        let mut worker = Member::new("worker", self.hired, self.dir.path());
        worker.start(&self.envs);
        worker.ready().await;
        self.workers.push(worker);
        self.settled().await;
    }

    /// Ends all processes in order: the door first, as an operator does.
    async fn down(&mut self) {
        for member in self.gateways.iter_mut().chain(&mut self.workers) {
            let status = member.stop().await;
            assert!(status.success(), "{} ended with {status}", member.name);
        }
    }

    /// Waits until all is well, every worker is known, and no shard moves any more.
    async fn settled(&self) {
        for client in &self.clients {
            wait("all is well", || async {
                let health = client.try_request(Method::GET, "/health", None).await.ok()?;
                (health.body["status"] == "ok").then_some(())
            })
            .await;
        }
        wait("all workers are known", || async {
            let known = list(self.here(), "/api/workers").await;
            let is_known = |worker: &Member| known.iter().any(|row| row["worker_id"] == worker.id());
            self.workers.iter().all(is_known).then_some(())
        })
        .await;
        let begun = Instant::now();
        let (mut since, mut before) = (begun, None);
        while since.elapsed() < STEADY {
            assert!(begun.elapsed() < WAIT_MAX, "the shards do not come to rest: {before:?}");
            tokio::time::sleep(LOOK).await;
            let now = self.owners().await;
            if now.is_none() || now != before {
                (since, before) = (Instant::now(), now);
            }
        }
    }

    /// The owner and the epoch of each shard; `None` if one of them has no owner among the workers.
    async fn owners(&self) -> Option<Vec<(usize, i64)>> {
        let shards = list(self.here(), "/api/shards").await;
        shards.iter().map(|shard| Some((self.owner_of(shard)?, shard["epoch"].as_i64()?))).collect()
    }

    /// The place of a shard's owner among the workers.
    fn owner_of(&self, shard: &Value) -> Option<usize> {
        let owner = shard["owner"].as_str().filter(|_| shard["lease_ms_left"].as_i64() > Some(0))?;
        self.workers.iter().position(|worker| worker.id() == owner)
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        if std::thread::panicking() && std::env::var_os("E2E_KEEP").is_some() {
            self.dir.disable_cleanup(true);
            eprintln!("kept: {}", self.dir.path().display());
        }
    }
}
