//! The oracle notices every deliberate breakage of the fakes: a proof that it looks.

use sim::{Plan, run_plan};
use testkit::fake::{Breakage, Breakages};

/// Seeds that a breakage may survive.
const SEEDS_MAX: u64 = 200;

#[test]
fn every_breakage_of_a_fake_is_caught() {
    let survived: Vec<Breakage> = Breakage::ALL.into_iter().filter(|breakage| !is_caught(*breakage)).collect();
    assert!(survived.is_empty(), "nobody noticed {survived:?} in {SEEDS_MAX} seeds");
}

fn is_caught(breakage: Breakage) -> bool {
    for seed in 1..=SEEDS_MAX {
        let breakages = Breakages::default();
        breakages.enable(breakage);
        let run = std::panic::catch_unwind(|| run_plan(Plan { breakages, ..Plan::of(seed) }));
        match run {
            Ok(Ok(_)) => {}
            Ok(Err(failed)) => {
                println!("{breakage:?} is caught by seed {seed}: {}", failed.broken[0]);
                return true;
            }
            Err(_) => {
                println!("{breakage:?} is caught by seed {seed}: a panic");
                return true;
            }
        }
    }
    false
}
