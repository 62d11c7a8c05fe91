//! One run, from the start of the services to the report.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::json;
use tokio::sync::watch;

use crate::Cli;
use crate::api::Api;
use crate::check::sabotage::Break;
use crate::check::{self, Findings};
use crate::diary::{Bar, Diary, now_ms};
use crate::fleet::services::Broker;
use crate::fleet::{Fleet, Site, recipes};
use crate::foreign::Foreign;
use crate::inject::Hands;
use crate::load::{self, Load, World};
use crate::plan::{History, Plan};
use crate::report::Report;
use crate::seen::Seen;
use crate::seen::journal::Journal;
use crate::step_server::StepServer;
use crate::watch::Watch;
use crate::{finish, gather, journal, logs};

const PROGRESS: Duration = Duration::from_secs(10);
/// After the last fault: until the clients have their answers, and the followers their end.
const CLIENTS_MAX: Duration = Duration::from_secs(240);
const FOLLOWERS_MAX: Duration = Duration::from_secs(60);
/// A brief run that is slow takes so many times as long, and no longer.
const BRIEF_MAX: u32 = 3;

/// Everything that lives during a run.
struct Stage {
    fleet: Arc<Fleet>,
    world: Arc<World>,
    watch: Arc<Watch>,
    journal: Arc<journal::Tail>,
    logs: Arc<logs::follow::Tail>,
    diary: Arc<Diary>,
    steps: StepServer,
    over: watch::Sender<bool>,
    done: watch::Sender<bool>,
}

/// Whether there are no findings.
///
/// # Errors
/// The harness itself cannot do its work.
pub async fn run(cli: &Cli, plan: Plan) -> Result<bool> {
    let dir = directory(cli)?;
    let plan = Arc::new(plan);
    let diary = Arc::new(Diary::new(std::fs::File::create(dir.join("events.jsonl"))?));
    diary.tell("begin", &json!({ "seed": plan.shape.seed, "dir": dir.display().to_string() }));
    let (stage, shards) = set_up(cli, &dir, &plan, diary.clone()).await?;
    let version = stage.fleet.stepfleet(&["--version"]).await?.trim().to_owned();
    let began_ms = now_ms();
    let mut seen = Seen { seed: plan.shape.seed, ..Seen::default() };
    let load = attack(&stage, plan.clone(), shards, &mut seen).await?;
    let faults_ended_ms = now_ms();
    seen.faults = diary.bars();
    conclude(&stage, load, &mut seen).await?;
    let read_ms = now_ms();
    std::fs::write(dir.join("observed.json"), serde_json::to_vec(&seen)?).context("observed.json")?;
    let (seen, findings) = judge(seen, cli.sabotage)?;
    for finding in &findings.told {
        diary.tell("finding", &serde_json::to_value(finding)?);
    }
    let bars = diary.bars();
    let report = Report {
        shape: &plan.shape,
        seen: &seen,
        findings: &findings,
        bars: &bars,
        version: &version,
        began_ms,
        faults_ended_ms,
        read_ms,
        left_out: &left_out(&stage.fleet, &plan, &bars),
        command: command(cli, plan.shape.seed),
    };
    report.write(&dir)?;
    let count: usize = findings.counts.values().sum();
    diary.tell(
        "end",
        &json!({ "findings": count, "seed": plan.shape.seed, "report": dir.join("report.md").display().to_string() }),
    );
    Ok(findings.is_empty())
}

/// Judges what was seen, or what is left of it after a sabotage.
///
/// # Errors
/// There is nothing to sabotage, or it is not noticed.
pub fn judge(mut seen: Seen, sabotage: Option<Break>) -> Result<(Seen, Findings)> {
    if let Some(what) = sabotage
        && !what.apply(&mut seen)
    {
        bail!("{what:?}: the record has nothing that could be broken so");
    }
    let findings = check::all(&seen);
    for finding in &findings.told {
        eprintln!(
            "{}: {}{}",
            finding.rule,
            finding.session.as_deref().map(|id| format!("{id}: ")).unwrap_or_default(),
            finding.what
        );
    }
    if let Some(what) = sabotage
        && !what.rules().iter().any(|rule| findings.counts.contains_key(rule))
    {
        bail!("{what:?} was not noticed");
    }
    Ok((seen, findings))
}

fn directory(cli: &Cli) -> Result<PathBuf> {
    let dir = match &cli.dir {
        Some(dir) => dir.clone(),
        None => PathBuf::from(format!("/var/tmp/stepfleet-chaos-{}", std::process::id())),
    };
    std::fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
    if dir.join("events.jsonl").exists() {
        bail!("{} holds another run; choose a new directory with --dir", dir.display());
    }
    dir.canonicalize().context("the directory")
}

async fn set_up(cli: &Cli, dir: &Path, plan: &Plan, diary: Arc<Diary>) -> Result<(Stage, u64)> {
    let binary = cli.binary.as_ref().context("--binary or STEPFLEET_BIN must name the stepfleet to attack")?;
    let binary = binary.canonicalize().with_context(|| binary.display().to_string())?;
    let ops = cli.ops.canonicalize().with_context(|| format!("{}: --ops", cli.ops.display()))?;
    let steps = StepServer::open(plan.shape.seed).await?;
    let site = Site { ops: &ops, dir, binary: &binary, rabbitmq: cli.broker.tree(&ops).await? };
    let fleet = Arc::new(Fleet::start(&site, &plan.shape, &diary).await?);
    let api = Api::new(fleet.dispatchers(), fleet.token.clone())?;
    let shards = api.must_get("/api/shards", CLIENTS_MAX).await?.as_array().map_or(0, Vec::len) as u64;
    let (over, is_over) = watch::channel(false);
    let (done, is_done) = watch::channel(false);
    let world = Arc::new(World {
        api,
        foreign: Foreign::start(&fleet.broker.url).await?,
        diary: diary.clone(),
        step_port: steps.port,
        documents: recipes::documents_root(&fleet.dir),
        shards,
        over: is_over,
        sent: Mutex::default(),
        garbage: Mutex::default(),
        streams: Mutex::default(),
        talks: Mutex::default(),
        talk_streams: Mutex::default(),
        verdicts: Mutex::default(),
        accepted: 0.into(),
        created: 0.into(),
    });
    load::talk::define(&world).await?;
    let watch = Arc::new(Watch::default());
    let own = Arc::new(Api::new(fleet.dispatchers(), fleet.token.clone())?);
    let journal = Arc::new(journal::Tail::new(&fleet.database.url, shards)?);
    journal.look().await.context("the journal")?;
    let logs = Arc::new(logs::follow::Tail::new(dir));
    tokio::spawn(journal.clone().run(is_done.clone()));
    tokio::spawn(logs.clone().run(is_done.clone()));
    tokio::spawn(watch.clone().run(fleet.clone(), own, diary.clone(), is_done));
    Ok((Stage { fleet, world, watch, journal, logs, diary, steps, over, done }, shards))
}

/// Load and faults together, until the time is over; then everything is healed.
async fn attack(stage: &Stage, plan: Arc<Plan>, shards: u64, seen: &mut Seen) -> Result<Load> {
    let time = Duration::from_secs(plan.shape.seconds);
    let until = Instant::now() + time;
    // A brief run ends with its last phase.
    let faults_until = if plan.shape.brief { Instant::now() + time * BRIEF_MAX } else { until };
    let load = load::start(&stage.world, &plan);
    let hands = Arc::new(Hands {
        fleet: stage.fleet.clone(),
        diary: stage.diary.clone(),
        watch: stage.watch.clone(),
        meddler: Foreign::start(&stage.fleet.broker.url).await?,
        shards,
        plan,
        outages: Mutex::default(),
    });
    // Something to break first.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let work = tokio::spawn(hands.clone().work(faults_until));
    let progress = async {
        loop {
            tokio::time::sleep(PROGRESS).await;
            let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
            let (sessions, actions) = (count(&stage.world.created), count(&stage.world.accepted));
            stage.diary.tell("progress", &json!({ "sessions": sessions, "actions": actions }));
        }
    };
    seen.takeovers = tokio::select! {
        takeovers = work => takeovers.context("the faults")?,
        () = progress => Vec::new(),
    };
    seen.outages = hands.outages();
    // If the phases were few, the load has its time all the same.
    tokio::time::sleep_until(until.into()).await;
    stage.over.send_replace(true);
    hands.heal().await;
    stage.diary.tell("healed", &json!(""));
    Ok(load)
}

/// Waits for the clients, lets the fleet become idle, and reads what was left behind.
async fn conclude(stage: &Stage, mut load: Load, seen: &mut Seen) -> Result<()> {
    let clients = async { while load.clients.join_next().await.is_some() {} };
    if tokio::time::timeout(CLIENTS_MAX, clients).await.is_err() {
        stage.diary.complain(format!("{} clients had no answer within {CLIENTS_MAX:?}", load.clients.len()));
        load.clients.abort_all();
    }
    // What cannot be done is a finding, and no reason to leave the rest unread.
    let mut told = crate::seen::Fleet::default();
    let mut idle = std::collections::BTreeMap::new();
    match finish::settle(&stage.world, &stage.diary).await {
        Ok(settled) => (told, idle) = settled,
        Err(error) => stage.diary.complain(format!("the fleet cannot be brought to rest: {error:#}")),
    }
    let followers = async { while load.followers.join_next().await.is_some() {} };
    if tokio::time::timeout(FOLLOWERS_MAX, followers).await.is_err() {
        let left = load.followers.len();
        stage.diary.complain(format!("{left} live streams had no end {FOLLOWERS_MAX:?} after all sessions had"));
        load.followers.abort_all();
    }
    if let Err(error) = gather::all(&stage.world, idle, seen).await {
        stage.diary.complain(format!("something cannot be read: {error:#}"));
    }
    if let Err(error) = finish::judge(&stage.world, &stage.fleet, &mut told).await {
        stage.diary.complain(format!("the fleet gives no account of itself: {error:#}"));
    }
    stage.done.send_replace(true);
    for (name, member) in stage.fleet.members() {
        if let Err(error) = member.lock().await.stop().await {
            stage.diary.complain(format!("at the end: {name}: {error:#}"));
        }
    }
    (seen.calls, seen.tools) = (stage.steps.calls(), stage.steps.tools());
    seen.asked = gather::asked::read(&stage.fleet.dir);
    let ran = gather::ran::read(&stage.fleet.dir);
    seen.journal = Some(Journal { ran, ..stage.journal.finish().await });
    seen.said = stage.logs.said();
    seen.owners = stage.watch.owners();
    told.alarms = stage.watch.alarms();
    told.log_lines = logs::forbidden(&stage.fleet.dir);
    told.complaints = stage.diary.complaints();
    seen.fleet = told;
    stage.fleet.services.run("down", &[]).await
}

fn left_out(fleet: &Fleet, plan: &Plan, bars: &[Bar]) -> Vec<String> {
    let mut left_out = Vec::new();
    if fleet.bucket.is_some() {
        left_out.push("the full disk: a bucket is on none".to_owned());
        left_out.push("the death of the S3 server: the objects are in its memory".to_owned());
    } else if fleet.disk.is_none() {
        left_out.push("the full disk: nobody may mount a small one here".to_owned());
    }
    if fleet.clock.is_none() {
        left_out.push("the clocks of processes: libfaketime is not installed, or does not work here".to_owned());
    }
    if plan.shape.brief {
        let wanted = plan.phases.iter().flat_map(|phase| &phase.faults).map(|planned| planned.fault.kind());
        let had: BTreeSet<&str> = bars.iter().map(|bar| bar.kind.as_str()).collect();
        let missing = wanted.filter(|kind| !had.contains(kind));
        left_out.extend(missing.map(|kind| format!("{kind}: the time was over")));
    }
    left_out
}

fn command(cli: &Cli, seed: u64) -> String {
    let mut command = format!("ops/chaos --minutes {} --seed {seed}", cli.minutes);
    for (name, value, default) in
        [("workers", cli.workers, 3), ("dispatchers", cli.dispatchers, 2), ("sessions", cli.sessions, 2_000)]
    {
        if value != default {
            command.push_str(&format!(" --{name} {value}"));
        }
    }
    if let Some(count) = cli.conversations {
        command.push_str(&format!(" --conversations {count}"));
    }
    if cli.brief {
        command.push_str(" --brief");
    }
    if cli.history == History::S3 {
        command.push_str(" --history s3");
    }
    if cli.broker == Broker::Four {
        command.push_str(" --broker 4");
    }
    if !cli.only.is_empty() {
        command.push_str(&format!(" --only \"{}\"", cli.only.join(",")));
    }
    command
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn the_command_that_repeats_a_run_names_its_broker() {
        let of = |arguments: &[&str]| command(&Cli::try_parse_from(arguments).unwrap(), 7);
        assert_eq!(of(&["chaos"]), "ops/chaos --minutes 5 --seed 7");
        assert_eq!(of(&["chaos", "--broker", "4", "--brief"]), "ops/chaos --minutes 5 --seed 7 --brief --broker 4");
        assert!(Cli::try_parse_from(["chaos", "--broker", "5"]).is_err());
    }
}
