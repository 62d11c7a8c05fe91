//! The digest of digests: what the documents are about, the sentences that say most of it,
//! grouped by topic, and where they come from.

use std::collections::HashSet;
use std::fmt::Write;

use serde::Serialize;

use super::collection::{Candidate, Collection, alike, word_set};
use super::words::Language;

/// Weight of relevance against repetition.
const RELEVANCE: f32 = 0.65;
const TOPICS_MAX: usize = 7;
const THEMES_MAX: usize = 10;
/// Words (as stems) that name the form of a text and no matter.
const PLAIN: &[&str] = &[
    "listing", "figur", "tabl", "chapter", "section", "exampl", "cod", "main", "src", "html", "pag", "lin", "doc",
    "document", "file", "fil", "fold", "nam", "run", "set", "add", "creat", "writ", "read", "text", "thing", "number",
    "valu", "typ", "list", "default", "follow", "http", "https", "www", "com", "org", "github", "todo", "start",
    "find", "chang", "need", "support", "provid", "includ", "contain", "return", "specify", "defin", "version",
    "option",
];
/// Points under one topic.
const TOPIC_POINTS_MAX: usize = 5;

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
        let themes = self.themes();
        let grouped = self.group(&picked, &themes);
        let mut sources: Vec<Source> = Vec::new();
        let topics = grouped
            .into_iter()
            .map(|(name, members)| Topic {
                name,
                points: members
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
        Overview { themes: themes.into_iter().map(|(_, word)| word).take(THEMES_MAX).collect(), topics, sources }
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

    /// Terms that tell most about the collection, pairs before their parts, most telling first.
    fn themes(&self) -> Vec<(String, String)> {
        let mut order: Vec<(&String, f32)> = self
            .terms
            .iter()
            .map(|(stem, _)| (stem, self.telling(stem) * if stem.contains(' ') { 1.3 } else { 1.0 }))
            .filter(|(stem, telling)| *telling > 0.0 && !stem.split(' ').any(|part| PLAIN.contains(&part)))
            .collect();
        order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
        let mut themes: Vec<(String, String)> = Vec::new();
        for (stem, _) in order {
            let covered = |known: &str| {
                known.split(' ').any(|part| part == stem) || stem.split(' ').filter(|p| *p == known).count() > 0
            };
            if themes.iter().any(|(known, _)| covered(known)) {
                continue;
            }
            themes.push((stem.clone(), self.terms[stem].word.clone()));
            if themes.len() == 4 * THEMES_MAX {
                break;
            }
        }
        themes
    }

    /// Puts the picked sentences under the themes they or their documents' titles speak of; each
    /// under one. The theme that gathers most goes first.
    fn group(&self, picked: &[(usize, f32)], themes: &[(String, String)]) -> Vec<(Option<String>, Vec<(usize, f32)>)> {
        let language = self.language();
        let speaks: Vec<Vec<bool>> = themes
            .iter()
            .map(|(stem, _)| picked.iter().map(|(at, _)| self.candidates[*at].speaks_of(stem, language)).collect())
            .collect();
        let mut free = vec![true; picked.len()];
        let mut groups: Vec<(Option<String>, Vec<(usize, f32)>)> = Vec::new();
        while groups.len() < TOPICS_MAX {
            let gain =
                |theme: usize| speaks[theme].iter().zip(&free).filter(|(speaks, free)| **speaks && **free).count();
            // Of themes that gather the same, the more telling one: it comes first.
            let best = (0..themes.len()).rev().max_by_key(|theme| gain(*theme).min(TOPIC_POINTS_MAX));
            let Some(best) = best.filter(|theme| gain(*theme) >= 2) else { break };
            let places: Vec<usize> =
                (0..picked.len()).filter(|at| free[*at] && speaks[best][*at]).take(TOPIC_POINTS_MAX).collect();
            places.iter().for_each(|at| free[*at] = false);
            groups.push((Some(capital(&themes[best].1)), places.into_iter().map(|at| picked[at]).collect()));
        }
        if groups.len() < 2 {
            return if picked.is_empty() { Vec::new() } else { vec![(None, picked.to_vec())] };
        }
        let left: Vec<(usize, f32)> = picked.iter().zip(&free).filter(|(_, free)| **free).map(|(p, _)| *p).collect();
        if !left.is_empty() {
            groups.push((None, left));
        }
        groups
    }
}

impl Candidate {
    fn speaks_of(&self, stem: &str, language: Language) -> bool {
        speaks_of(&self.text, stem, language)
            || self.title.as_deref().is_some_and(|title| speaks_of(title, stem, language))
    }
}

fn speaks_of(text: &str, stem: &str, language: Language) -> bool {
    let stems = language.stems(text);
    let parts: Vec<&str> = stem.split(' ').collect();
    stems.windows(parts.len()).any(|window| window.iter().zip(&parts).all(|(a, b)| a == b))
}

fn content_set(text: &str, language: Language) -> HashSet<String> {
    let stems: HashSet<String> = language.stems(text).into_iter().collect();
    if stems.is_empty() { word_set(text) } else { stems }
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
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
