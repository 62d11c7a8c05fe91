//! Workers come and go (S-47): who takes over what, and how soon. Times are those of the default
//! settings, in simulated time.

use std::time::Duration;

use schemas::limits::{LEASE_MS, LEASE_RENEW_MS};
use sim::{Plan, Scene, is_of, play};

const MS: fn(u64) -> Duration = Duration::from_millis;

#[test]
fn a_joining_worker_takes_only_the_shards_it_must() {
    play(async {
        let mut scene = Scene::new(Plan::calm(32));
        for name in ["a", "b", "c"] {
            scene.join(name);
        }
        scene.settled(&["a", "b", "c"]).await;
        let (before, claims) = (scene.owners().await, scene.claims());
        scene.join("d");
        scene.settled(&["a", "b", "c", "d"]).await;
        let after = scene.owners().await;
        let moved: Vec<_> = after.iter().filter(|(shard, owner)| before[shard] != **owner).collect();
        assert!(moved.iter().all(|(_, owner)| is_of(owner, "d")), "{moved:?}");
        assert_eq!(scene.claims() - claims, moved.len(), "none moved twice");
        assert!((2..16).contains(&moved.len()), "about a quarter of 32: {}", moved.len());
    });
}

#[test]
fn a_leaving_worker_gives_away_only_its_own() {
    play(async {
        let mut scene = Scene::new(Plan::calm(32));
        for name in ["a", "b", "c"] {
            scene.join(name);
        }
        scene.settled(&["a", "b", "c"]).await;
        let (before, claims) = (scene.owners().await, scene.claims());
        scene.leave("b").await;
        let took = scene.settled(&["a", "c"]).await;
        let left = before.values().filter(|owner| is_of(owner, "b")).count();
        assert_eq!(scene.claims() - claims, left, "what others held stays with them");
        assert!(took <= MS(600), "{took:?}");
    });
}

#[test]
fn more_workers_than_shards_share_them_and_the_rest_stand_by() {
    play(async {
        let mut scene = Scene::new(Plan::calm(4));
        let names: Vec<String> = (0..9).map(|n| format!("w{n}")).collect();
        for name in &names {
            scene.join(name);
        }
        let mut alive: Vec<&str> = names.iter().map(String::as_str).collect();
        scene.settled(&alive).await;
        // Whoever dies, another has its shards in a moment.
        while alive.len() > 1 {
            let name = alive.pop().expect("more than one");
            scene.kill(name, true);
            let took = scene.settled(&alive).await;
            assert!(took <= MS(1_000), "{name}: {took:?}");
        }
    });
}

#[test]
fn a_standby_takes_over_from_a_killed_worker_within_a_second() {
    play(async {
        let mut scene = Scene::new(Plan::calm(32));
        scene.join("a");
        scene.join("b");
        scene.settled(&["a", "b"]).await;
        scene.kill("a", true);
        let took = scene.settled(&["b"]).await;
        assert!(took <= MS(600), "{took:?}");
    });
}

#[test]
fn a_worker_that_starts_again_takes_over_from_itself() {
    play(async {
        let mut scene = Scene::new(Plan::calm(32));
        scene.join("a");
        scene.settled(&["a"]).await;
        scene.kill("a", false);
        let took = scene.settled(&["a.1"]).await;
        assert!(took <= MS(1_000), "{took:?}");
    });
}

#[test]
fn a_death_that_nobody_saw_lasts_a_lease() {
    play(async {
        let mut scene = Scene::new(Plan { noticed: 0.0, ..Plan::calm(32) });
        scene.join("a");
        scene.join("b");
        scene.settled(&["a", "b"]).await;
        scene.kill("a", true);
        let took = scene.settled(&["b"]).await;
        assert!(took > MS(LEASE_MS - 2 * LEASE_RENEW_MS) && took <= MS(LEASE_MS + 1_000), "{took:?}");
    });
}

#[test]
fn a_frozen_worker_loses_its_shards_in_time_and_gets_its_share_again() {
    play(async {
        let mut scene = Scene::new(Plan::calm(32));
        scene.join("a");
        scene.join("b");
        scene.settled(&["a", "b"]).await;
        scene.freeze("a", MS(20_000));
        let took = scene.settled(&["b"]).await;
        assert!(took <= MS(LEASE_MS + 1_000), "{took:?}");
        // It wakes, learns that it has lost them, and is given its share in good order.
        scene.settled(&["a", "b"]).await;
        assert!(scene.owners().await.values().any(|owner| is_of(owner, "a")));
    });
}
