//! Server-sent events, as far as the fleet uses them.

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    pub kind: String,
    pub data: String,
}

/// Takes bytes as they come and gives whole events.
#[derive(Debug, Default)]
pub struct Parser {
    rest: Vec<u8>,
    event: Event,
}

impl Parser {
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Event> {
        self.rest.extend_from_slice(bytes);
        let mut events = Vec::new();
        let mut begin = 0;
        while let Some(length) = self.rest[begin..].iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&self.rest[begin..begin + length]).into_owned();
            begin += length + 1;
            match line.split_once(':') {
                None if line.is_empty() && !self.event.data.is_empty() => events.push(std::mem::take(&mut self.event)),
                Some(("event", kind)) => self.event.kind = kind.trim().to_owned(),
                Some(("data", data)) => self.event.data.push_str(data.strip_prefix(' ').unwrap_or(data)),
                // Ids are in the data too; comments are heartbeats.
                _ => {}
            }
        }
        self.rest.drain(..begin);
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_whole_however_they_are_cut() {
        let text = b": alive\n\nid: 3\nevent: step\ndata: {\"a\":1}\n\nid: 4\nevent: end\ndata: {}\n\n";
        for cut in 0..text.len() {
            let mut parser = Parser::default();
            let mut events = parser.feed(&text[..cut]);
            events.extend(parser.feed(&text[cut..]));
            let told: Vec<(&str, &str)> = events.iter().map(|e| (e.kind.as_str(), e.data.as_str())).collect();
            assert_eq!(told, [("step", "{\"a\":1}"), ("end", "{}")], "cut at {cut}");
        }
    }
}
