//! Looks at the fleet all the time: who owns which shard, what the metrics say, who has died.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use tokio::sync::watch;

use crate::api::Api;
use crate::diary::{Diary, now_ms};
use crate::fleet::Fleet;
use crate::fleet::member::Member;
use crate::seen::{Owner, Takeover};

const EVERY: Duration = Duration::from_millis(500);
const NOW_OR_NEVER: Duration = Duration::from_millis(10);
/// Whatever is above 0 at any time is a defect.
const ALARMS: [&str; 1] = ["stepfleet_invariant_broken_total"];
/// Must be 0 when nothing is broken any more.
pub const GAUGES: [&str; 1] = ["stepfleet_sessions_without_cause"];

#[derive(Default)]
struct State {
    owners: Vec<Owner>,
    now: BTreeMap<u64, Owner>,
    alarms: BTreeMap<String, f64>,
    /// Pulse session and its shard.
    pulses: HashMap<String, u64>,
}

#[derive(Default)]
pub struct Watch(Mutex<State>);

impl Watch {
    pub async fn run(
        self: Arc<Self>,
        fleet: Arc<Fleet>,
        api: Arc<Api>,
        diary: Arc<Diary>,
        stop: watch::Receiver<bool>,
    ) {
        let mut number = 0_u64;
        while !*stop.borrow() {
            tokio::time::sleep(EVERY).await;
            number += 1;
            drop(self.shards(&api).await);
            if number.is_multiple_of(4) {
                for (name, value) in scrape(&fleet, &api, &ALARMS).await {
                    self.alarm(&diary, name, value);
                }
                fleet.mend(&diary).await;
            }
            if number.is_multiple_of(10) {
                drop(self.find_pulses(&api).await);
            }
        }
    }

    fn alarm(&self, diary: &Diary, name: String, value: f64) {
        let Ok(mut state) = self.0.lock() else { return };
        let before = state.alarms.insert(name.clone(), value).unwrap_or(0.0);
        if value > before {
            diary.tell("alarm", &json!({ "metric": name, "value": value }));
        }
    }

    async fn shards(&self, api: &Api) -> Result<()> {
        let shards = api.must_get("/api/shards", NOW_OR_NEVER).await?;
        let Ok(mut state) = self.0.lock() else { return Ok(()) };
        for view in shards.as_array().into_iter().flatten() {
            let owner = Owner {
                shard: view["shard"].as_u64().unwrap_or(0),
                owner: view["owner"].as_str().map(str::to_owned),
                epoch: view["epoch"].as_i64().unwrap_or(0),
                at_ms: now_ms(),
            };
            let before = state.now.get(&owner.shard);
            if before.is_none_or(|before| (&before.owner, before.epoch) != (&owner.owner, owner.epoch)) {
                state.now.insert(owner.shard, owner.clone());
                state.owners.push(owner);
            }
        }
        Ok(())
    }

    async fn find_pulses(&self, api: &Api) -> Result<()> {
        let page = api.must_get("/api/sessions?agent_id=pulse&limit=1000", NOW_OR_NEVER).await?;
        let Ok(mut state) = self.0.lock() else { return Ok(()) };
        for view in page["items"].as_array().into_iter().flatten() {
            if let (Some(id), Some(shard)) = (view["session_id"].as_str(), view["shard"].as_u64()) {
                state.pulses.insert(id.to_owned(), shard);
            }
        }
        Ok(())
    }

    /// What is about to stand still with this process; none if it is no worker with sessions.
    pub fn lost(&self, fault: &str, member: &mut Member, alone: bool) -> Option<Takeover> {
        let worker = member.worker()?;
        let shards = self.owned_by(&worker);
        let state = self.0.lock().ok()?;
        let mut sessions: Vec<String> =
            state.pulses.iter().filter(|(_, shard)| shards.contains(shard)).map(|(id, _)| id.clone()).collect();
        sessions.sort();
        let gaps_ms = vec![None; sessions.len()];
        let (fault, at_ms) = (fault.to_owned(), now_ms());
        (!sessions.is_empty()).then_some(Takeover { fault, worker, at_ms, alone, sessions, gaps_ms })
    }

    pub fn owned_by(&self, worker: &str) -> Vec<u64> {
        let Ok(state) = self.0.lock() else { return Vec::new() };
        state.now.values().filter(|now| now.owner.as_deref() == Some(worker)).map(|now| now.shard).collect()
    }

    pub fn owners(&self) -> Vec<Owner> {
        self.0.lock().map(|state| state.owners.clone()).unwrap_or_default()
    }

    pub fn alarms(&self) -> BTreeMap<String, f64> {
        self.0.lock().map(|state| state.alarms.clone()).unwrap_or_default()
    }
}

/// The sum of each metric over its labels, by metric and process.
pub async fn scrape(fleet: &Fleet, api: &Api, names: &[&str]) -> BTreeMap<String, f64> {
    let mut found = BTreeMap::new();
    for (process, address) in &fleet.listen {
        let request = api.request(reqwest::Method::GET, format!("http://{address}/metrics"));
        let Ok(response) = request.timeout(Duration::from_secs(2)).send().await else { continue };
        let text = response.text().await.unwrap_or_default();
        for name in names {
            if let Some(value) = sum_of(&text, name) {
                found.insert(format!("{name} of {process}"), value);
            }
        }
    }
    found
}

fn sum_of(text: &str, name: &str) -> Option<f64> {
    let values: Vec<f64> = text
        .lines()
        .filter_map(|line| line.strip_prefix(name))
        .filter(|rest| rest.starts_with([' ', '{']))
        .filter_map(|rest| rest.rsplit(' ').next()?.parse().ok())
        .collect();
    (!values.is_empty()).then(|| values.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_summed_over_their_labels() {
        let text = "# TYPE a_total counter\na_total{x=\"1\"} 2\na_total{x=\"2\"} 3\na_total_more 9\nb 1.5\n";
        assert_eq!(sum_of(text, "a_total"), Some(5.0));
        assert_eq!(sum_of(text, "b"), Some(1.5));
        assert_eq!(sum_of(text, "c"), None);
    }
}
