//! What a seed decides before anything runs: how large, how long, how faulty.

use schemas::limits;
use testkit::dice::Dice;
use testkit::fake::effects::EffectFaults;
use testkit::fake::{Breakages, QueueFaults};
use testkit::unreliable::FaultRates;

#[derive(Clone)]
pub struct Plan {
    pub seed: u64,
    pub shards: u16,
    pub workers: usize,
    pub clients: usize,
    /// Sessions that clients create, at most.
    pub sessions: u64,
    /// Actions per client.
    pub actions: u64,
    /// Longest pause between two actions of a client.
    pub think_ms: u64,
    /// Mean pause between two blows of fate; zero = none.
    pub chaos_ms: u64,
    /// Blows go on for this long even if the clients are done.
    pub chaos_for_ms: u64,
    /// Mean pause between two workers that leave in good order and come back; zero = none.
    pub churn_ms: u64,
    pub lease_ms: u64,
    pub renew_ms: u64,
    pub look_ms: u64,
    pub idle_evict_ms: u64,
    /// Archived journal rows are trimmed this late.
    pub grace_ms: u64,
    /// Part of the crashes that the database notices at once.
    pub noticed: f64,
    pub rates: FaultRates,
    pub queue: QueueFaults,
    /// Part of the actions that another program also puts straight on a shard's queue.
    pub straight: f64,
    pub effects: EffectFaults,
    /// Appends that end between two tables.
    pub cut_appends: f64,
    /// Whether everything is destroyed in the end.
    pub destroys_all: bool,
    pub breakages: Breakages,
}

impl Plan {
    pub fn of(seed: u64) -> Self {
        let dice = Dice::new(seed ^ 0x5_1eed);
        // A third of the seeds is calm in each respect, so that faults are also seen alone.
        let rate = |max: u64| if dice.chance(0.34) { 0.0 } else { dice.range(0..max) as f64 / 1_000.0 };
        Self {
            seed,
            shards: *dice.pick(&[1, 2, 4]),
            // At times more than shards.
            workers: 1 + dice.index(4),
            clients: 1 + dice.index(3),
            sessions: 2 + dice.range(0..5),
            actions: 8 + dice.range(0..18),
            think_ms: *dice.pick(&[30, 300, 1_500]),
            chaos_ms: *dice.pick(&[0, 400, 1_500, 4_000]),
            chaos_for_ms: *dice.pick(&[500, 10_000, 25_000]),
            churn_ms: *dice.pick(&[0, 0, 0, 600, 3_000]),
            lease_ms: *dice.pick(&[2_000, 4_000]),
            renew_ms: 500,
            look_ms: *dice.pick(&[100, 300]),
            idle_evict_ms: *dice.pick(&[20, 200, 2_000]),
            grace_ms: *dice.pick(&[500, 3_000, 15_000]),
            noticed: 0.7,
            rates: FaultRates {
                refuse: rate(60),
                lose_request: rate(60),
                lose_answer: rate(80),
                delay_ms: 0..*dice.pick(&[1, 4, 20, 80]),
            },
            queue: QueueFaults {
                lose: rate(300),
                repeat: rate(300),
                straggle: rate(300),
                delay_ms: 0..*dice.pick(&[1, 5, 50]),
                straggle_ms: 50..4_000,
                lost_confirm: rate(200),
                lost_channel: rate(100),
                linger_ms: 0..*dice.pick(&[1, 3_000]),
                overlap: rate(500),
                prefetch: 1..*dice.pick(&[2, 9, 257]),
                delivery_limit: *dice.pick(&[2, 1_000]),
            },
            straight: rate(200),
            effects: EffectFaults { retriable: rate(60), fatal: rate(60), delay_ms_max: *dice.pick(&[1, 100, 3_000]) },
            cut_appends: rate(300),
            destroys_all: dice.chance(0.3),
            breakages: Breakages::default(),
        }
    }

    /// No faults but those that a test makes itself, and the settings of a real fleet.
    pub fn calm(shards: u16) -> Self {
        Self {
            shards,
            chaos_ms: 0,
            churn_ms: 0,
            lease_ms: limits::LEASE_MS,
            renew_ms: limits::LEASE_RENEW_MS,
            look_ms: limits::LEASE_LOOK_MS,
            noticed: 1.0,
            rates: FaultRates::NONE,
            queue: QueueFaults::NONE,
            straight: 0.0,
            effects: EffectFaults::NONE,
            cut_appends: 0.0,
            destroys_all: false,
            ..Self::of(0)
        }
    }
}
