//! The fleet under attack: services, processes, and a network of proxies between them.

pub mod agents;
pub mod bucket;
pub mod disk;
pub mod member;
pub mod recipes;
pub mod services;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use tokio::process::Command;
use tokio::sync::Mutex;

use self::bucket::Bucket;
use self::disk::Disk;
use self::member::Member;
use self::services::{Address, Services};
use crate::diary::Diary;
use crate::plan::{History, Mode, Service, Shape};
use crate::proxy::Proxy;

/// Room for the history of a run of hours.
const DISK_MB: u64 = 1_500;

pub struct Fleet {
    pub dir: PathBuf,
    pub binary: PathBuf,
    pub services: Services,
    /// Without proxies.
    pub database: Address,
    pub broker: Address,
    pub token: String,
    /// Addresses of the dispatchers, and of the workers' probes, by name.
    pub listen: BTreeMap<String, String>,
    pub disk: Option<Disk>,
    /// What the history is in, if not in a directory.
    pub bucket: Option<Bucket>,
    /// The library that gives processes clocks of their own.
    pub clock: Option<PathBuf>,
    members: BTreeMap<String, Arc<Mutex<Member>>>,
    proxies: BTreeMap<(String, &'static str), Proxy>,
}

/// Where a fleet is built.
pub struct Site<'s> {
    pub ops: &'s Path,
    pub dir: &'s Path,
    pub binary: &'s Path,
    /// A RabbitMQ that is not the system's.
    pub rabbitmq: Option<PathBuf>,
}

impl Fleet {
    /// Starts services, prepares the database, starts all processes and waits for them.
    ///
    /// # Errors
    /// A part of it does not start.
    pub async fn start(site: &Site<'_>, shape: &Shape, diary: &Diary) -> Result<Self> {
        let dir = site.dir.to_owned();
        for name in ["run", "log", "data"] {
            std::fs::create_dir_all(dir.join(name))?;
        }
        let services = Services::new(site.ops, &dir, site.rabbitmq.clone());
        let env = services.up().await?;
        let (disk, bucket) = match shape.history {
            History::Directory => (Disk::mount(&dir.join("history"), DISK_MB), None),
            History::S3 => (None, Some(Bucket::up(site.ops, &dir.join("s3")).await?)),
        };
        let address = |name: &str| Address::of(env.get(name).with_context(|| format!("{name} is not in env"))?);
        let mut fleet = Self {
            database: address("STEPFLEET_DATABASE_URL")?,
            broker: address("STEPFLEET_AMQP_URL")?,
            token: format!("sf_{:032x}", rand::random::<u128>()),
            disk,
            bucket,
            clock: recipes::clock_library(),
            binary: site.binary.to_owned(),
            listen: BTreeMap::new(),
            members: BTreeMap::new(),
            proxies: BTreeMap::new(),
            services,
            dir,
        };
        recipes::write_files(&fleet.dir, shape)?;
        fleet.stepfleet(&["migrate"]).await?;
        let mut names = [shape.dispatchers(), shape.workers()].concat();
        names.extend([crate::plan::ARCHIVIST.to_owned(), crate::plan::EXECUTOR.to_owned(), "guest".to_owned()]);
        for name in &names {
            fleet.add(name).await?;
        }
        for name in names.iter().filter(|name| *name != "guest") {
            fleet.member(name)?.lock().await.start()?;
        }
        for name in names.iter().filter(|name| *name != "guest") {
            fleet.member(name)?.lock().await.await_ready().await?;
            diary.tell("ready", &serde_json::json!(name));
        }
        Ok(fleet)
    }

    async fn add(&mut self, name: &str) -> Result<()> {
        let port = recipes::free_port()?;
        self.listen.insert(name.to_owned(), format!("127.0.0.1:{port}"));
        let mut urls = BTreeMap::new();
        for service in Service::ALL {
            let Some(address) = self.address(service) else { continue };
            let proxy = Proxy::open(address.at).await?;
            urls.insert(recipes::variable(service).to_owned(), address.through(proxy.port));
            self.proxies.insert((name.to_owned(), service.name()), proxy);
        }
        let recipe = recipes::recipe(self, name, urls);
        self.members.insert(name.to_owned(), Arc::new(Mutex::new(Member::new(recipe))));
        Ok(())
    }

    fn address(&self, service: Service) -> Option<&Address> {
        match service {
            Service::Postgres => Some(&self.database),
            Service::Rabbitmq => Some(&self.broker),
            Service::Bucket => self.bucket.as_ref().map(|bucket| &bucket.address),
        }
    }

    /// # Errors
    /// There is no such process.
    pub fn member(&self, name: &str) -> Result<Arc<Mutex<Member>>> {
        self.members.get(name).cloned().with_context(|| format!("there is no {name}"))
    }

    pub fn members(&self) -> impl Iterator<Item = (&str, &Arc<Mutex<Member>>)> {
        self.members.iter().map(|(name, member)| (name.as_str(), member))
    }

    pub fn network(&self, process: &str, service: Service, mode: Mode) {
        if let Some(proxy) = self.proxies.get(&(process.to_owned(), service.name())) {
            proxy.set(mode);
        }
    }

    /// How far ahead the clock of a process is, if it can be set.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn set_clock(&self, process: &str, seconds: i64) -> Result<()> {
        // Whole or not at all: it is read all the time.
        let file = recipes::clock_file(&self.dir, process);
        let fresh = file.with_extension("new");
        std::fs::write(&fresh, format!("{seconds:+}\n"))?;
        std::fs::rename(fresh, file).context("the clock")
    }

    /// Addresses that serve the API.
    pub fn dispatchers(&self) -> Vec<String> {
        let names = self.listen.iter().filter(|(name, _)| name.starts_with("dispatcher"));
        names.map(|(_, address)| format!("http://{address}")).collect()
    }

    /// A command of stepfleet, past all proxies; its standard output.
    ///
    /// # Errors
    /// It failed.
    pub async fn stepfleet(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.binary);
        command.args(arguments).env_clear().envs(recipes::common(self)).current_dir(self.dir.join("data"));
        command.env("STEPFLEET_DATABASE_URL", &self.database.url).env("STEPFLEET_AMQP_URL", &self.broker.url);
        if let Some(url) = self.dispatchers().first() {
            command.env("STEPFLEET_URL", url);
        }
        let output = command.kill_on_drop(true).output().await.context("stepfleet cannot be run")?;
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() && out.is_empty() {
            bail!("stepfleet {} failed: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(out)
    }

    /// Starts again whatever ended by itself, which nothing may.
    pub async fn mend(&self, diary: &Diary) {
        for (name, member) in self.members() {
            // Somebody else is busy with it.
            let Ok(mut member) = member.try_lock() else { continue };
            if let Some(status) = member.ended() {
                diary.complain(format!("{name} ended by itself: {status}"));
                if let Err(error) = member.start() {
                    diary.complain(format!("{name} cannot be started again: {error:#}"));
                }
            }
        }
    }
}
