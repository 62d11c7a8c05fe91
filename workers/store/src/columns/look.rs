//! Rows that say how a conversation stands. Their column `found` says of what they are.

use domain::failure::Failure;
use domain::ports::{Look, LookQuery};
use schemas::conversation::{Conversation, LogKind, LogRow, Turn};

use super::talk::{conversation, log_row, turn};
use super::{Columns, bad_value};

/// The kinds of records that are asked for.
pub(crate) fn kinds(query: &LookQuery) -> Vec<&'static str> {
    let kinds: &[LogKind] = if query.log.kinds.is_empty() { &LogKind::ALL } else { &query.log.kinds };
    kinds.iter().map(|kind| kind.as_str()).collect()
}

/// `None`: there is no such conversation.
pub(crate) fn look(rows: &[impl Columns]) -> Result<Option<Look>, Failure> {
    let mut one: Option<Conversation> = None;
    let (mut active, mut page, mut ended): (Vec<Turn>, Vec<LogRow>, Vec<Turn>) = Default::default();
    for row in rows {
        match row.text("found")? {
            "active" => active.push(turn(row)?),
            "conversation" => one = Some(conversation(row)?),
            "record" => page.push(log_row(row)?),
            "ended" => ended.push(turn(row)?),
            other => return Err(bad_value("found", other)),
        }
    }
    let by_age = |turn: &Turn| (turn.created_at_ms, turn.turn_id.clone());
    active.sort_by_key(by_age);
    ended.sort_by_key(by_age);
    page.sort_by_key(|row| row.offset);
    // One that ended while this was read is told of the next time.
    ended.retain(|turn| active.iter().all(|one| one.turn_id != turn.turn_id));
    Ok(one.map(|conversation| Look { active, conversation, page, ended }))
}
