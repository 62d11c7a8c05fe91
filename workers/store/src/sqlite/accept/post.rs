//! A message and the actions that it causes, in one transaction: two messages to the connection's thread,
//! unless an action needs more of conversations than where it is said.

use std::collections::HashMap;

use domain::failure::Failure;
use domain::ports::{Post, Posted, Verdict};
use domain::talk::refusal;
use schemas::action::NewAction;
use schemas::conversation::LogRow;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::super::rows::get;
use super::super::talk;
use super::super::writer::{Statement, Tx, Writer};
use super::sql;
use crate::accepting::Wanted;
use crate::columns::talk::{forum, log_row, place};
use crate::judge::{Aside, Book};
use crate::talking::{Additions, Forum, Place, Said, place as put};

/// What is known of what a post touches.
struct Known {
    forums: HashMap<Place, Forum>,
    /// The record that the log has under this id.
    said: Option<LogRow>,
    book: Book,
}

pub(in super::super) async fn post(writer: &Writer, now_ms: i64, shards: u16, post: &Post) -> Result<Posted, Failure> {
    let actions: Vec<&NewAction> = post.actions.iter().collect();
    let said = Said::of(post);
    let (mut tx, rows) = writer.begin_with(look(post, &said, &actions)).await?;
    let Known { mut forums, said: known, mut book } = match read(&rows) {
        Ok(known) => known,
        Err(failure) => return tx.finish(Err(failure)).await,
    };
    let Some(forum) = forums.get(&said.place) else { return tx.finish(Ok(Posted::NotFound)).await };
    let is_same = known.as_ref().map(|row| row.record.kind == post.record.kind && row.record.body == post.record.body);
    if let Some(refused) = refusal(is_same, forum.status) {
        return tx.finish(Ok(refused.into())).await;
    }
    if let Some(row) = known {
        let verdicts = actions.iter().map(|new| book.told(new)).collect();
        return tx.finish(Ok(Posted::Done { offset: row.offset, verdicts })).await;
    }
    let placed = put(std::slice::from_ref(&said), &mut forums, &Default::default());
    let offset = placed.first().map_or(0, |placed| placed.offset);
    let additions = Additions { placed, ..Additions::default() };
    if Aside::of(&actions).is_needed(&actions) {
        let verdicts = say_and_accept(&mut tx, now_ms, shards, &actions, &additions).await;
        return tx.finish(verdicts.map(|verdicts| Posted::Done { offset, verdicts })).await;
    }
    let verdicts = super::judge(&mut book, now_ms, shards, &actions);
    let script = super::write(sql::WRITE_SAY_AND_COMMIT, now_ms, &actions, &book);
    tx.commit_with(talk::say(script, now_ms, &additions)).await?;
    Ok(Posted::Done { offset, verdicts })
}

/// The message first, so that it stands in the log before what its actions cause.
async fn say_and_accept(
    tx: &mut Tx<'_>,
    now_ms: i64,
    shards: u16,
    actions: &[&NewAction],
    additions: &Additions<'_>,
) -> Result<Vec<Verdict>, Failure> {
    talk::write(tx.connection(), now_ms, additions).await?;
    super::accept(tx.connection(), now_ms, shards, actions).await
}

fn look(post: &Post, said: &Said<'_>, actions: &[&NewAction]) -> Statement {
    let query = super::find(sql::BEGIN_FIND_AND_LOOK, Wanted::of(actions)).bind(talk::keys(&[&said.place]));
    query.bind(post.namespace.to_string()).bind(post.conversation_id.to_string()).bind(post.record.id.clone())
}

fn read(rows: &[SqliteRow]) -> Result<Known, Failure> {
    let (of_actions, of_talk): (Vec<&SqliteRow>, Vec<&SqliteRow>) =
        rows.iter().partition(|row| row.try_get::<&str, _>("found").is_ok());
    let mut known = Known { forums: HashMap::new(), said: None, book: super::read(of_actions)? };
    for row in of_talk {
        match get::<&str>(row, "done")? {
            "forum" => {
                known.forums.insert(place(row)?, forum(row)?);
            }
            _ => known.said = Some(log_row(row)?),
        }
    }
    Ok(known)
}
