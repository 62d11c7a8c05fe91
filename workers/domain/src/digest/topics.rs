//! Topics of a collection: the terms that tell most about it, and which sentences speak of them.

use super::collection::{Candidate, Collection};
use super::words::Language;

const TOPICS_MAX: usize = 7;
/// Points under one topic.
const TOPIC_POINTS_MAX: usize = 5;
/// Themes that are tried as topics.
const THEMES_TRIED: usize = 40;

/// Words (as stems) that name the form of a text, or what any text does, and no matter.
const PLAIN: &str = "listing figur tabl chapter section exampl cod main src html pag lin doc document file fil fold nam \
    run set add creat writ read text thing number valu typ list default follow http https www com org github todo start \
    find chang need support provid includ contain return specify defin version option implement result search method \
    call mak allow requir handl pas pass input output build perform appear describ mean case cas part form kind point \
    order time tim way problem note person memb member copy chec check argument paramet parameter field item element \
    content inform information detail introduction overview summary question answer step word reference";

/// A term that tells much about the collection.
pub struct Theme {
    stem: String,
    /// How it is written.
    pub word: String,
    telling: f32,
}

/// Candidates (by number, with their scores) under one name.
pub struct Group {
    pub name: Option<String>,
    pub members: Vec<(usize, f32)>,
}

/// The themes, most telling first; pairs stand for their parts.
pub fn themes(all: &Collection) -> Vec<Theme> {
    let plain = |stem: &str| stem.split(' ').any(|part| PLAIN.split_whitespace().any(|plain| plain == part));
    let mut order: Vec<(&String, f32)> = all
        .terms
        .keys()
        .map(|stem| (stem, all.telling(stem) * if stem.contains(' ') { 1.3 } else { 1.0 }))
        .filter(|(stem, telling)| *telling > 0.0 && !plain(stem))
        .collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let mut themes: Vec<Theme> = Vec::new();
    for (stem, telling) in order {
        let shares = |known: &Theme| {
            known.stem.split(' ').any(|part| part == stem) || stem.split(' ').any(|part| part == known.stem)
        };
        if !themes.iter().any(shares) {
            themes.push(Theme { stem: stem.clone(), word: all.terms[stem].word.clone(), telling });
        }
        if themes.len() == THEMES_TRIED {
            break;
        }
    }
    themes
}

/// Puts the picked sentences under the themes that they or their documents' titles speak of; each
/// under one. A theme that gathers much and tells much goes first.
pub fn group(all: &Collection, picked: &[(usize, f32)], themes: &[Theme]) -> Vec<Group> {
    let language = all.language();
    let speaks: Vec<Vec<bool>> = themes
        .iter()
        .map(|theme| picked.iter().map(|(at, _)| all.candidates[*at].speaks_of(&theme.stem, language)).collect())
        .collect();
    let mut free = vec![true; picked.len()];
    let mut groups: Vec<Group> = Vec::new();
    while groups.len() < TOPICS_MAX {
        let gathers =
            |theme: usize| speaks[theme].iter().zip(&free).filter(|(speaks, free)| **speaks && **free).count();
        let worth = |theme: usize| gathers(theme).min(TOPIC_POINTS_MAX) as f32 * themes[theme].telling;
        let fit = (0..themes.len()).filter(|theme| gathers(*theme) >= 2);
        let Some(best) = fit.max_by(|a, b| worth(*a).total_cmp(&worth(*b)).then(b.cmp(a))) else { break };
        let places: Vec<usize> =
            (0..picked.len()).filter(|at| free[*at] && speaks[best][*at]).take(TOPIC_POINTS_MAX).collect();
        places.iter().for_each(|at| free[*at] = false);
        let members = places.into_iter().map(|at| picked[at]).collect();
        groups.push(Group { name: Some(capital(&themes[best].word)), members });
    }
    if groups.len() < 2 {
        return if picked.is_empty() { Vec::new() } else { vec![Group { name: None, members: picked.to_vec() }] };
    }
    let left: Vec<(usize, f32)> = picked.iter().zip(&free).filter(|(_, free)| **free).map(|(p, _)| *p).collect();
    if !left.is_empty() {
        groups.push(Group { name: None, members: left });
    }
    groups
}

impl Candidate {
    fn speaks_of(&self, stem: &str, language: Language) -> bool {
        let has = |text: &str| {
            let stems = language.stems(text);
            let parts: Vec<&str> = stem.split(' ').collect();
            stems.windows(parts.len()).any(|window| window.iter().zip(&parts).all(|(a, b)| a == b))
        };
        has(&self.text) || self.title.as_deref().is_some_and(has)
    }
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
