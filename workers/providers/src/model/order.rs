//! Positions of parts: in the order in which a stream first tells something of them.

/// Keys of parts in order of appearance.
#[derive(Debug)]
pub struct Order<K>(Vec<K>);

impl<K> Default for Order<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: PartialEq> Order<K> {
    /// The position of a part; the next free one for a new part.
    pub fn part(&mut self, key: K) -> usize {
        // The latest part is the likeliest.
        self.0.iter().rposition(|known| *known == key).unwrap_or_else(|| {
            self.0.push(key);
            self.0.len() - 1
        })
    }

    /// Parts at their positions; those never told of come last, in their own order.
    pub fn sort<P>(&self, mut parts: Vec<(K, P)>) -> Vec<P> {
        let place = |key: &K| self.0.iter().position(|known| known == key).unwrap_or(usize::MAX);
        parts.sort_by_key(|(key, _)| place(key));
        parts.into_iter().map(|(_, part)| part).collect()
    }
}
