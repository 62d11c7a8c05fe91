//! Which deliveries of a channel are open, and how to acknowledge many with few frames.

use std::collections::BTreeMap;

use lapin::BasicProperties;

/// A delivery that is not acknowledged: whole, because it may have to be buried.
#[derive(Clone)]
pub(super) struct Held {
    pub properties: BasicProperties,
    pub body: Vec<u8>,
}

/// One frame to send.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ack {
    /// This one and everything before it.
    UpTo(u64),
    One(u64),
}

#[derive(Default)]
pub(super) struct Acks {
    open: BTreeMap<u64, Held>,
    settled: Vec<u64>,
}

impl Acks {
    pub fn deliver(&mut self, tag: u64, held: Held) {
        self.open.insert(tag, held);
    }

    /// What is to be buried. It stays open until it is settled: the burial may fail, and be tried again.
    pub fn held(&self, tag: u64) -> Option<Held> {
        self.open.get(&tag).cloned()
    }

    /// Whether the tag was open.
    pub fn settle(&mut self, tag: u64) -> bool {
        let was_open = self.open.remove(&tag).is_some();
        if was_open {
            self.settled.push(tag);
        }
        was_open
    }

    /// Number of settled deliveries that the broker does not know of.
    pub fn waiting(&self) -> usize {
        self.settled.len()
    }

    /// The frames that tell the broker of all that is settled.
    pub fn flush(&mut self) -> Vec<Ack> {
        let mut settled = std::mem::take(&mut self.settled);
        settled.sort_unstable();
        let first_open = self.open.first_key_value().map_or(u64::MAX, |(tag, _)| *tag);
        let below = settled.partition_point(|tag| *tag < first_open);
        let up_to = below.checked_sub(1).map(|last| Ack::UpTo(settled[last]));
        up_to.into_iter().chain(settled[below..].iter().map(|tag| Ack::One(*tag))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn delivered(count: u64) -> Acks {
        let mut acks = Acks::default();
        for tag in 1..=count {
            acks.deliver(tag, Held { properties: BasicProperties::default(), body: Vec::new() });
        }
        acks
    }

    #[test]
    fn in_order_one_frame_is_enough() {
        let mut acks = delivered(5);
        assert!((1..=4).all(|tag| acks.settle(tag)));
        assert_eq!(acks.flush(), [Ack::UpTo(4)]);
        assert_eq!(acks.flush(), []);
    }

    #[test]
    fn an_open_delivery_is_never_acknowledged_along() {
        let mut acks = delivered(5);
        for tag in [5, 1, 2, 4] {
            acks.settle(tag);
        }
        assert_eq!(acks.flush(), [Ack::UpTo(2), Ack::One(4), Ack::One(5)]);
        assert!(!acks.settle(4), "settled once only");
        assert!(acks.held(3).is_some() && acks.held(3).is_some(), "a burial that failed can be tried again");
        assert!(acks.settle(3) && acks.held(3).is_none());
    }

    proptest! {
        #[test]
        fn the_broker_learns_exactly_what_is_settled(order in Just((1..=24_u64).collect::<Vec<_>>()).prop_shuffle(), cuts in prop::collection::vec(0..24_usize, 0..6)) {
            let mut acks = delivered(24);
            let mut known = BTreeSet::new();
            for (n, tag) in order.iter().enumerate() {
                acks.settle(*tag);
                if !cuts.contains(&n) {
                    continue;
                }
                for ack in acks.flush() {
                    match ack {
                        Ack::UpTo(last) => known.extend(1..=last),
                        Ack::One(one) => { known.insert(one); }
                    }
                }
                prop_assert_eq!(&known, &order[..=n].iter().copied().collect::<BTreeSet<_>>());
            }
        }
    }
}
