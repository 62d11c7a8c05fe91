//! Breaks what was seen, one promise at a time: the checker must notice each of them.

mod proof;
mod talk;

use clap::ValueEnum;

use crate::seen::{Owner, Seen, Session};

/// What is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Break {
    /// A step is committed twice
    DuplicateStep,
    /// A step is missing
    Gap,
    /// An accepted action is not in the ledger
    LostAction,
    /// An accepted action never gets an outcome
    UnprocessedAction,
    /// Two inputs are applied in the wrong order
    SwappedOrder,
    /// An input is applied twice
    DoubleInput,
    /// Guidance is on two steps
    DoubleGuidance,
    /// A step is taken during a pause
    StepWhilePaused,
    /// One epoch of a shard has two owners
    SecondOwner,
    /// A call that must happen at most once arrives twice
    DoubleCall,
    /// A live stream misses an event
    StreamGap,
    /// A live stream brings an event again
    StreamRepeat,
    /// A session waits without a cause
    NoCause,
    /// The state of a session goes back
    LostState,
    /// A shard is left without an owner
    OrphanShard,
    /// A message of a user is gone
    LostPost,
    /// A message of a user is there twice
    DoublePost,
    /// The log of a conversation misses a record
    TalkGap,
    /// A turn never ends
    OpenTurn,
    /// A completed turn has no answer
    LostAnswer,
    /// A call of a tool has no result
    LostResult,
    /// A call of a tool has two results
    DoubleResult,
    /// A tool that must be called at most once is called twice
    DoubleTool,
    /// A reply is recorded that no model gave
    UnaskedModel,
    /// A model is asked again, for something else
    OtherQuestion,
    /// What a call of a model used is counted twice
    DoubleSpending,
    /// The live stream of a conversation misses a record
    TalkStreamGap,
    /// The live stream of a conversation brings a record again
    TalkStreamRepeat,
    /// A turn is cancelled, and nobody wanted that
    StrayCancel,
    /// A tool is called that a person said no to
    DeniedTool,
    /// What a person said yes to is not done
    LostYes,
    /// A step is committed under an epoch that is over
    LateCommit,
    /// A step is committed twice
    DoubleCommit,
    /// Two processes run the steps that are committed in one term
    SecondProcess,
    /// A step is committed that nobody has run
    UnrunStep,
    /// Actions are accepted late while the broker is away
    SlowAccepting,
    /// A process floods its log
    Flood,
    /// An outage is said for each of many things
    Chatter,
    /// A process reports an error while nothing is broken
    StrayError,
}

impl Break {
    /// The rules of which at least one must report it.
    pub fn rules(self) -> &'static [&'static str] {
        match self {
            Self::DuplicateStep => &["step repeated"],
            Self::Gap => &["step missing"],
            Self::LostAction => &["action lost"],
            Self::UnprocessedAction => &["action unprocessed"],
            Self::SwappedOrder => &["inputs out of order"],
            Self::DoubleInput => &["input applied twice"],
            Self::DoubleGuidance => &["guidance"],
            Self::StepWhilePaused => &["step while not running"],
            Self::SecondOwner => &["second owner"],
            Self::DoubleCall => &["call made twice"],
            Self::StreamGap => &["stream has a gap"],
            Self::StreamRepeat => &["stream repeats"],
            Self::NoCause => &["no cause"],
            Self::LostState => &["state lost"],
            Self::OrphanShard => &["shard without owner"],
            Self::LostPost => &["post lost"],
            Self::DoublePost => &["post repeated"],
            Self::TalkGap => &["transcript has a gap"],
            Self::OpenTurn => &["turn not ended"],
            Self::LostAnswer => &["final message"],
            Self::LostResult => &["result lost"],
            Self::DoubleResult => &["result repeated"],
            Self::DoubleTool => &["tool called twice"],
            Self::UnaskedModel => &["model not asked"],
            Self::OtherQuestion => &["model asked otherwise"],
            Self::DoubleSpending => &["spending"],
            Self::TalkStreamGap => &["talk stream differs"],
            Self::TalkStreamRepeat => &["talk stream repeats"],
            Self::StrayCancel => &["turn cancelled"],
            Self::DeniedTool => &["done without a yes"],
            Self::LostYes => &["yes lost"],
            Self::LateCommit => &["committed out of term"],
            Self::DoubleCommit => &["step committed twice"],
            Self::SecondProcess => &["committed by two processes"],
            Self::UnrunStep => &["step from nowhere"],
            Self::SlowAccepting => &["accepting stopped"],
            Self::Flood => &["log flooded"],
            Self::Chatter => &["log repeats itself"],
            Self::StrayError => &["error without a fault"],
        }
    }

    /// Changes what was seen; false if there is nothing to change it in.
    pub fn apply(self, seen: &mut Seen) -> bool {
        self.try_apply(seen).is_some()
    }

    fn try_apply(self, seen: &mut Seen) -> Option<()> {
        match self {
            Self::DuplicateStep => {
                let session = with_steps(seen, "count", 2)?;
                let at = place_of_step(session, 1)?;
                session.items.insert(at, session.items[at].clone());
            }
            Self::Gap => {
                let session = with_steps(seen, "count", 3)?;
                let at = place_of_step(session, 1)?;
                session.items.remove(at);
            }
            Self::LostAction => drop(seen.actions.pop_first()?),
            Self::UnprocessedAction => {
                let row = seen.actions.values_mut().next()?;
                (row.processed, row.outcome) = (false, None);
            }
            Self::SwappedOrder => swap_texts(with_steps(seen, "echo", 2)?)?,
            Self::DoubleInput => {
                let session = with_steps(seen, "echo", 2)?;
                let (first, second) = (place_of_step(session, 0)?, place_of_step(session, 1)?);
                let text = session.items[first].step.as_ref()?.text.clone();
                session.items[second].step.as_mut()?.text = text;
            }
            Self::DoubleGuidance => double_guidance(seen)?,
            Self::StepWhilePaused => {
                let paused = |item: &crate::seen::Item| item.status.as_deref() == Some("paused");
                let session = seen.sessions.iter_mut().find(|s| s.items.iter().any(paused) && s.steps().count() > 0)?;
                let at = session.items.iter().position(paused)?;
                let step = session.items.iter().find(|item| item.step.is_some())?.clone();
                session.items.insert(at + 1, step);
            }
            Self::SecondOwner => {
                let sample = seen.owners.iter().find(|sample| sample.owner.is_some())?.clone();
                seen.owners.push(Owner { owner: Some("somebody-else".into()), ..sample });
            }
            Self::DoubleCall => {
                let call = seen.calls.iter().find(|call| call.once && call.answer != "failed")?.clone();
                seen.calls.push(call);
            }
            Self::StreamGap => drop(seen.streams.iter_mut().find(|s| s.items.len() > 2)?.items.remove(1)),
            Self::StreamRepeat => {
                let items = &mut seen.streams.iter_mut().find(|s| s.items.len() > 2)?.items;
                items.insert(1, items[0].clone());
            }
            Self::NoCause => {
                let waits = |s: &&mut Session| s.idle.as_ref().is_some_and(|idle| idle.status == "running");
                seen.sessions.iter_mut().find(waits)?.idle.as_mut()?.cause = String::new();
            }
            Self::LostState => {
                let session = with_steps(seen, "count", 2)?;
                let at = place_of_step(session, 1)?;
                session.items[at].step.as_mut()?.text = Some("-7".into());
            }
            Self::OrphanShard => seen.fleet.shards.first_mut()?.1 = None,
            // Of the proofs beside, and of conversations.
            _ => proof::apply(self, seen)?,
        }
        Some(())
    }
}

fn with_steps<'s>(seen: &'s mut Seen, moniker: &str, least: usize) -> Option<&'s mut Session> {
    let enough = |session: &&mut Session| session.moniker == moniker && session.steps().count() >= least;
    seen.sessions.iter_mut().find(enough)
}

fn place_of_step(session: &Session, iteration: u64) -> Option<usize> {
    session.items.iter().position(|item| item.step.as_ref().is_some_and(|step| step.iteration == iteration))
}

fn swap_texts(session: &mut Session) -> Option<()> {
    let (a, b) = (place_of_step(session, 0)?, place_of_step(session, 1)?);
    let first = session.items[a].step.as_mut()?.text.take();
    let second = session.items[b].step.as_mut()?.text.take();
    session.items[a].step.as_mut()?.text = second;
    session.items[b].step.as_mut()?.text = first;
    Some(())
}

fn double_guidance(seen: &mut Seen) -> Option<()> {
    let guided = |session: &&mut Session| {
        let mut steps = session.steps();
        steps.any(|step| step.guidance.as_deref().is_some_and(|mark| mark.starts_with("g-"))) && steps.next().is_some()
    };
    let session = seen.sessions.iter_mut().find(guided)?;
    let mark = session.steps().find_map(|step| step.guidance.clone())?;
    let bare = session.items.iter_mut().filter_map(|item| item.step.as_mut()).rfind(|step| step.guidance.is_none())?;
    bare.guidance = Some(mark);
    Some(())
}
