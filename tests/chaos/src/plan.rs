//! All choices of a run, drawn from its seed before it starts: faults in phases, and the stories
//! of the sessions. The time things take is the machine's; what is done is the seed's.

pub mod faults;
pub mod stories;
pub mod talks;

use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::Serialize;

pub use self::faults::{Fault, Mode, Phase, Planned, Service};
pub use self::stories::{Act, Kind, Story};
pub use self::talks::{TalkAct, TalkStory, Word};

/// Where the fleet has its history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum History {
    /// On a small disk, where one may be mounted
    Directory,
    /// In a bucket of a private server of the S3 protocol
    S3,
}

/// The fleet that a plan is drawn for.
#[derive(Debug, Clone, Serialize)]
pub struct Shape {
    pub seed: u64,
    pub seconds: u64,
    pub workers: usize,
    pub dispatchers: usize,
    pub sessions: usize,
    pub conversations: usize,
    /// Kinds of faults to draw from; all if empty.
    pub only: Vec<String>,
    /// Each of them once, in short phases.
    pub brief: bool,
    pub history: History,
}

impl Shape {
    pub fn workers(&self) -> Vec<String> {
        (1..=self.workers).map(|n| format!("worker-{n}")).collect()
    }

    pub fn dispatchers(&self) -> Vec<String> {
        (1..=self.dispatchers).map(|n| format!("dispatcher-{n}")).collect()
    }

    /// A stream of choices for one purpose, independent of all others.
    pub fn dice(&self, purpose: u64) -> StdRng {
        StdRng::seed_from_u64(self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(purpose))
    }
}

/// Archives only; so that its loss is a fault of its own.
pub const ARCHIVIST: &str = "archivist-1";

/// Executes only.
pub const EXECUTOR: &str = "executor-1";

/// A worker and a dispatcher whose clocks can be set.
pub const CLOCKS: [&str; 2] = ["worker-1", "dispatcher-1"];

#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    pub shape: Shape,
    /// More than fit into the time; a run takes as many as it can.
    pub phases: Vec<Phase>,
    pub stories: Vec<Story>,
    pub talks: Vec<TalkStory>,
}

impl Plan {
    pub fn draw(shape: Shape) -> Self {
        let phases = faults::draw(&shape);
        let stories = stories::draw(&shape);
        let talks = talks::draw(&shape);
        Self { shape, phases, stories, talks }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn shape(seed: u64) -> Shape {
        Shape {
            seed,
            seconds: 120,
            workers: 3,
            dispatchers: 2,
            sessions: 300,
            conversations: 30,
            only: Vec::new(),
            brief: false,
            history: History::Directory,
        }
    }

    /// In none of the phases two faults meet in one process.
    fn assert_apart(plan: &Plan) {
        for phase in &plan.phases {
            let mut subjects: Vec<String> = phase.faults.iter().flat_map(|f| f.fault.subjects(&plan.shape)).collect();
            let count = subjects.len();
            subjects.sort();
            subjects.dedup();
            assert_eq!(subjects.len(), count, "{phase:?}");
        }
    }

    fn kinds(plan: &Plan) -> Vec<&'static str> {
        plan.phases.iter().flat_map(|phase| &phase.faults).map(|planned| planned.fault.kind()).collect()
    }

    fn told(seed: u64) -> String {
        serde_json::to_string(&Plan::draw(shape(seed))).unwrap()
    }

    #[test]
    fn a_seed_repeats_its_choices_and_another_makes_others() {
        assert_eq!(told(7), told(7));
        assert_ne!(told(7), told(8));
    }

    #[test]
    fn faults_of_a_phase_do_not_meet_in_one_process_and_every_kind_has_its_turn() {
        let plan = Plan::draw(shape(1));
        assert_apart(&plan);
        let kinds: BTreeSet<&str> = kinds(&plan).into_iter().collect();
        assert_eq!(kinds.len(), faults::KINDS.len(), "{kinds:?}");
    }

    #[test]
    fn a_brief_run_has_every_kind_once_within_two_minutes() {
        for seed in 0..40 {
            let plan = Plan::draw(Shape { brief: true, ..shape(seed) });
            assert_apart(&plan);
            let (mut found, mut all) = (kinds(&plan), faults::KINDS.to_vec());
            found.sort_unstable();
            all.sort_unstable();
            assert_eq!(found, all, "seed {seed}");
            let lasts = |phase: &Phase| phase.faults.iter().map(|f| f.after_ms + f.lasts_ms).max().unwrap_or(0);
            let planned: u64 = plan.phases.iter().map(|phase| lasts(phase) + phase.recovery_ms).sum();
            // Starting things again comes on top.
            assert!(planned < 90_000, "seed {seed}: {planned} ms");
        }
    }

    #[test]
    fn a_brief_run_of_some_kinds_has_no_others() {
        let only = vec!["net".to_owned(), "kill worker".to_owned()];
        let plan = Plan::draw(Shape { brief: true, only, ..shape(2) });
        assert_eq!(kinds(&plan), ["kill worker", "net"]);
    }

    #[test]
    fn with_a_bucket_its_server_freezes_where_a_disk_would_be_full_and_nothing_else_changes() {
        for brief in [false, true] {
            let plan = |history| Plan::draw(Shape { brief, history, ..shape(4) });
            let (directory, bucket) = (plan(History::Directory), plan(History::S3));
            let instead = |kind: &'static str| if kind == "disk full" { "freeze s3" } else { kind };
            let expected: Vec<&str> = kinds(&directory).into_iter().map(instead).collect();
            assert_eq!(kinds(&bucket), expected);
            assert!(expected.contains(&"freeze s3"));
            assert_apart(&bucket);
        }
    }

    #[test]
    fn the_network_fails_between_processes_and_a_bucket_if_there_is_one() {
        let ends = |history| -> BTreeSet<(bool, &'static str)> {
            let only = vec!["net".to_owned()];
            let plans = (0..20).map(|seed| Plan::draw(Shape { only: only.clone(), history, ..shape(seed) }));
            let faults = plans.flat_map(|plan| plan.phases).flat_map(|phase| phase.faults);
            let end = |planned: Planned| match planned.fault {
                Fault::Net { process, service, .. } => (process == ARCHIVIST, service.name()),
                other => panic!("{other:?}"),
            };
            faults.map(end).collect()
        };
        let all = |services: &[&'static str]| -> BTreeSet<(bool, &'static str)> {
            services.iter().flat_map(|name| [(false, *name), (true, *name)]).collect()
        };
        assert_eq!(ends(History::Directory), all(&["postgres", "rabbitmq"]));
        assert_eq!(ends(History::S3), all(&["postgres", "rabbitmq", "s3"]));
    }

    #[test]
    fn every_session_of_the_plan_has_a_name_of_its_own() {
        let plan = Plan::draw(shape(3));
        let mut names: Vec<&str> = plan.stories.iter().map(|story| story.id.as_str()).collect();
        assert!(names.len() >= 300);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), plan.stories.len());
    }

    #[test]
    fn conversations_change_no_other_choice() {
        let without = Plan::draw(Shape { conversations: 0, ..shape(5) });
        let with = Plan::draw(shape(5));
        let others = |plan: &Plan| serde_json::to_string(&(&plan.phases, &plan.stories)).unwrap();
        assert_eq!(others(&without), others(&with));
        assert_eq!((without.talks.len(), with.talks.len()), (0, 30));
    }
}
