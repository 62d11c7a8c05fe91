//! Live streams of conversations: over all reconnections a follower got each record of the
//! transcript once, in order, to the end.

use super::super::Findings;
use crate::seen::talk::Talk;

pub fn check(talk: &Talk, findings: &mut Findings) {
    let (id, Some(stream)) = (Some(talk.id.as_str()), &talk.stream) else { return };
    let live: Vec<u64> = stream.items.iter().map(|heard| heard.offset).collect();
    let whole: Vec<u64> = talk.said.iter().map(|said| said.offset).collect();
    let ordered = live.windows(2).all(|pair| pair[0] < pair[1]);
    findings.expect("talk stream repeats", id, ordered, || format!("its places do not grow: {live:?}"));
    if let Some(at) = live.iter().zip(&whole).position(|(live, whole)| live != whole) {
        let what = format!("place {} comes where {} should", live[at], whole[at]);
        findings.add("talk stream differs", id, what);
    }
    findings.expect("talk stream incomplete", id, stream.ended && live.len() == whole.len(), || {
        let end = if stream.ended { "an end" } else { "no end" };
        format!("{} of {} records arrived, and {end}", live.len(), whole.len())
    });
    let said = |offset: u64| talk.said.iter().find(|said| said.offset == offset && said.event == "utterance");
    let wrong = stream.items.iter().filter(|heard| heard.kind == "message");
    for heard in wrong.filter(|heard| said(heard.offset).is_none_or(|said| said.id != heard.what)) {
        let what = format!("{} was told at place {}, where it is not now", heard.what, heard.offset);
        findings.add("talk stream differs", id, what);
    }
}
