//! Blows of fate while the clients act.

use std::time::Duration;

use testkit::dice::Dice;
use testkit::unreliable::{CrashPoint, Port, Side};

use crate::fleet::{Machine, Process};
use crate::world::World;

/// Strikes until the future is dropped.
pub async fn strike(world: &World, machines: &[Machine]) {
    let dice = world.dice.fork();
    let mean_ms = world.plan.chaos_ms;
    if mean_ms == 0 {
        std::future::pending::<()>().await;
    }
    loop {
        tokio::time::sleep(Duration::from_millis(dice.range(1..2 * mean_ms))).await;
        let length = Duration::from_millis(dice.range(100..8_000));
        match dice.index(14) {
            0 => world.queue.outage(length),
            1 => {
                for machine in machines {
                    on(machine, |process| process.faults.outage(&Port::STORE, length));
                }
            }
            2 => dice.pick(machines).renew(),
            _ => on(dice.pick(machines), |process| harm(world, &dice, process, length)),
        }
    }
}

/// Workers leave in good order and come back, all the time.
pub async fn churn(world: &World, machines: &[Machine]) {
    let dice = world.dice.fork();
    let mean_ms = world.plan.churn_ms;
    if mean_ms == 0 {
        std::future::pending::<()>().await;
    }
    loop {
        tokio::time::sleep(Duration::from_millis(dice.range(1..2 * mean_ms))).await;
        dice.pick(machines).renew();
    }
}

fn on(machine: &Machine, act: impl FnOnce(Process)) {
    if let Some(process) = machine.process() {
        act(process);
    }
}

fn harm(world: &World, dice: &Dice, process: Process, length: Duration) {
    let faults = process.faults;
    let past_lease = Duration::from_millis(world.plan.lease_ms) + length;
    match dice.index(10) {
        0 => faults.crash(),
        1 | 2 => {
            let side = if dice.chance(0.5) { Side::Before } else { Side::After };
            faults.crash_at(CrashPoint { call: faults.calls() + dice.range(1..40), side });
        }
        3 => faults.freeze(past_lease),
        // Goes on without its leases: a zombie.
        4 | 5 => faults.outage(&[Port::Leases], past_lease),
        // Comes back with commits that were decided long ago.
        6 => faults.outage(&[Port::Leases, Port::Commits], past_lease),
        7 => faults.outage(&[Port::Commits], length),
        8 => faults.outage(&[Port::Archive, Port::Queue], length),
        _ => process.clock.jump(dice.range(0..40_000) as i64 - 20_000),
    }
}
