//! The script file: rules in order, each with conditions and replies.

use std::path::PathBuf;

use domain::chat::Role;
use serde::Deserialize;

use super::asked::Asked;
use super::reply::Reply;
use super::template::Facts;
use super::token_of;
use crate::documents::glob::Glob;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// File that gets one JSON line per request, relative to the script.
    #[serde(default)]
    pub record: Option<PathBuf>,
    #[serde(default)]
    pub rules: Vec<Rule>,
    /// The reply when no rule fits; without it the request fails.
    #[serde(default)]
    pub otherwise: Option<Reply>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    #[serde(default)]
    pub when: When,
    /// How often the rule answers; then the rules after it get their chance.
    #[serde(default)]
    pub times: Option<u64>,
    #[serde(default)]
    reply: Option<Reply>,
    /// Several replies, used in turn by the number of the step, from the start again at the end.
    #[serde(default)]
    replies: Vec<Reply>,
}

/// Conditions; all that are given must hold.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// Texts that the prompt contains.
    #[serde(default)]
    contains: OneOrMany,
    /// Texts that the instructions contain.
    #[serde(default)]
    system: OneOrMany,
    /// Pattern for the results of tools that are new to the model; without any it does not fit.
    #[serde(default)]
    result: Option<String>,
    /// Who spoke last: `user`, `tool` or `assistant`.
    #[serde(default)]
    last: Option<Role>,
    /// Whether the model may call tools.
    #[serde(default)]
    tools: Option<bool>,
    /// Pattern for the whole prompt: `*`, `?`, `[a-z]`, `{a,b}`.
    #[serde(default)]
    glob: Option<String>,
    /// Pattern for the step token of the frame.
    #[serde(default)]
    step: Option<String>,
    /// Name of the model profile.
    #[serde(default)]
    profile: Option<String>,
    /// Only the n-th request that fits the other conditions, counted from 1.
    #[serde(default)]
    pub call: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    #[default]
    None,
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn all(&self) -> &[String] {
        match self {
            Self::None => &[],
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }
}

impl Script {
    /// # Errors
    /// What is wrong and where: line and column, or the path of the field.
    pub fn parse(text: &str) -> Result<Self, String> {
        let script: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        for (number, rule) in script.rules.iter().enumerate() {
            rule.check().map_err(|problem| format!("rules[{number}]{problem}"))?;
        }
        if let Some(reply) = &script.otherwise {
            reply.check().map_err(|problem| format!("otherwise: {problem}"))?;
        }
        if script.rules.is_empty() && script.otherwise.is_none() {
            return Err("the script has neither rules nor otherwise, so it cannot answer anything".to_owned());
        }
        Ok(script)
    }
}

impl Rule {
    fn check(&self) -> Result<(), String> {
        if self.reply.is_some() != self.replies.is_empty() {
            return Err(": give either reply or replies".to_owned());
        }
        if self.times == Some(0) {
            return Err(".times: must be at least 1".to_owned());
        }
        if self.when.call == Some(0) {
            return Err(".when.call: counts from 1".to_owned());
        }
        let patterns = [("glob", &self.when.glob), ("step", &self.when.step), ("result", &self.when.result)];
        for (name, pattern) in patterns {
            if let Some(Err(problem)) = pattern.as_deref().map(Glob::text) {
                return Err(format!(".when.{name}: {problem}"));
            }
        }
        for (number, reply) in self.replies.iter().enumerate() {
            reply.check().map_err(|problem| format!(".replies[{number}]: {problem}"))?;
        }
        self.reply.as_ref().map_or(Ok(()), |reply| reply.check().map_err(|problem| format!(".reply: {problem}")))
    }

    /// The reply for the n-th step, n from 1.
    pub fn reply_for(&self, n: u64) -> Option<&Reply> {
        let turn = n.saturating_sub(1) % (self.replies.len() as u64).max(1);
        self.reply.as_ref().or_else(|| self.replies.get(turn as usize))
    }
}

impl When {
    pub fn fits(&self, asked: &Asked, facts: &Facts) -> bool {
        let matches = |pattern: &Option<String>, text: &str| match pattern {
            None => true,
            Some(pattern) => Glob::text(pattern).is_ok_and(|glob| glob.matches(text)),
        };
        let contains = |texts: &OneOrMany, whole: &str| texts.all().iter().all(|text| whole.contains(text.as_str()));
        contains(&self.contains, &asked.prompt)
            && contains(&self.system, &asked.system)
            && matches(&self.glob, &asked.prompt)
            && matches(&self.step, token_of(facts.frame.as_ref()))
            && (self.result.is_none() || !asked.results.is_empty())
            && matches(&self.result, &asked.results)
            && self.last.is_none_or(|last| asked.last == last)
            && self.tools.is_none_or(|may| asked.tools == may)
            && self.profile.as_ref().is_none_or(|profile| asked.profile.as_ref() == Some(profile))
    }
}
