//! The static model: a text's vector is the mean of its tokens' vectors, of length 1.

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::Embedder;
use schemas::limits::{EMBEDDING_TEXT_CHARS_MAX, EMBEDDING_TEXTS_MAX};

use super::characters::Characters;
use super::files;
use super::tokenizer::Tokenizer;

/// Its name in tables. Whatever changes a vector changes the number behind the `@`.
pub const STATIC_MODEL: &str = "static-minilm-256-rowscale@1";
const DIMENSIONS: usize = 256;

/// Needs no network, and no file beside the program.
#[derive(Debug)]
pub struct StaticEmbedder {
    tokenizer: Tokenizer,
    scales: Vec<f32>,
}

impl StaticEmbedder {
    /// Takes some milliseconds: do it once.
    pub fn load() -> Self {
        let characters = Characters::read(files::CHARACTERS).expect("the file is compiled in, and tests read it");
        let scales = files::SCALES.chunks_exact(2).map(|bytes| half(u16::from_le_bytes([bytes[0], bytes[1]])));
        Self { tokenizer: Tokenizer::new(files::VOCABULARY, characters), scales: scales.collect() }
    }

    /// The vector of a text: of length 1, or all zeros if the model knows no word of it.
    pub fn vector(&self, text: &str) -> Vec<f32> {
        let mut sum = vec![0.0f32; DIMENSIONS];
        self.tokenizer.each(text, EMBEDDING_TEXT_CHARS_MAX, |token| {
            let token = token as usize;
            let scale = self.scales[token];
            let row = &files::NUMBERS[token * DIMENSIONS..(token + 1) * DIMENSIONS];
            for (sum, number) in sum.iter_mut().zip(row) {
                *sum += f32::from(number.cast_signed()) * scale;
            }
        });
        // The mean and the sum point the same way.
        let squares: f64 = sum.iter().map(|n| f64::from(*n) * f64::from(*n)).sum();
        if squares > 0.0 {
            let length = squares.sqrt();
            sum.iter_mut().for_each(|n| *n = (f64::from(*n) / length) as f32);
        }
        sum
    }
}

#[async_trait]
impl Embedder for StaticEmbedder {
    fn model(&self) -> &str {
        STATIC_MODEL
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Failure> {
        if texts.len() > EMBEDDING_TEXTS_MAX {
            return Err(too_many(texts.len()));
        }
        let mut vectors = Vec::with_capacity(texts.len());
        for text in texts {
            vectors.push(self.vector(text));
            // A long list is milliseconds of work: others have their turn in between.
            tokio::task::yield_now().await;
        }
        Ok(vectors)
    }
}

pub(super) fn too_many(texts: usize) -> Failure {
    Failure::too_large(format!("{texts} texts are to be embedded at once; at most {EMBEDDING_TEXTS_MAX} are allowed"))
}

/// A number of two bytes (IEEE 754, binary16).
fn half(bits: u16) -> f32 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f32::from(bits & 0x3ff));
    let size = match exponent {
        0 => fraction * 2f32.powi(-24),
        0x1f if fraction == 0.0 => f32::INFINITY,
        0x1f => f32::NAN,
        _ => (1.0 + fraction / 1_024.0) * 2f32.powi(exponent - 15),
    };
    if bits >> 15 == 1 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::half;

    #[test]
    fn short_numbers_are_read() {
        for (bits, number) in
            [(0, 0.0), (0x3c00, 1.0), (0xc000, -2.0), (0x0001, 2f32.powi(-24)), (0x3555, 0.333_251_95)]
        {
            assert_eq!(half(bits), number);
        }
        assert!(half(0x7c00).is_infinite() && half(0x7e00).is_nan());
    }
}
