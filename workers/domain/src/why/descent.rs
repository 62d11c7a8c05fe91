//! From a session to those that it waits for, down to the last: each is explained by itself, and told behind what
//! waits for it.

use std::collections::BTreeSet;

use schemas::api::{WhyBody, WhyLink};
use schemas::id::SessionId;
use schemas::session::{Cause, SessionStatus};

use super::{Facts, explain};
use crate::converse::works_on;

/// Sessions that are looked at beside the first, and how far below it: agents call one another less deep.
const SESSIONS_MAX: usize = 32;
const DEPTH_MAX: usize = 16;

/// A session that is to be looked at.
#[derive(Debug)]
struct Step {
    id: SessionId,
    /// Who waits for it: the first session, and so on down to its caller.
    callers: Vec<SessionId>,
}

/// The session at the end of the chain, as far as it is known.
#[derive(Debug)]
struct Last {
    id: SessionId,
    depth: usize,
    summary: String,
    remedy: Option<String>,
}

/// The chain of a session on its way down. [`Descent::below`] says which session to look at next; the answer goes
/// to [`Descent::meets`] or [`Descent::misses`].
#[derive(Debug)]
pub struct Descent {
    body: WhyBody,
    /// The next one last.
    next: Vec<Step>,
    /// Which one is looked at.
    current: Option<Step>,
    seen: BTreeSet<SessionId>,
    last: Option<Last>,
    left_out: usize,
}

impl Descent {
    /// Begins with the session that is asked about.
    pub fn new(facts: &Facts<'_>) -> Self {
        let body = explain(facts);
        let first = body.session_id.clone();
        let seen = BTreeSet::from([first.clone()]);
        let mut descent = Self { body, next: Vec::new(), current: None, seen, last: None, left_out: 0 };
        descent.follow(facts, &[first]);
        descent
    }

    /// The session to look at next, if there is one.
    pub fn below(&mut self) -> Option<SessionId> {
        while let Some(step) = self.next.pop() {
            if step.callers.contains(&step.id) {
                let detail = format!("it waits for session {}, which waits for it; deadlines end that", step.id);
                self.link(step.callers.last().unwrap_or(&step.id), "cycle", detail);
            } else if self.seen.len() > SESSIONS_MAX || step.callers.len() > DEPTH_MAX {
                self.left_out += 1;
            } else if self.seen.insert(step.id.clone()) {
                let id = step.id.clone();
                self.current = Some(step);
                return Some(id);
            }
        }
        None
    }

    /// It is there, and stands like this.
    pub fn meets(&mut self, facts: &Facts<'_>) {
        let Some(Step { id, mut callers }) = self.current.take() else { return };
        let WhyBody { summary, chain, remedy, .. } = explain(facts);
        self.link(&id, "session", format!("{id}: {summary}"));
        if facts.row.head.status.is_final() {
            // It answers as it ends, so the answer is under way or lost.
            let detail = "its answer has not come; if it does not, the auditor ends the call".to_owned();
            self.link(&id, "answer", detail);
            self.ends(id, callers.len(), summary, None);
            return;
        }
        self.body.chain.extend(chain.into_iter().map(|link| WhyLink { session_id: Some(id.clone()), ..link }));
        self.ends(id.clone(), callers.len(), summary, remedy);
        callers.push(id);
        self.follow(facts, &callers);
    }

    /// There is no such session.
    pub fn misses(&mut self) {
        let Some(Step { id, callers }) = self.current.take() else { return };
        let summary = "It does not exist.".to_owned();
        self.link(&id, "session", format!("{id}: {summary} The auditor ends the call."));
        self.ends(id, callers.len(), summary, None);
    }

    /// The whole chain. What is to be done is said of the first session, else of the last.
    pub fn finish(mut self) -> WhyBody {
        if self.left_out > 0 {
            let detail = format!("{} more sessions are waited for and not shown; ask about them", self.left_out);
            self.body.chain.push(WhyLink {
                what: "more".to_owned(),
                detail,
                since: None,
                until: None,
                session_id: None,
            });
        }
        if let Some(Last { id, summary, remedy, .. }) = self.last {
            self.body.summary = format!("{} Session {id} is at the end of the chain: {summary}", self.body.summary);
            self.body.remedy = self.body.remedy.or(remedy.map(|remedy| format!("Of session {id}: {remedy}")));
        }
        self.body
    }

    fn link(&mut self, id: &SessionId, what: &str, detail: String) {
        let session_id = Some(id.clone());
        self.body.chain.push(WhyLink { what: what.to_owned(), detail, since: None, until: None, session_id });
    }

    /// The deepest one counts; of several, the first.
    fn ends(&mut self, id: SessionId, depth: usize, summary: String, remedy: Option<String>) {
        if self.last.as_ref().is_none_or(|last| last.depth < depth) {
            self.last = Some(Last { id, depth, summary, remedy });
        }
    }

    /// Notes whom a session waits for. `callers`: itself, behind those that wait for it.
    fn follow(&mut self, facts: &Facts<'_>, callers: &[SessionId]) {
        let head = &facts.row.head;
        if head.status != SessionStatus::Running || head.cause != Cause::Operation {
            return;
        }
        // The oldest call is looked at first.
        for id in facts.operations.iter().rev().filter_map(works_on) {
            self.next.push(Step { id, callers: callers.to_vec() });
        }
    }
}
