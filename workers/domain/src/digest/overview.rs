//! The digest of digests: what the documents are about, the sentences that say most of it,
//! grouped by topic, and where they come from.

use std::collections::HashSet;
use std::fmt::Write;

use serde::Serialize;

use super::collection::{Collection, alike, word_set};
use super::topics;
use super::words::Language;

/// Weight of relevance against repetition.
const RELEVANCE: f32 = 0.65;
const THEMES_MAX: usize = 10;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overview {
    pub themes: Vec<String>,
    pub topics: Vec<Topic>,
    /// Documents that are quoted; `Point::source` counts from 1.
    pub sources: Vec<Source>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Source {
    pub document: String,
    pub title: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Topic {
    /// Absent for what fits no topic, and when there is just one.
    pub name: Option<String>,
    pub points: Vec<Point>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    pub text: String,
    pub source: usize,
    pub score: f32,
}

impl Collection {
    /// The overview in at most `count` sentences.
    pub fn overview(&self, count: usize) -> Overview {
        let picked = self.pick(count);
        let themes = topics::themes(self);
        let grouped = topics::group(self, &picked, &themes);
        let mut sources: Vec<Source> = Vec::new();
        let topics = grouped
            .into_iter()
            .map(|group| Topic {
                name: group.name,
                points: group
                    .members
                    .into_iter()
                    .map(|(at, score)| {
                        let candidate = &self.candidates[at];
                        let known = sources.iter().position(|s| s.document == candidate.document);
                        let source = known.unwrap_or_else(|| {
                            let (document, title) = (candidate.document.clone(), candidate.title.clone());
                            sources.push(Source { document, title });
                            sources.len() - 1
                        });
                        Point { text: candidate.text.clone(), source: source + 1, score }
                    })
                    .collect(),
            })
            .collect();
        Overview { themes: themes.into_iter().map(|theme| theme.word).take(THEMES_MAX).collect(), topics, sources }
    }

    fn pick(&self, count: usize) -> Vec<(usize, f32)> {
        let values = self.values();
        let language = self.language();
        let sets: Vec<HashSet<String>> = self.candidates.iter().map(|c| content_set(&c.text, language)).collect();
        let top = values.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
        let mut near = vec![0f32; values.len()];
        let mut picked: Vec<(usize, f32)> = Vec::new();
        // With many documents nobody may take more than a few seats.
        let seats = if self.documents >= 4 { 2 } else { count };
        while picked.len() < count {
            let best = (0..values.len())
                .filter(|at| !self.is_repeated(&self.candidates[*at]))
                .filter(|at| !picked.iter().any(|(p, _)| p == at) && near[*at] < 0.5)
                .filter(|at| {
                    let same = |p: &&(usize, f32)| self.candidates[p.0].document == self.candidates[*at].document;
                    picked.iter().filter(same).count() < seats
                })
                .map(|at| (at, RELEVANCE * values[at] / top - (1.0 - RELEVANCE) * near[at]))
                .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
            let Some((at, _)) = best else { break };
            picked.push((at, values[at] / top));
            for other in 0..values.len() {
                near[other] = near[other].max(alike(&sets[at], &sets[other]));
            }
        }
        picked
    }
}

fn content_set(text: &str, language: Language) -> HashSet<String> {
    let stems: HashSet<String> = language.stems(text).into_iter().collect();
    if stems.is_empty() { word_set(text) } else { stems }
}

impl Overview {
    /// For reading: themes, topics with numbered sources, sources.
    pub fn render(&self, heading: &str) -> String {
        let mut text = String::from(heading);
        if !self.themes.is_empty() {
            // Writing into a String cannot fail.
            let _ = write!(text, "\n\nThemes: {}.", self.themes.join(", "));
        }
        let named = self.topics.len() > 1;
        for topic in &self.topics {
            text.push_str("\n\n");
            if named {
                let _ = writeln!(text, "{}", topic.name.as_deref().unwrap_or("Also"));
            }
            let points: Vec<String> = topic.points.iter().map(|p| format!("- {} [{}]", p.text, p.source)).collect();
            text.push_str(&points.join("\n"));
        }
        if !self.sources.is_empty() {
            text.push_str("\n\nSources");
            for (at, source) in self.sources.iter().enumerate() {
                let title = source.title.as_ref().map(|title| format!(" ({title})")).unwrap_or_default();
                let _ = write!(text, "\n[{}] {}{title}", at + 1, source.document);
            }
        }
        text
    }
}
