//! Vectors of texts: how they are stored, and how alike two of them are.

/// A text's vector, with the model that made it. Vectors of two models have nothing in common.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    pub model: String,
    pub vector: Vec<f32>,
}

const FLOAT_BYTES: usize = size_of::<f32>();

/// A vector as it is stored: little-endian numbers of four bytes.
pub fn to_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// `None` if the bytes are no vector.
pub fn from_bytes(bytes: &[u8]) -> Option<Vec<f32>> {
    let numbers = bytes.chunks_exact(FLOAT_BYTES);
    if !numbers.remainder().is_empty() {
        return None;
    }
    Some(numbers.map(number).collect())
}

fn number(bytes: &[u8]) -> f32 {
    f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// What is looked for, made ready to be compared with many.
#[derive(Debug, Clone)]
pub struct Probe<'e> {
    model: &'e str,
    vector: &'e [f32],
    length: f64,
}

impl<'e> Probe<'e> {
    /// `None` if the vector has no direction, as that of a text without known words.
    pub fn new(embedding: &'e Embedding) -> Option<Self> {
        let squares: f64 = embedding.vector.iter().map(|n| f64::from(*n) * f64::from(*n)).sum();
        let probe = Self { model: &embedding.model, vector: &embedding.vector, length: squares.sqrt() };
        (squares.is_finite() && squares > 0.0).then_some(probe)
    }

    /// The cosine of the angle to a stored vector, from 0 (nothing in common, or opposite) to 1.
    /// `None` if the two cannot be compared: another model, or another number of dimensions.
    pub fn similarity(&self, model: &str, stored: &[u8]) -> Option<f64> {
        if model != self.model || stored.len() != self.vector.len() * FLOAT_BYTES {
            return None;
        }
        let (mut product, mut squares) = (0.0f32, 0.0f32);
        for (mine, theirs) in self.vector.iter().zip(stored.chunks_exact(FLOAT_BYTES)) {
            let theirs = number(theirs);
            product += mine * theirs;
            squares += theirs * theirs;
        }
        let cosine = f64::from(product) / (self.length * f64::from(squares).sqrt());
        // A vector of zeros, or with numbers that are none, is like nothing.
        Some(if cosine.is_finite() { cosine.clamp(0.0, 1.0) } else { 0.0 })
    }
}
