//! Whether the archive has every memory that SQL keeps only the light part of (invariant J1).

use schemas::id::MemoryId;
use schemas::limits::MEMORY_SCAN_PAGE;
use schemas::memory::MemoryOwner;

use crate::failure::Failure;
use crate::ports::{MemoryArchive, MemoryTail, Revision};

/// Findings kept in all.
const FINDINGS_MAX: usize = 1_000;

/// What a walk over memories found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryVerdict {
    /// Memories of which the archive alone has all.
    pub seen: u64,
    pub broken: u64,
    pub findings: Vec<String>,
}

/// Looks each of them up in the archive: it must be there once, and not be older. Works beside a
/// running fleet.
///
/// # Errors
/// SQL or the archive cannot be read.
pub async fn verify_memories(tail: &dyn MemoryTail, archive: &dyn MemoryArchive) -> Result<MemoryVerdict, Failure> {
    let mut verdict = MemoryVerdict::default();
    let mut after: Option<Revision> = None;
    loop {
        let rows = tail.settled(after.as_ref(), MEMORY_SCAN_PAGE).await?;
        for rows in rows.chunk_by(|a, b| a.owner == b.owner) {
            let ids: Vec<&MemoryId> = rows.iter().map(|row| &row.id).collect();
            let kept = archive.revisions(&rows[0].owner, &ids).await?;
            rows.iter().for_each(|row| verdict.see(row, &kept));
        }
        if rows.len() < MEMORY_SCAN_PAGE {
            return Ok(verdict);
        }
        after = rows.into_iter().next_back();
    }
}

impl MemoryVerdict {
    fn see(&mut self, row: &Revision, kept: &[Revision]) {
        self.seen += 1;
        let copies: Vec<u64> = kept.iter().filter(|kept| kept.id == row.id).map(|kept| kept.revision).collect();
        let wrong = match copies[..] {
            [] => "is missing".to_owned(),
            // A higher one was written since the row was read.
            [there] if there >= row.revision => return,
            [there] => format!("has revision {there} instead of {}", row.revision),
            _ => format!("is there {} times", copies.len()),
        };
        self.broken += 1;
        if self.findings.len() < FINDINGS_MAX {
            let MemoryOwner { namespace, agent_id } = &row.owner;
            self.findings.push(format!("J1: memory {} of {namespace}/{agent_id} {wrong} in the archive", row.id));
        }
    }
}

#[cfg(test)]
mod tests {
    use schemas::id::{AgentId, Namespace};

    use super::*;

    #[test]
    fn what_is_missing_doubled_or_older_is_a_breach() {
        let agent_id = AgentId::parse("agent").expect("an id");
        let owner = MemoryOwner { namespace: Namespace::default_ns(), agent_id };
        let row =
            |id: &str, revision| Revision { owner: owner.clone(), id: MemoryId::parse(id).expect("an id"), revision };
        let kept = [row("well", 2), row("newer", 3), row("older", 1), row("double", 2), row("double", 2)];
        let mut verdict = MemoryVerdict::default();
        for name in ["well", "newer", "older", "double", "missing"] {
            verdict.see(&row(name, 2), &kept);
        }
        assert_eq!((verdict.seen, verdict.broken), (5, 3));
        assert_eq!(verdict.findings[0], "J1: memory older of default/agent has revision 1 instead of 2 in the archive");
        assert!(verdict.findings[1].contains("2 times") && verdict.findings[2].contains("missing"));
    }
}
