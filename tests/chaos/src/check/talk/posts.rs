//! What a user posted is in the transcript, once, at the place that the answer gave; and nothing else.

use super::super::Findings;
use crate::seen::Told;
use crate::seen::talk::{Posted, Said, Talk};

pub fn check(talk: &Talk, findings: &mut Findings) {
    for post in &talk.posts {
        one(talk, post, findings);
    }
    let users = talk.said.iter().filter(|said| said.sender == "user" && !talk.delegated);
    for said in users.filter(|said| talk.posts.iter().all(|post| post.id != said.id)) {
        findings.add("post from nowhere", Some(&talk.id), format!("{} is there, and nobody has said it", said.id));
    }
}

fn one(talk: &Talk, post: &Posted, findings: &mut Findings) {
    let (id, talk_id) = (&post.id, Some(talk.id.as_str()));
    let found: Vec<&Said> = talk.said.iter().filter(|said| said.id == *id).collect();
    findings.expect("post repeated", talk_id, found.len() <= 1, || format!("{id} is there {} times", found.len()));
    match &post.told {
        Told::Accepted | Told::Confirmed => {}
        Told::Nothing => return findings.add("client unheard", talk_id, format!("{id} never got an answer")),
        Told::Refused(code) => {
            return findings.add("client refused", talk_id, format!("{id} was refused with {code}"));
        }
    }
    let Some(said) = found.first() else {
        return findings.add("post lost", talk_id, format!("{id} was accepted, and is not there"));
    };
    let alike = said.text == post.text && said.offset == post.offset && said.sender == "user";
    findings.expect("post differs", talk_id, alike, || {
        format!("{id} was {:?} at {}, and is now {said:?}", post.text, post.offset)
    });
}
