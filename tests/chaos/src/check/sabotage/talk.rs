//! Breaks what was seen of conversations.

use super::Break;
use crate::seen::talk::{Asked, Talk, Turn};
use crate::seen::{Seen, Stream, Told};

/// None if there is nothing to break.
pub fn apply(what: Break, seen: &mut Seen) -> Option<()> {
    match what {
        Break::LostPost => {
            let (talk, id) = posted(seen)?;
            talk.said.retain(|said| said.id != id);
        }
        Break::DoublePost => {
            let (talk, id) = posted(seen)?;
            let said = talk.said.iter().find(|said| said.id == id)?.clone();
            talk.said.push(said);
        }
        Break::TalkGap => seen.talks.first_mut()?.last_offset += 1,
        Break::OpenTurn => turn(seen, |_| true)?.status = "active".into(),
        Break::LostAnswer => {
            let turn = turn(seen, |turn| turn.status == "completed")?;
            let id = format!("{}.m{}", turn.id, turn.counted);
            for talk in &mut seen.talks {
                talk.said.retain(|said| said.id != id);
            }
        }
        Break::LostResult => results(seen)?.clear(),
        Break::DoubleResult => {
            let results = results(seen)?;
            results.push(results.first()?.clone());
        }
        Break::DoubleTool => {
            let call = seen.tools.iter().find(|call| call.once)?.clone();
            seen.tools.push(call);
        }
        Break::UnaskedModel => {
            let key = key_of_move(seen)?;
            seen.asked.retain(|asked| asked.key != key);
        }
        Break::OtherQuestion => {
            let key = key_of_move(seen)?;
            seen.asked.push(Asked { key, content: "something else".into() });
        }
        Break::DoubleSpending => turn(seen, |_| true)?.usage.0 += 1,
        Break::TalkStreamGap => drop(stream(seen)?.items.remove(1)),
        Break::TalkStreamRepeat => {
            let items = &mut stream(seen)?.items;
            items.insert(1, items[0].clone());
        }
        Break::StrayCancel => {
            let turn = turn(seen, |turn| turn.status == "completed")?;
            (turn.status, turn.cancelled) = ("failed".into(), true);
        }
        Break::DeniedTool => {
            let called = |seen: &Seen, work: &str| seen.tools.iter().any(|call| call.key.ends_with(work));
            let questions = seen.verdicts.iter().filter(|(_, verdict)| verdict.approved);
            let mut works = questions.filter_map(|(id, _)| Some((id.clone(), id.strip_suffix(".ask")?)));
            let (id, _) = works.find(|(_, work)| called(seen, work))?;
            seen.verdicts.get_mut(&id)?.approved = false;
        }
        Break::LostYes => {
            let heard = seen.verdicts.iter().find(|(_, verdict)| verdict.approved && verdict.heard)?.0;
            let work = heard.strip_suffix(".ask")?.to_owned();
            let has_it = |turn: &Turn| turn.status == "completed" && turn.operations.iter().any(|one| one.id == work);
            turn(seen, has_it)?.operations.retain(|operation| operation.id != work);
        }
        // Of sessions.
        _ => return None,
    }
    Some(())
}

/// A conversation, and the id of a message that was taken.
fn posted(seen: &mut Seen) -> Option<(&mut Talk, String)> {
    seen.talks.iter_mut().find_map(|talk| taken(talk).map(|id| (talk, id)))
}

fn taken(talk: &Talk) -> Option<String> {
    talk.posts.iter().find(|post| post.told == Told::Accepted).map(|post| post.id.clone())
}

fn turn(seen: &mut Seen, fits: impl Fn(&Turn) -> bool) -> Option<&mut Turn> {
    seen.talks.iter_mut().flat_map(|talk| &mut talk.turns).find(|turn| fits(turn))
}

/// The results of a move of a completed turn.
fn results(seen: &mut Seen) -> Option<&mut Vec<crate::seen::talk::ToolEnd>> {
    let completed = |turn: &Turn| turn.status == "completed" && turn.moves.iter().any(|one| !one.results.is_empty());
    turn(seen, completed)?.moves.iter_mut().map(|one| &mut one.results).find(|results| !results.is_empty())
}

/// The key of a request whose repeats must be alike.
fn key_of_move(seen: &mut Seen) -> Option<String> {
    let plain = |turn: &Turn| !turn.moves.is_empty() && turn.operations.iter().all(|operation| !operation.is_async);
    let turn = turn(seen, plain)?;
    Some(format!("{}.{}", turn.id, turn.moves.first()?.number))
}

fn stream(seen: &mut Seen) -> Option<&mut Stream> {
    seen.talks.iter_mut().filter_map(|talk| talk.stream.as_mut()).find(|stream| stream.items.len() > 2)
}
