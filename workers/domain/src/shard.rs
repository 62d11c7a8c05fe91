//! Key to shard, and which worker should own which shard.

use schemas::id::{ConversationId, Namespace, SessionId, SessionKey, Shard, WorkerId};
use schemas::topology::EVENT_PARTS;
use xxhash_rust::xxh3::xxh3_64;

/// The shard of a session: by its conversation if bound to one, else by itself (DESIGN 3).
pub fn shard_of(session: &SessionId, conversation: Option<&ConversationId>, shards: u16) -> Shard {
    let key = conversation.map_or(session.as_str(), ConversationId::as_str);
    Shard((xxh3_64(key.as_bytes()) % u64::from(shards)) as u16)
}

/// The part of the live hints that a session belongs to. Not its shard: who watches a session
/// knows only its key.
pub fn event_part(key: &SessionKey) -> u16 {
    (xxh3_64(key.to_string().as_bytes()) % u64::from(EVENT_PARTS)) as u16
}

/// The part of the news that a conversation belongs to.
pub fn news_part(namespace: &Namespace, conversation: &ConversationId) -> u16 {
    (xxh3_64(format!("{namespace}/{conversation}").as_bytes()) % u64::from(EVENT_PARTS)) as u16
}

/// The worker that should own a shard: highest random weight, so that a change of membership
/// moves only the shards it must (Thaler and Ravishankar, 1998).
pub fn target_owner(shard: Shard, workers: &[WorkerId]) -> Option<&WorkerId> {
    workers.iter().max_by_key(|worker| {
        let weight = xxh3_64(format!("{worker}/{shard}").as_bytes());
        (weight, worker.as_str())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workers(n: usize) -> Vec<WorkerId> {
        (0..n).map(|i| WorkerId::parse(&format!("w{i}")).unwrap()).collect()
    }

    #[test]
    fn the_hash_is_fixed() {
        let session = SessionId::parse("s1").unwrap();
        let conversation = ConversationId::parse("c1").unwrap();
        assert_eq!(shard_of(&session, None, 32), Shard((xxh3_64(b"s1") % 32) as u16));
        assert_eq!(shard_of(&session, Some(&conversation), 32), Shard((xxh3_64(b"c1") % 32) as u16));
    }

    #[test]
    fn one_more_worker_moves_only_what_it_takes() {
        let (before, after) = (workers(4), workers(5));
        let mut moved = 0;
        for n in 0..256 {
            let (old, new) = (target_owner(Shard(n), &before), target_owner(Shard(n), &after));
            if old != new {
                assert_eq!(new, after.last(), "a moved shard goes to the new worker");
                moved += 1;
            }
        }
        assert!((20..90).contains(&moved), "about a fifth of 256 should move, not {moved}");
    }
}
