//! The files of the static model, compiled in: the one binary needs nothing beside it.

/// A row of numbers for each token.
pub const NUMBERS: &[u8] = include_bytes!("../../../../data/embedding/static-minilm-256-rowscale.i8");
/// A scale for each row.
pub const SCALES: &[u8] = include_bytes!("../../../../data/embedding/static-minilm-256-rowscale.f16scale");
/// A token on each line.
pub const VOCABULARY: &str = include_str!("../../../../data/embedding/vocab.txt");
pub const CHARACTERS: &str = include_str!("../../../../data/embedding/characters.txt");
