//! Reads server-sent events (the event stream format of the HTML standard) from chunks of bytes.

/// Longest frame that is kept; a step has its own, smaller limits.
const FRAME_BYTES_MAX: usize = 32 << 20;

/// Collects bytes into the `data` of whole frames.
#[derive(Debug, Default)]
pub struct Frames {
    line: Vec<u8>,
    data: String,
}

impl Frames {
    /// Takes a chunk; returns the data of every frame that is complete with it.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut whole = Vec::new();
        for byte in bytes {
            if *byte == b'\n' {
                let line = std::mem::take(&mut self.line);
                self.end_line(&line, &mut whole);
            } else if self.line.len() < FRAME_BYTES_MAX {
                self.line.push(*byte);
            }
        }
        whole
    }

    fn end_line(&mut self, line: &[u8], whole: &mut Vec<String>) {
        let line = String::from_utf8_lossy(line);
        let line = line.strip_suffix('\r').unwrap_or(&line);
        if line.is_empty() {
            if !self.data.is_empty() {
                whole.push(std::mem::take(&mut self.data));
            }
        } else if let Some(data) = line.strip_prefix("data:") {
            if !self.data.is_empty() {
                self.data.push('\n');
            }
            self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_put_together_from_any_cut() {
        let text = ": hello\n\nid: 1\nevent: step\ndata: {\"a\":\ndata: 1}\r\n\r\nid: 2\ndata:x\n\n";
        for cut in 0..text.len() {
            let mut frames = Frames::default();
            let mut got = frames.push(&text.as_bytes()[..cut]);
            got.extend(frames.push(&text.as_bytes()[cut..]));
            assert_eq!(got, ["{\"a\":\n1}", "x"]);
        }
    }
}
