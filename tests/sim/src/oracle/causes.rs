//! L1: no session had to be healed. The auditor would hide what [`crate::quiet`] looks for, so what
//! it does counts as a finding.

use domain::invariant::Invariant;

use super::Findings;
use crate::world::World;

/// Whose actions they are that mend something.
pub const AUDITOR: &str = "auditor";

pub fn check(world: &World, findings: &mut Findings) {
    for action in world.store.all_actions().into_iter().filter(|one| one.asked.actor == AUDITOR) {
        let (kind, id) = (action.kind.as_str(), &action.action_id);
        findings
            .expect(Invariant::L1, false, || format!("something waited in vain until the auditor sent {kind} {id}"));
    }
    for key in world.store.rearmed() {
        findings.expect(Invariant::L1, false, || format!("{key} had no cause to go on until the auditor made it due"));
    }
}
