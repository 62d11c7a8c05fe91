//! What the log of a conversation says of those who come and go. Stores write it in the transaction that
//! writes the participant's row, so each of them joins once and leaves once in the log, too.

use schemas::conversation::{ConversationStatus, LogKind, LogRecord, Participant};
use schemas::json::Json;
use serde_json::json;

use super::is_closed;
use crate::converse::ids::{PARTICIPANT_JOINED, PARTICIPANT_LEFT, Word, participant_record_id};

/// Of somebody who joins a conversation whose log ends at `last_offset`. Whoever is there before anything
/// is said has been there from the start; where nothing is said any more, this is not said either.
pub fn joined(status: ConversationStatus, last_offset: u64, who: &Participant) -> Option<LogRecord> {
    (last_offset > 0 && !is_closed(status)).then(|| record(PARTICIPANT_JOINED, who, who.joined_at_ms))
}

/// Of somebody who has left.
pub fn left(status: ConversationStatus, who: &Participant) -> Option<LogRecord> {
    let at_ms = who.left_at_ms.filter(|_| !is_closed(status))?;
    Some(record(PARTICIPANT_LEFT, who, at_ms))
}

fn record(name: Word, who: &Participant, at_ms: i64) -> LogRecord {
    let mut participant = json!(who);
    if let Some(fields) = participant.as_object_mut() {
        // The record has its own time.
        fields.retain(|field, _| !matches!(field.as_str(), "joined_at_ms" | "left_at_ms"));
    }
    LogRecord {
        kind: LogKind::Event,
        id: participant_record_id(&who.participant_id, name),
        turn_id: None,
        agent_id: who.agent_id.clone(),
        session_id: who.session_id.clone(),
        at_ms,
        body: Json::of(&json!({"type": name.as_str(), "participant": participant})),
    }
}

#[cfg(test)]
mod tests {
    use schemas::conversation::{ParticipantKind, ParticipantRole};
    use schemas::id::{MessageId, ParticipantId, TurnId, UserId};
    use schemas::limits::ID_BYTES_MAX;

    use super::*;
    use crate::converse::is_reserved;

    fn ana(id: &str) -> Participant {
        Participant {
            participant_id: ParticipantId::parse(id).unwrap(),
            kind: ParticipantKind::User,
            user_id: UserId::parse("ana").ok(),
            agent_id: None,
            session_id: None,
            role: ParticipantRole::Observer,
            joined_at_ms: 5,
            left_at_ms: Some(9),
            added_by_turn_id: TurnId::parse("t1").ok(),
        }
    }

    #[test]
    fn who_comes_and_goes_is_told_with_who_they_are() {
        let came = joined(ConversationStatus::Active, 1, &ana("p1")).expect("a record");
        let participant = json!({"participant_id": "p1", "type": "user", "user_id": "ana", "role": "observer",
                                 "added_by_turn_id": "t1"});
        assert_eq!(came.body.to_value(), json!({"type": "participant_joined", "participant": participant}));
        assert_eq!((came.kind, came.at_ms), (LogKind::Event, 5));
        let went = left(ConversationStatus::Waiting, &ana("p1")).expect("a record");
        assert_eq!(went.body.to_value(), json!({"type": "participant_left", "participant": participant}));
        assert_eq!(went.at_ms, 9);
        assert_ne!(came.id, went.id);
    }

    #[test]
    fn those_of_the_start_and_of_the_end_are_not_told() {
        let who = ana("p1");
        assert_eq!(joined(ConversationStatus::Active, 0, &who), None, "they were there from the start");
        for closed in [ConversationStatus::Completed, ConversationStatus::Failed] {
            assert_eq!((joined(closed, 7, &who), left(closed, &who)), (None, None));
        }
        assert_eq!(left(ConversationStatus::Active, &Participant { left_at_ms: None, ..who }), None);
    }

    #[test]
    fn no_message_of_a_client_can_have_such_an_id() {
        for id in ["p1".to_owned(), "x".repeat(ID_BYTES_MAX)] {
            let record = joined(ConversationStatus::Active, 1, &ana(&id)).expect("a record");
            assert!(is_reserved(&record.id) && MessageId::parse(&record.id).is_ok(), "{}", record.id);
        }
    }
}
