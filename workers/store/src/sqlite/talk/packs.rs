//! What is added to conversations, as parameters.

use schemas::conversation::Conversation;
use schemas::id::Namespace;
use schemas::json::Json;
use schemas::limits::OPERATION_WAIT_MS_MAX;

use super::super::pack::Pack;
use crate::talking::{Additions, Said};

pub(super) fn opened(additions: &Additions<'_>) -> Pack {
    let mut pack = Pack::default();
    for (namespace, new) in &additions.opened {
        pack.row(|row| {
            row.id(namespace.as_str()).id(new.conversation_id.as_str()).int(new.created_at_ms).int(new.updated_at_ms);
            row.id(new.status.as_str()).id(new.visibility.as_str()).text(&new.created_by);
            row.opt_text(new.subject_id.as_deref()).text(Json::of(new).as_str());
        });
    }
    pack
}

pub(super) fn tags(additions: &Additions<'_>) -> Pack {
    let mut pack = Pack::default();
    for (namespace, new) in &additions.opened {
        tags_of(&mut pack, namespace, new);
    }
    pack
}

pub(super) fn tags_of(pack: &mut Pack, namespace: &Namespace, conversation: &Conversation) {
    for tag in &conversation.tags {
        pack.row(|row| {
            row.id(namespace.as_str()).id(conversation.conversation_id.as_str());
            row.int(conversation.created_at_ms).text(tag);
        });
    }
}

pub(super) fn joined(additions: &Additions<'_>) -> Pack {
    let mut pack = Pack::default();
    for joined in &additions.joined {
        let new = &joined.participant;
        pack.row(|row| {
            row.id(joined.place.0.as_str()).id(joined.place.1.as_str()).id(new.participant_id.as_str());
            row.opt_id(new.user_id.as_ref().map(|id| id.as_str()));
            row.opt_id(new.agent_id.as_ref().map(|id| id.as_str()));
            row.opt_id(new.session_id.as_ref().map(|id| id.as_str()));
            row.int(joined.opened_at_ms).int(new.joined_at_ms).text(Json::of(new).as_str());
            row.int(i64::from(joined.at_creation));
        });
    }
    pack
}

/// Records that may be in their logs already.
pub(super) fn records(said: &[Said<'_>]) -> Pack {
    let mut pack = Pack::default();
    for one in said {
        pack.row(|row| {
            row.id(one.place.0.as_str()).id(one.place.1.as_str()).text(&one.record.id);
        });
    }
    pack
}

pub(super) fn placed(additions: &Additions<'_>) -> Pack {
    let mut pack = Pack::default();
    for placed in &additions.placed {
        let record = placed.record;
        pack.row(|row| {
            row.id(placed.place.0.as_str()).id(placed.place.1.as_str()).int(placed.offset as i64);
            row.id(record.kind.as_str()).opt_id(record.turn_id.as_ref().map(|id| id.as_str()));
            row.opt_id(record.agent_id.as_ref().map(|id| id.as_str()));
            row.opt_id(record.session_id.as_ref().map(|id| id.as_str()));
            row.int(record.at_ms).text(&record.id).text(record.body.as_str());
        });
    }
    pack
}

pub(super) fn ends(additions: &Additions<'_>, now_ms: i64) -> Pack {
    let mut pack = Pack::default();
    for (place, last_offset) in additions.ends() {
        pack.row(|row| {
            row.id(place.0.as_str()).id(place.1.as_str()).int(last_offset as i64).int(now_ms);
        });
    }
    pack
}

pub(super) fn spent(additions: &Additions<'_>) -> Pack {
    let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let mut pack = Pack::default();
    for ((namespace, shard), spent) in additions.spent() {
        pack.row(|row| {
            row.id(namespace.as_str()).int(i64::from(shard.0));
            row.int(whole(spent.tokens)).int(whole(spent.cost_nanos)).int(whole(spent.calls));
        });
    }
    pack
}

pub(super) fn turns(additions: &Additions<'_>) -> Pack {
    let mut pack = Pack::default();
    for (namespace, turn) in &additions.turns {
        pack.row(|row| {
            row.id(namespace.as_str()).id(turn.turn_id.as_str()).id(turn.conversation_id.as_str());
            row.id(turn.session_id.as_str()).id(turn.status.as_str()).int(turn.created_at_ms);
            row.text(Json::of(*turn).as_str());
        });
    }
    pack
}

pub(super) fn operations(additions: &Additions<'_>) -> Pack {
    let mut pack = Pack::default();
    for (namespace, operation) in &additions.operations {
        pack.row(|row| {
            row.id(namespace.as_str()).id(operation.operation_id.as_str()).id(operation.conversation_id.as_str());
            row.id(operation.session_id.as_str()).id(operation.turn_id.as_str()).id(operation.kind.as_str());
            row.id(operation.state.as_str()).int(i64::from(operation.attempt));
            row.int(i64::try_from(operation.timeout_ms).unwrap_or(i64::MAX));
            row.int(operation.created_at_ms).int(operation.due_at_ms).opt_int(operation.until_ms);
            row.opt_int(operation.wait_ms.map(|ms| ms.min(OPERATION_WAIT_MS_MAX) as i64));
            row.text(&operation.pool).opt_text(operation.claimed_by.as_deref());
            row.opt_text(operation.error.as_deref()).text(Json::of(operation).as_str());
        });
    }
    pack
}

pub(super) fn ended(additions: &Additions<'_>) -> Pack {
    let mut pack = Pack::default();
    for (namespace, id, state) in &additions.ended {
        pack.row(|row| {
            row.id(namespace.as_str()).id(id.as_str()).id(state.as_str());
        });
    }
    pack
}
