//! `digest`: reads documents one a step and says in their own words what they say; the last step
//! is the digest of digests. Needs no model.

mod progress;

use schemas::frame::{FrameOut, StepToken};
use schemas::problem::{Code, FieldProblem};
use schemas::session::SessionSpec;
use serde_json::{Value, json};

use self::progress::{Note, Progress};
use super::settings::{Settings, brief};
use super::{Decision, Moniker, StepInput};
use crate::digest::digest;
use crate::effect::{Effect, Outcome};

/// Config `{paths, glob?, sentences?}`: files, folders or URLs; which files of the folders;
/// sentences per document.
pub struct Digest;

const PATHS_MAX: usize = 1_000;
const GLOB_BYTES_MAX: usize = 256;
const SENTENCES_DEFAULT: u64 = 3;
const SENTENCES_MAX: u64 = 20;
/// Documents of this size and above are ranked aside: the graph of sentences grows with the square
/// of their number.
const HEAVY_TEXT_BYTES: usize = 32 << 10;

struct Plan {
    paths: Vec<String>,
    glob: Option<String>,
    sentences: usize,
}

impl Moniker for Digest {
    fn name(&self) -> &'static str {
        "digest"
    }

    fn check(&self, spec: &SessionSpec, state: &Value) -> Vec<FieldProblem> {
        let mut settings = Settings::of(spec);
        let plan = plan(&mut settings);
        if plan.paths.is_empty() {
            settings.required("paths", "list files, folders or http(s) addresses to read");
        }
        let mut problems = settings.finish();
        if let Err(problem) = Progress::of(state) {
            problems.push(FieldProblem::new("payload.state", format!("{problem}; leave it out to start anew")));
        }
        problems
    }

    fn is_heavy(&self, input: &StepInput<'_>) -> bool {
        let Some(Outcome::Ok(answer)) = input.outcomes.first() else { return false };
        answer.get("text").and_then(Value::as_str).is_some_and(|text| text.len() >= HEAVY_TEXT_BYTES)
    }

    fn decide(&self, input: &StepInput<'_>) -> Decision {
        let plan = plan(&mut Settings::of(input.spec));
        let progress = match Progress::of(&input.frame.state) {
            Ok(progress) => progress,
            Err(problem) => return Decision::Fail { code: Code::StepFailed, message: format!("state: {problem}") },
        };
        let answer = match input.outcomes.first().map(Outcome::json) {
            None => {
                let effect = Effect::NextDocument { paths: plan.paths, glob: plan.glob, after: progress.after };
                return Decision::Perform(effect);
            }
            Some(Err(failure)) => return Decision::Fail { code: failure.code, message: failure.message },
            Some(Ok(answer)) => answer,
        };
        let step = &input.frame.step;
        if answer.get("done") == Some(&Value::Bool(true)) {
            return finish(closing(step, progress, &plan));
        }
        match Document::of(answer) {
            Some(document) => finish(read(step, progress, &document, plan.sentences)),
            None => Decision::Fail {
                code: Code::ReadFailed,
                message: format!("a document came without name and text: {}", brief(answer)),
            },
        }
    }
}

fn finish(out: FrameOut) -> Decision {
    Decision::Finish { out, took_arrival: false }
}

fn plan(settings: &mut Settings) -> Plan {
    Plan {
        paths: settings.texts("paths", PATHS_MAX),
        glob: settings.text("glob", GLOB_BYTES_MAX),
        sentences: settings.number("sentences", 1, SENTENCES_MAX).unwrap_or(SENTENCES_DEFAULT) as usize,
    }
}

/// A document as the performer gives it: with its text, or with the reason why it has none.
struct Document<'a> {
    name: &'a str,
    text: Result<&'a str, &'a str>,
    index: u64,
    total: u64,
    bytes: u64,
    truncated: bool,
}

impl<'a> Document<'a> {
    fn of(answer: &'a Value) -> Option<Self> {
        let number = |key| answer.get(key).and_then(Value::as_u64).unwrap_or(0);
        let text = match answer.get("skipped").and_then(Value::as_str) {
            Some(reason) => Err(reason),
            None => Ok(answer.get("text")?.as_str()?),
        };
        Some(Self {
            name: answer.get("name")?.as_str()?,
            text,
            index: number("index"),
            total: number("total"),
            bytes: number("bytes"),
            truncated: answer.get("truncated") == Some(&Value::Bool(true)),
        })
    }
}

fn read(step: &StepToken, mut progress: Progress, document: &Document<'_>, sentences: usize) -> FrameOut {
    progress.after = Some(document.name.to_owned());
    let found = document.text.map(|text| digest(text, sentences));
    let found = match found {
        Ok(found) if found.sentences.is_empty() => Err("it holds no running text"),
        other => other,
    };
    let mut data = json!({"document": document.name, "index": document.index, "total": document.total,
        "bytes": document.bytes});
    let (text, notes) = match &found {
        Ok(found) => {
            progress.collection.add(document.name, found);
            data["title"] = json!(found.title);
            data["words"] = found.words.into();
            data["terms"] = found.terms.iter().take(8).map(|term| term.word.clone()).collect();
            data["sentences"] = found
                .sentences
                .iter()
                .map(|s| json!({"text": s.text, "score": s.score, "position": s.position}))
                .collect();
            let said: Vec<&str> = found.sentences.iter().map(|s| s.text.as_str()).collect();
            (
                said.join(" "),
                document.truncated.then(|| "only the beginning was read: the document is too large".to_owned()),
            )
        }
        Err(reason) => {
            progress.skip(Note { document: document.name.to_owned(), reason: (*reason).to_owned() });
            data["skipped"] = (*reason).into();
            (format!("Skipped {}: {reason}.", document.name), Some((*reason).to_owned()))
        }
    };
    let next = format!("doc/{}", progress.read() + 1);
    FrameOut {
        step: step.clone(),
        next_step: StepToken::parse(&next).unwrap_or_else(|_| step.clone()),
        state: json!(progress),
        text: Some(text),
        data: Some(data),
        done: false,
        notes,
    }
}

/// Sentences of the digest of digests: more for more documents, within what one sits down to read.
fn points(sentences: usize, documents: u32) -> usize {
    let wished = 3 * sentences + (f64::from(documents).sqrt() * 1.5) as usize;
    wished.clamp(6, 24).min((3 * documents as usize).max(sentences))
}

/// The last step. Names are cut down to what tells the documents apart.
fn closing(step: &StepToken, progress: Progress, plan: &Plan) -> FrameOut {
    let all = &progress.collection;
    let points = points(plan.sentences, all.documents);
    let mut overview = all.overview(points);
    let names: Vec<&str> = overview.sources.iter().map(|source| source.document.as_str()).collect();
    let prefix = progress::common_folder(&names).to_owned();
    for source in &mut overview.sources {
        source.document.drain(..prefix.len());
    }
    let count = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let mut heading = format!("Digest of {}, {}", count(all.documents.into(), "document"), count(all.words, "word"));
    if !prefix.is_empty() {
        heading.push_str(&format!(", from {prefix}"));
    }
    let mut text = match all.documents {
        0 => "There was nothing to read: no readable document was found.".to_owned(),
        _ => overview.render(&heading),
    };
    if progress.skipped > 0 {
        text.push_str(&format!("\n\nSkipped {}: {}", progress.skipped, progress.skipped_in_words()));
    }
    let data = json!({"documents": all.documents, "words": all.words, "skipped": progress.skipped,
        "skipped_documents": progress.notes, "folder": prefix, "overview": overview});
    FrameOut {
        step: step.clone(),
        next_step: StepToken::parse("end").unwrap_or_else(|_| step.clone()),
        state: json!(progress),
        text: Some(text),
        data: Some(data),
        done: true,
        notes: None,
    }
}

#[cfg(test)]
mod tests;
