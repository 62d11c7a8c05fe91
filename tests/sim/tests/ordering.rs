//! 200 ordered inputs to each of 50 sessions, against everything that disturbs an order.

use sim::{Attack, attack};

#[test]
fn every_session_answers_in_order() {
    for seed in 1..=2 {
        let broken = attack(seed, Attack { sessions: 50, inputs: 200 });
        assert!(broken.is_empty(), "seed {seed}: {} findings, the first: {}", broken.len(), broken[0]);
    }
}
