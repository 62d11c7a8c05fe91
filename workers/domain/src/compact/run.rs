//! The course of a compaction: chunk after chunk, then the older batches, then the result.

use schemas::limits::COMPACT_SUMMARY_BYTES_MAX;

use super::batch::{Batch, label};
use super::split::{Split, split};
use super::{Compacted, Entry, Job, PROMPT, Statistics, Step, context, prompt};
use crate::chat::{ChatRequest, Message, Parameters};
use crate::memory::MemoryKey;

/// The model answered with nothing: there is no summary, and the history stays as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the model's summary is empty")]
pub struct Blank;

/// A compaction that waits for a summary. Dropping it changes nothing.
#[derive(Debug, Clone)]
pub struct Compaction {
    job: Job,
    split: Split,
    /// All batches, oldest first, those of this run included.
    batches: Vec<Batch>,
    /// Labels of batches that are in memory already.
    archived: Vec<String>,
    stage: Stage,
    request: ChatRequest,
}

#[derive(Debug, Clone, PartialEq)]
enum Stage {
    /// So many of the old messages have summaries.
    Messages { done: usize },
    /// Of the oldest `sources` batches, `done` are in `summary`.
    Batches { sources: usize, done: usize, summary: String },
}

/// Two of the same stage ask the same; the job is a constant.
impl PartialEq for Compaction {
    fn eq(&self, other: &Self) -> bool {
        self.batches == other.batches && self.stage == other.stage && self.request == other.request
    }
}

impl Compaction {
    pub(super) fn start(job: Job) -> Step {
        let split = split(&job.history, job.settings.keep_recent as usize);
        if split.old.is_empty() {
            let tokens = tokens(&job, job.history.iter().map(|entry| &entry.message));
            let statistics = Statistics { tokens_before: tokens, tokens_after: tokens, ..Statistics::default() };
            return Step::Done(Box::new(Compacted {
                archive: Vec::new(),
                excluded: Vec::new(),
                context: job.history.into_iter().map(|entry| entry.message).collect(),
                forget: Vec::new(),
                statistics,
            }));
        }
        let mut batches = job.batches.clone();
        batches.sort_by(|a, b| (a.end_ms, a.start_ms, &a.label).cmp(&(b.end_ms, b.start_ms, &b.label)));
        let archived = batches.iter().map(|batch| batch.label.clone()).collect();
        let stage = Stage::Messages { done: 0 };
        let mut run = Self { job, split, batches, archived, stage, request: ChatRequest::default() };
        run.request = run.ask();
        Step::Ask(Box::new(run))
    }

    /// What to ask the model. It has its own, which need not be the agent's (SPEC A-CMP-06).
    pub fn request(&self) -> &ChatRequest {
        &self.request
    }

    /// Goes on with the model's answer.
    ///
    /// # Errors
    /// There is no text in it.
    pub fn summary(mut self, text: &str) -> Result<Step, Blank> {
        let text = bounded(text).ok_or(Blank)?;
        match std::mem::replace(&mut self.stage, Stage::Messages { done: 0 }) {
            Stage::Messages { done } => self.add_batch(done, text),
            Stage::Batches { sources, done, .. } => self.fold_batches(sources, done, text),
        }
        if self.is_complete() {
            return Ok(Step::Done(Box::new(self.finish())));
        }
        self.request = self.ask();
        Ok(Step::Ask(Box::new(self)))
    }

    fn chunk(&self) -> usize {
        (self.job.settings.chunk_size as usize).max(1)
    }

    fn add_batch(&mut self, done: usize, summary: String) {
        let end = (done + self.chunk()).min(self.split.old.len());
        let times = || self.split.old[done..end].iter().map(|at| self.job.history[*at].at_ms);
        let (start_ms, end_ms) = (times().min().unwrap_or_default(), times().max().unwrap_or_default());
        let taken = |text: &str| self.batches.iter().any(|batch| batch.label == text);
        let label = label(&self.job.conversation_id, end_ms, taken);
        self.batches.push(Batch { label, summary, depth: 0, start_ms, end_ms, count: (end - done) as u64 });
        self.stage = Stage::Messages { done: end };
        let (clip_first, clip_last) = self.clip();
        if end == self.split.old.len() && self.batches.len() > clip_first + clip_last + 2 {
            let sources = self.batches.len() - clip_last;
            self.stage = Stage::Batches { sources, done: 0, summary: String::new() };
        }
    }

    fn fold_batches(&mut self, sources: usize, done: usize, summary: String) {
        let done = (done + self.chunk()).min(sources);
        self.stage = Stage::Batches { sources, done, summary };
    }

    fn is_complete(&self) -> bool {
        match &self.stage {
            Stage::Messages { done } => *done == self.split.old.len(),
            Stage::Batches { sources, done, .. } => done == sources,
        }
    }

    fn clip(&self) -> (usize, usize) {
        (self.job.settings.clip_first as usize, self.job.settings.clip_last as usize)
    }

    /// The request of the present stage.
    fn ask(&self) -> ChatRequest {
        let (existing, messages) = match &self.stage {
            Stage::Messages { done } => {
                let end = (done + self.chunk()).min(self.split.old.len());
                let entries = self.split.old[*done..end].iter().map(|at| &self.job.history[*at]);
                (self.existing_summary(), prompt::transcript(entries))
            }
            Stage::Batches { sources, done, summary } => {
                let end = (done + self.chunk()).min(*sources);
                let summaries = self.batches[*done..end].iter().map(|one| format!("{}\n{}", one.header(), one.summary));
                (summary.clone(), summaries.collect::<Vec<_>>().join("\n\n"))
            }
        };
        let template = self.job.prompt.as_deref().unwrap_or(PROMPT);
        let text = prompt::fill(template, &self.job.persona, &existing, &messages);
        let parameters = Parameters {
            max_tokens: Some(self.job.settings.max_summary_tokens),
            temperature: Some(0.0),
            ..Parameters::default()
        };
        ChatRequest { parameters, ..ChatRequest::ask("", text.trim_start()) }
    }

    /// The newest batch; without any, what an earlier summary in the history says.
    fn existing_summary(&self) -> String {
        match (self.batches.last(), self.split.summaries.last()) {
            (Some(batch), _) => batch.summary.clone(),
            (None, Some(at)) => self.job.history[*at].message.plain_text(),
            (None, None) => String::new(),
        }
    }

    fn finish(mut self) -> Compacted {
        let created = self.split.old.len().div_ceil(self.chunk()) as u64;
        let forget = self.join_sources();
        let (clip_first, clip_last) = self.clip();
        let new = self.batches.iter().filter(|batch| !self.archived.contains(&batch.label));
        let archive = new.map(|batch| batch.to_memory(&self.job.conversation_id)).collect();
        let kept = self.split.kept.iter().map(|at| &self.job.history[*at]);
        let mut context = vec![context::message(&self.batches, clip_first, clip_last)];
        context.extend(kept.map(|entry: &Entry| entry.message.clone()));
        let mut excluded = [self.split.summaries, self.split.old.clone()].concat();
        excluded.sort_unstable();
        let statistics = Statistics {
            batches_created: created,
            messages_compressed: self.split.old.len() as u64,
            tokens_before: tokens(&self.job, self.job.history.iter().map(|entry| &entry.message)),
            tokens_after: tokens(&self.job, context.iter()),
        };
        Compacted { archive, excluded, context, forget, statistics }
    }

    /// Puts one batch in the place of those that it was made of; says which of them to forget.
    fn join_sources(&mut self) -> Vec<MemoryKey> {
        let Stage::Batches { sources, summary, .. } = &self.stage else { return Vec::new() };
        let joined: Vec<Batch> = self.batches.drain(..*sources).collect();
        let end_ms = joined.iter().map(|batch| batch.end_ms).max().unwrap_or_default();
        let taken = |text: &str| self.batches.iter().any(|batch| batch.label == text);
        let label = label(&self.job.conversation_id, end_ms, taken);
        // If one of the joined had this label, its memory gets the new content.
        self.archived.retain(|known| *known != label);
        let is_old = |batch: &&Batch| self.archived.contains(&batch.label);
        let forget = joined.iter().filter(is_old).map(|batch| MemoryKey::Label(batch.label.clone())).collect();
        let batch = Batch {
            label,
            summary: summary.clone(),
            depth: 1 + joined.iter().map(|batch| batch.depth).max().unwrap_or_default(),
            start_ms: joined.iter().map(|batch| batch.start_ms).min().unwrap_or_default(),
            end_ms,
            count: joined.iter().map(|batch| batch.count).sum(),
        };
        self.batches.insert(0, batch);
        forget
    }
}

fn tokens<'m>(job: &Job, messages: impl Iterator<Item = &'m Message>) -> u64 {
    messages.map(job.estimate).sum()
}

/// Without blanks around it and within the bound. PostgreSQL's texts hold no NUL.
fn bounded(text: &str) -> Option<String> {
    let text = text.trim().replace('\0', "\u{FFFD}");
    let end = text.floor_char_boundary(COMPACT_SUMMARY_BYTES_MAX);
    (!text.is_empty()).then(|| text[..end].to_owned())
}
