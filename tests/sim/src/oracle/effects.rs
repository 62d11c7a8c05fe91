//! E1 and E2: nothing leaves before its commit, and nothing settled is repeated.

use std::collections::BTreeMap;

use domain::effect::EffectClass;
use domain::invariant::{Broken, Invariant};

use super::Findings;
use crate::world::World;

pub fn check(world: &World, findings: &mut Findings) {
    for evidence in world.effects.objections() {
        let invariant = if evidence.starts_with("E2") { Invariant::E2 } else { Invariant::E1 };
        findings.0.push(Broken { invariant, evidence });
    }
    for evidence in world.live.objections() {
        findings.0.push(Broken { invariant: Invariant::E1, evidence });
    }
    let mut calls: BTreeMap<String, u32> = BTreeMap::new();
    for performed in world.effects.performed() {
        if performed.call.effect.class() == EffectClass::AtMostOnce {
            *calls.entry(performed.call.key).or_default() += 1;
        }
    }
    for (key, count) in calls {
        findings.expect(Invariant::E2, count == 1, || {
            format!("{key} is to happen at most once and happened {count} times")
        });
    }
}
