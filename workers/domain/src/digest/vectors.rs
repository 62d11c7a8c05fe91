//! Sentences as weighted word vectors, and how alike two of them are.

use std::collections::HashMap;

use super::fitness::Sentence;
use super::words::Language;

/// Words of a text, weighted by how rare they are among its sentences.
pub struct Index {
    vectors: Vec<Vec<(u32, f32)>>,
    centroid: Vec<f32>,
}

impl Index {
    pub fn new(body: &[Sentence], language: Language) -> Self {
        let mut ids: HashMap<String, u32> = HashMap::new();
        let mut counts: Vec<HashMap<u32, f32>> = Vec::with_capacity(body.len());
        for sentence in body {
            let mut count = HashMap::new();
            for stem in language.stems(&sentence.text) {
                let next = ids.len() as u32;
                *count.entry(*ids.entry(stem).or_insert(next)).or_insert(0.0) += 1.0;
            }
            counts.push(count);
        }
        let mut spread = vec![0f32; ids.len()];
        for count in &counts {
            count.keys().for_each(|id| spread[*id as usize] += 1.0);
        }
        let total = body.len() as f32;
        let mut centroid = vec![0f32; ids.len()];
        let mut vectors = Vec::with_capacity(body.len());
        for count in counts {
            let mut vector: Vec<(u32, f32)> = count
                .into_iter()
                .map(|(id, n)| (id, (1.0 + n.ln()) * (1.0 + total / spread[id as usize]).ln()))
                .collect();
            vector.sort_unstable_by_key(|(id, _)| *id);
            normalise(&mut vector);
            // A word said once is noise for the whole; one said often is the matter.
            for (id, weight) in &vector {
                if spread[*id as usize] > 1.0 || body.len() < 12 {
                    centroid[*id as usize] += weight;
                }
            }
            vectors.push(vector);
        }
        let length = centroid.iter().map(|w| w * w).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
        centroid.iter_mut().for_each(|w| *w /= length);
        Self { vectors, centroid }
    }

    /// Cosine of two sentences, from 0 to 1.
    pub fn likeness(&self, a: usize, b: usize) -> f32 {
        let (mut a, mut b) = (self.vectors[a].iter().peekable(), self.vectors[b].iter().peekable());
        let mut sum = 0.0;
        while let (Some((left, x)), Some((right, y))) = (a.peek(), b.peek()) {
            match left.cmp(right) {
                std::cmp::Ordering::Less => drop(a.next()),
                std::cmp::Ordering::Greater => drop(b.next()),
                std::cmp::Ordering::Equal => {
                    sum += x * y;
                    a.next();
                    b.next();
                }
            }
        }
        sum
    }

    /// Cosine of a sentence and the whole text.
    pub fn centrality(&self, at: usize) -> f32 {
        self.vectors[at].iter().map(|(id, weight)| weight * self.centroid[*id as usize]).sum()
    }

    /// The likeness of each pair of the given sentences that share a word, above a floor: for
    /// each, its neighbours (as positions in `chosen`) with their likeness.
    pub fn graph(&self, chosen: &[usize], floor: f32) -> Vec<Vec<(usize, f32)>> {
        let mut by_word: HashMap<u32, Vec<(usize, f32)>> = HashMap::new();
        let mut graph = vec![Vec::new(); chosen.len()];
        for (place, &at) in chosen.iter().enumerate() {
            let mut sums: HashMap<usize, f32> = HashMap::new();
            for (id, weight) in &self.vectors[at] {
                let others = by_word.entry(*id).or_default();
                for (other, other_weight) in others.iter() {
                    *sums.entry(*other).or_insert(0.0) += weight * other_weight;
                }
                others.push((place, *weight));
            }
            let mut near: Vec<(usize, f32)> = sums.into_iter().filter(|(_, sum)| *sum >= floor).collect();
            near.sort_unstable_by_key(|(other, _)| *other);
            for (other, sum) in near {
                graph[place].push((other, sum));
                graph[other].push((place, sum));
            }
        }
        graph
    }
}

fn normalise(vector: &mut [(u32, f32)]) {
    let length = vector.iter().map(|(_, w)| w * w).sum::<f32>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|(_, w)| *w /= length);
    }
}
