//! Breaks what was seen of journals, logs and answers while the broker is away.

use super::{Break, talk};
use crate::check::{accepting, messages};
use crate::seen::Seen;
use crate::seen::journal::Ran;

/// None if there is nothing to break.
pub fn apply(what: Break, seen: &mut Seen) -> Option<()> {
    match what {
        Break::LateCommit => {
            let commits = &mut seen.journal.as_mut()?.commits;
            let last = commits.iter().map(|one| one.to_seq).max()?;
            // Its term is over: another one of its shard has committed since.
            let is_over = |at: &usize| {
                let old = &commits[*at];
                commits.iter().any(|one| one.shard == old.shard && one.epoch > old.epoch)
            };
            let at = (0..commits.len()).find(is_over)?;
            commits[at].to_seq = last + 1;
        }
        Break::DoubleCommit => {
            let commits = &mut seen.journal.as_mut()?.commits;
            let again = commits.last()?.clone();
            commits.push(again);
        }
        Break::SecondProcess => {
            // All steps of `count` succeed.
            let counts = |id: &str| seen.sessions.iter().any(|one| one.id == id && one.moniker == "count");
            let mut commits = seen.journal.as_ref()?.commits.iter();
            let several = commits.find(|one| one.last > one.first && counts(&one.session))?.clone();
            let by = |process: &str, first, last| {
                let (process, session) = (process.to_owned(), several.session.clone());
                Ran { process, session, first, last }
            };
            let ran = &mut seen.journal.as_mut()?.ran;
            ran.retain(|steps| steps.session != several.session);
            ran.extend([by("one", 0, several.first), by("another", several.first + 1, several.last)]);
        }
        Break::UnrunStep => seen.journal.as_mut()?.ran.clear(),
        Break::SlowAccepting => {
            if !accepting::says_something(accepting::during(seen).0) {
                return None;
            }
            let within = |at_ms: i64| seen.outages.iter().any(|one| (one.from_ms..one.to_ms).contains(&at_ms));
            seen.posts.iter_mut().filter(|post| within(post.at_ms)).for_each(|post| post.took_ms = 1_500);
        }
        Break::Flood => {
            let said = seen.said.first_mut()?;
            said.lines += messages::LINES_MAX;
        }
        Break::Chatter => seen.said.first_mut()?.lines += messages::SAME_MAX,
        Break::StrayError => {
            let begin = seen.faults.iter().map(|fault| fault.from_ms).min()?;
            let said = seen.said.first_mut()?;
            (said.at_ms, said.error) = (begin - 1, true);
        }
        // Of conversations.
        _ => talk::apply(what, seen)?,
    }
    Some(())
}
