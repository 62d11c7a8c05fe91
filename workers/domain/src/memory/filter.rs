//! Which memories a search or a list looks at.

use schemas::memory::MemoryTier;
use serde_json::{Map, Value};

/// All given conditions must hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemoryFilter {
    /// Any of these; empty: all.
    pub tiers: Vec<MemoryTier>,
    /// Any of these types; empty: all.
    pub kinds: Vec<String>,
    pub min_significance: Option<f64>,
    /// Each field must be in the metadata with this value.
    pub metadata: Map<String, Value>,
    /// Written or changed at this time or later.
    pub since_ms: Option<i64>,
}

/// What a filter looks at.
#[derive(Debug, Clone, Copy)]
pub struct Traits<'m> {
    pub tier: MemoryTier,
    pub kind: &'m str,
    pub significance: f64,
    /// JSON, read only if the filter asks for it.
    pub metadata: &'m str,
    pub updated_at_ms: i64,
}

impl MemoryFilter {
    pub fn matches(&self, traits: &Traits<'_>) -> bool {
        (self.tiers.is_empty() || self.tiers.contains(&traits.tier))
            && (self.kinds.is_empty() || self.kinds.iter().any(|kind| kind == traits.kind))
            && self.min_significance.is_none_or(|least| traits.significance >= least)
            && self.since_ms.is_none_or(|since| traits.updated_at_ms >= since)
            && self.matches_metadata(traits.metadata)
    }

    fn matches_metadata(&self, metadata: &str) -> bool {
        if self.metadata.is_empty() {
            return true;
        }
        let has: Map<String, Value> = serde_json::from_str(metadata).unwrap_or_default();
        self.metadata.iter().all(|(name, value)| has.get(name) == Some(value))
    }
}
