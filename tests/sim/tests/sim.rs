//! Many seeds through the simulation. `SIM_SEED=n` runs one seed, `SIM_SEEDS=n` that many, from
//! `SIM_SEED` or 1 on.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use sim::{Passed, run_seed};

const SEEDS_DEFAULT: u64 = 300;
const THREADS: usize = 2;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} must be a whole number, not {text:?}")))
}

#[test]
fn every_seed_keeps_every_invariant() {
    let first = number("SIM_SEED").unwrap_or(1);
    let default = if number("SIM_SEED").is_some() { 1 } else { SEEDS_DEFAULT };
    let count = number("SIM_SEEDS").unwrap_or(default);
    let (next, failed, sum) = (AtomicU64::new(first), Mutex::new(Vec::new()), Mutex::new(Passed::default()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        break;
                    }
                    match run_seed(seed) {
                        Ok(passed) => add(&mut sum.lock().expect("no panic"), passed),
                        Err(report) => failed.lock().expect("no panic").push(report),
                    }
                }
            });
        }
    });
    let sum = sum.into_inner().expect("no panic");
    println!("{count} seeds from {first}: {sum:?}");
    let mut failed = failed.into_inner().expect("no panic");
    failed.sort_by_key(|report| report.seed);
    let seeds: Vec<u64> = failed.iter().map(|report| report.seed).collect();
    if let Some(report) = failed.first() {
        panic!("{report}\n{} of {count} seeds fail: {seeds:?}", seeds.len());
    }
    if count >= SEEDS_DEFAULT {
        let all = [sum.steps, sum.actions, sum.effects, sum.fenced, sum.conflicts];
        assert!(all.iter().all(|seen| *seen > 0), "a whole class of events never happened: {sum:?}");
    }
}

fn add(sum: &mut Passed, one: Passed) {
    sum.commits += one.commits;
    sum.steps += one.steps;
    sum.actions += one.actions;
    sum.claims += one.claims;
    sum.effects += one.effects;
    sum.fenced += one.fenced;
    sum.conflicts += one.conflicts;
}

/// The second run is on another thread, whose hash maps have other seeds.
#[test]
fn a_seed_reproduces_its_run() {
    for seed in 1..=20 {
        let run = move || run_seed(seed).map_err(|failed| failed.to_string());
        let other = std::thread::spawn(run).join().expect("no panic");
        assert_eq!(run(), other, "seed {seed} runs differently the second time");
    }
}
