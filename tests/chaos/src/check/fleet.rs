//! The fleet as a whole: idle in time, no alarm in logs and metrics, a sound history, and every
//! piece of garbage among the dead letters.

use std::collections::BTreeSet;

use super::Findings;
use crate::seen::Seen;

pub fn check(seen: &Seen, findings: &mut Findings) {
    let fleet = &seen.fleet;
    findings.expect("not idle", None, fleet.idle, || {
        format!("{} actions were still waiting when the time allowed after the last fault was over", fleet.pending)
    });
    findings.expect("not well", None, fleet.health == "ok", || format!("the fleet says it is {:?}", fleet.health));
    for (name, value) in fleet.alarms.iter().chain(&fleet.gauges).filter(|(_, value)| **value > 0.0) {
        findings.add("alarm", None, format!("{name} reached {value}"));
    }
    for line in &fleet.log_lines {
        findings.add("log", None, line.clone());
    }
    for complaint in &fleet.complaints {
        findings.add("complaint", None, complaint.clone());
    }
    let dead: BTreeSet<&str> = fleet.dead.iter().map(String::as_str).collect();
    for marker in fleet.garbage.iter().filter(|marker| !dead.contains(marker.as_str())) {
        findings.add("garbage lost", None, format!("{marker} was published and is not among the dead letters"));
    }
    match &fleet.doctor {
        None => findings.add("history unproven", None, "the doctor gave no report".into()),
        Some(doctor) => {
            findings.expect("history broken", None, doctor.broken == 0, || {
                format!("the doctor found {} breaches: {:?}", doctor.broken, doctor.findings)
            });
            for check in &doctor.unwell {
                findings.add("doctor", None, check.clone());
            }
            let streamed: u64 = seen.sessions.iter().map(|session| session.steps().count() as u64).sum();
            findings.expect("history differs", None, doctor.steps >= streamed, || {
                format!("the doctor read {} steps, the streams had {streamed}", doctor.steps)
            });
        }
    }
}
