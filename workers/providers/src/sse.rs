//! Event streams (`text/event-stream`, HTML Standard 9.2), read piece by piece. Pure: bytes in,
//! events out. Lines are put together as bytes and decoded whole, so that a piece may end anywhere,
//! inside a character too.

use schemas::limits::{SSE_EVENT_BYTES_MAX, SSE_LINE_BYTES_MAX};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// Empty for events without a name.
    pub name: String,
    pub data: String,
}

/// What is longer than any provider's stream has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge;

#[derive(Debug)]
pub struct Reader {
    line_bytes_max: usize,
    event_bytes_max: usize,
    /// The line so far.
    line: Vec<u8>,
    /// The last byte was a CR; an LF right after it belongs to the same end of line.
    after_cr: bool,
    first_line: bool,
    name: String,
    /// The data lines so far, each with an LF behind it.
    data: String,
}

impl Default for Reader {
    fn default() -> Self {
        Self::with_limits(SSE_LINE_BYTES_MAX, SSE_EVENT_BYTES_MAX)
    }
}

impl Reader {
    pub fn with_limits(line_bytes_max: usize, event_bytes_max: usize) -> Self {
        Self {
            line_bytes_max,
            event_bytes_max,
            line: Vec::new(),
            after_cr: false,
            first_line: true,
            name: String::new(),
            data: String::new(),
        }
    }

    /// Takes the next piece and appends the events that it completes. An event counts once the
    /// blank line behind it is there; what comes after the last one at the end is no event.
    ///
    /// # Errors
    /// A line or an event is too large. The stream is of no use then.
    pub fn feed(&mut self, mut bytes: &[u8], events: &mut Vec<Event>) -> Result<(), TooLarge> {
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
            self.extend(&bytes[..end])?;
            self.end_line(events)?;
            let cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if cr && bytes.is_empty() {
                self.after_cr = true;
            } else if cr {
                bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            }
        }
        self.extend(bytes)
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        if self.line.len() + bytes.len() > self.line_bytes_max {
            return Err(TooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, events: &mut Vec<Event>) -> Result<(), TooLarge> {
        let bytes = std::mem::take(&mut self.line);
        let mut bytes = bytes.as_slice();
        if std::mem::take(&mut self.first_line) {
            bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        }
        if bytes.is_empty() {
            self.end_event(events);
            return Ok(());
        }
        let line = String::from_utf8_lossy(bytes);
        // A line that begins with a colon is a comment: its field has no name.
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => {
                if self.data.len() + value.len() + 1 > self.event_bytes_max {
                    return Err(TooLarge);
                }
                self.data.push_str(value);
                self.data.push('\n');
            }
            // `id` and `retry` are for connecting again, which would ask for a second answer.
            _ => {}
        }
        Ok(())
    }

    fn end_event(&mut self, events: &mut Vec<Event>) {
        let name = std::mem::take(&mut self.name);
        let mut data = std::mem::take(&mut self.data);
        if data.pop().is_some() {
            events.push(Event { name, data });
        }
    }
}

#[cfg(test)]
mod tests;
