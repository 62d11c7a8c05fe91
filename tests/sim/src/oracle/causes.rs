//! L1: no session had to be healed. The auditor would hide what [`crate::quiet`] looks for, so what
//! it does counts as a finding.

use domain::invariant::Invariant;

use super::Findings;
use crate::world::World;

pub fn check(world: &World, findings: &mut Findings) {
    for key in world.store.rearmed() {
        findings.expect(Invariant::L1, false, || format!("{key} had no cause to go on until the auditor made it due"));
    }
}
