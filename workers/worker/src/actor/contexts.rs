//! Contexts of turns that this owner has recorded: whoever asks a model next need not read them back.

use std::collections::VecDeque;
use std::sync::Arc;

use domain::converse::{Assembly, SHOWN};
use domain::effect::{AtHand, Effect, TalkWork};
use domain::moniker::Emits;
use domain::session::StepStart;
use schemas::conversation::{LogKind, TurnStatus};
use schemas::id::TurnId;

/// Turns of one session whose contexts are kept.
const KEPT_MAX: usize = 4;
/// Bytes. A longer context takes its time anyway, and is read back.
const BYTES_MAX: usize = 256 << 10;

/// Those of one session, oldest first.
#[derive(Default)]
pub(super) struct Contexts {
    kept: VecDeque<Kept>,
    /// Turns that began here, and that nothing has come to since.
    bare: VecDeque<TurnId>,
}

struct Kept {
    turn: TurnId,
    /// Id of the record that has it.
    record: String,
    context: Arc<Assembly>,
}

/// A context that was recorded just now; without it, if it is not kept.
struct Made {
    turn: TurnId,
    record: String,
    context: Option<Arc<Assembly>>,
}

/// What a step does to contexts, once it is taken.
pub(super) struct Change {
    began: Option<TurnId>,
    made: Option<Made>,
    /// Turns that something has come to, or that have ended.
    touched: Vec<TurnId>,
    ended: Vec<TurnId>,
}

impl Change {
    pub fn of(start: &StepStart, emits: &Emits) -> Self {
        let log = &emits.talk.log;
        let record = log.iter().find(|record| record.kind == LogKind::Assembly);
        let made = record.zip(start.context()).and_then(|(record, context)| {
            let (turn, is_short) = (record.turn_id.clone()?, record.body.as_str().len() <= BYTES_MAX);
            let context = is_short.then(|| context.clone());
            Some(Made { turn, record: record.id.clone(), context })
        });
        let shown = log.iter().filter(|record| SHOWN.contains(&record.kind));
        let ended = emits.talk.turns.iter().filter(|turn| turn.status != TurnStatus::Active);
        Self {
            began: emits.turn.clone().filter(|_| start.has_input()),
            made,
            touched: shown.filter_map(|record| record.turn_id.clone()).collect(),
            ended: ended.map(|turn| turn.turn_id.clone()).collect(),
        }
    }
}

impl Contexts {
    /// Of what this session has in memory; what it has in memory is what its next commit makes durable.
    pub fn take(&mut self, change: Change) {
        let Change { began, made, touched, ended } = change;
        self.bare.extend(began);
        self.bare.retain(|turn| !touched.contains(turn) && !ended.contains(turn));
        while self.bare.len() > KEPT_MAX {
            self.bare.pop_front();
        }
        let anew = made.as_ref().map(|made| &made.turn);
        self.kept.retain(|kept| Some(&kept.turn) != anew && !ended.contains(&kept.turn));
        self.kept
            .extend(made.and_then(|Made { turn, record, context }| Some(Kept { turn, record, context: context? })));
        while self.kept.len() > KEPT_MAX {
            self.kept.pop_front();
        }
    }

    /// Gives a call of a turn what is known of what its model is shown.
    pub fn hand_to(&self, effect: &mut Effect) {
        let Effect::Talk(talk) = effect else { return };
        let (TalkWork::Chat { assembly, .. } | TalkWork::Compact { assembly, .. }) = &talk.what else { return };
        let kept = self.kept.iter().find(|kept| kept.turn == talk.turn);
        let is_meant = |kept: &&Kept| assembly.as_ref().is_none_or(|record| *record == kept.record);
        let is_all = self.bare.contains(&talk.turn);
        talk.at_hand = kept.filter(is_meant).map(|kept| AtHand { context: kept.context.clone(), is_all });
    }
}
