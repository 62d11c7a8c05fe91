//! For providers that know two speakers and want them in turn: instructions apart, neighbours of
//! one side in one message.

use domain::chat::{ChatRequest, Part, Role};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The user, and the tools.
    User,
    Model,
}

/// Instructions, and the messages after them.
#[derive(Debug)]
pub struct Folded<'a> {
    /// The system messages at the beginning.
    pub system: String,
    pub turns: Vec<(Side, Vec<&'a Part>)>,
}

/// Folds a history. A system message in the middle is a note at its place: it goes to the user's
/// side, because instructions apart have no place.
pub fn fold(request: &ChatRequest) -> Folded<'_> {
    let leading = request.messages.iter().take_while(|message| message.role == Role::System);
    let texts: Vec<String> = leading.clone().map(|message| message.plain_text()).filter(|t| !t.is_empty()).collect();
    let mut turns: Vec<(Side, Vec<&Part>)> = Vec::new();
    for message in &request.messages[leading.count()..] {
        let side = if message.role == Role::Assistant { Side::Model } else { Side::User };
        match turns.last_mut() {
            Some((last, parts)) if *last == side => parts.extend(&message.content),
            _ => turns.push((side, message.content.iter().collect())),
        }
    }
    // Results come right behind the calls they answer, so before anything else of their side.
    for (_, parts) in &mut turns {
        if parts.iter().any(|part| matches!(part, Part::ToolResult { .. })) {
            parts.sort_by_key(|part| !matches!(part, Part::ToolResult { .. }));
        }
    }
    Folded { system: texts.join("\n\n"), turns }
}
