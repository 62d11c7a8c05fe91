//! How the others know a worker without the role runner; a runner tells of itself with its leases.

use schemas::id::WorkerId;
use worker::presence::{Presence, PresenceConfig};

use super::{Parts, Roles};

/// Of a worker that owns no shards; of other processes, nothing.
pub fn start(parts: &Parts, worker: &WorkerId, roles: Roles) -> Option<Presence> {
    if !is_needed(roles) {
        return None;
    }
    let config = PresenceConfig::new(worker.clone(), host_name(), env!("CARGO_PKG_VERSION"), roles.names());
    Some(Presence::start(parts.store.leases.clone(), config))
}

/// A gateway is no worker: it has nothing to drain.
fn is_needed(roles: Roles) -> bool {
    !roles.runner && !roles.names().is_empty()
}

/// What people call this machine.
pub fn host_name() -> String {
    std::fs::read_to_string("/etc/hostname").map_or_else(|_| "localhost".into(), |name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_works_without_shards_needs_it() {
        let worker = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            Roles::of_worker(&names).unwrap()
        };
        assert!(is_needed(worker(&["executor"])) && is_needed(worker(&["archivist", "executor"])));
        assert!(!is_needed(worker(&["runner", "executor"])), "its leases say it");
        assert!(!is_needed(Roles::ALL) && !is_needed(Roles::GATEWAY));
    }
}
