//! Query parameters, read one by one while collecting what is wrong with them.

use std::fmt::Display;
use std::str::FromStr;

use axum::extract::{FromRequestParts, Query};
use axum::http::Uri;
use axum::http::request::Parts;
use domain::action::fields::{self, Problems};

use crate::answer::Refused;

/// The parameters of a request. Every read takes what it reads; [`Params::finish`] refuses the rest.
#[derive(Debug, Default)]
pub struct Params {
    pairs: Vec<(String, String)>,
    asked: Vec<&'static str>,
    problems: Problems,
}

/// The first value of a parameter.
pub fn first(uri: &Uri, name: &str) -> Option<String> {
    pairs(uri).into_iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

fn pairs(uri: &Uri) -> Vec<(String, String)> {
    // Decoding is lossy, so nothing that a client sends fails here.
    Query::<Vec<(String, String)>>::try_from_uri(uri).map(|query| query.0).unwrap_or_default()
}

impl Params {
    pub fn of(uri: &Uri) -> Self {
        Self { pairs: pairs(uri), ..Self::default() }
    }

    /// The value of a parameter that may be given once. An empty one counts as absent.
    pub fn text(&mut self, name: &'static str) -> Option<String> {
        let mut values = self.take(name);
        if values.len() > 1 {
            self.problems.add(name, "is given more than once; give it once");
        }
        values.pop()
    }

    /// All values of a parameter, repeated or separated by commas.
    pub fn list(&mut self, name: &'static str) -> Vec<String> {
        let values = self.take(name);
        values.iter().flat_map(|value| value.split(',')).filter(|one| !one.is_empty()).map(str::to_owned).collect()
    }

    /// A parameter with a textual form of its own.
    pub fn parsed<T: FromStr<Err: Display>>(&mut self, name: &'static str) -> Option<T> {
        self.read(name, |text| text.parse().map_err(|error: T::Err| error.to_string()))
    }

    pub fn read<T>(&mut self, name: &'static str, read: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        match read(&self.text(name)?) {
            Ok(value) => Some(value),
            Err(message) => {
                self.problems.add(name, message);
                None
            }
        }
    }

    /// A whole number within the bounds, both included.
    pub fn whole(&mut self, name: &'static str, min: u64, max: u64) -> Option<u64> {
        self.read(name, |text| whole(text, min, max))
    }

    /// The rows of a page.
    pub fn limit(&mut self, default: usize) -> usize {
        let max = schemas::limits::PAGE_MAX as u64;
        self.whole("limit", 1, max).map_or(default, |limit| limit as usize)
    }

    pub fn problem(&mut self, name: &str, message: impl Into<String>) {
        self.problems.add(name, message);
    }

    /// Refuses what is wrong, and parameters that nobody read: most often a typing error.
    pub fn finish(&mut self) -> Result<(), Refused> {
        let rest = std::mem::take(&mut self.pairs);
        for (name, _) in rest {
            let message = if self.asked.is_empty() {
                "is not known; there are no parameters here".to_owned()
            } else {
                fields::unknown(&name, &self.asked).replace("field", "parameter")
            };
            self.problems.add(clip(&name), message);
        }
        std::mem::take(&mut self.problems).into_result().map_err(Refused::from)
    }

    fn take(&mut self, name: &'static str) -> Vec<String> {
        self.asked.push(name);
        let (taken, rest) = std::mem::take(&mut self.pairs).into_iter().partition(|(key, _)| key == name);
        self.pairs = rest;
        Vec::<(String, String)>::into_iter(taken).map(|(_, value)| value).filter(|value| !value.is_empty()).collect()
    }
}

/// A whole number within the bounds, both included; or what is wrong with the text.
pub fn whole(text: &str, min: u64, max: u64) -> Result<u64, String> {
    let number = text.parse().ok().filter(|n| (min..=max).contains(n));
    number.ok_or_else(|| format!("must be a whole number from {min} to {max}, not {:?}", clip(text)))
}

fn clip(text: &str) -> String {
    text.chars().take(64).collect()
}

impl<S: Sync> FromRequestParts<S> for Params {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        Ok(Self::of(&parts.uri))
    }
}
