//! A file of Rust taken apart just far enough: code without literals and comments, comments
//! without code, line for line as in the file.

#[cfg(test)]
mod tests;

/// Both parts have as many lines as the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The code; what stands in literals and comments is blanked out.
    pub code: String,
    pub comments: String,
}

/// A function and the lines from its signature to its closing brace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    /// Counted from 1.
    pub line: usize,
    pub lines: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Code,
    LineComment,
    BlockComment(usize),
    Text,
    RawText(usize),
}

impl Source {
    pub fn parse(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let mut source = Source { code: String::new(), comments: String::new() };
        let mut state = State::Code;
        let mut at = 0;
        while at < chars.len() {
            let taken = source.step(&chars, at, &mut state);
            at += taken;
        }
        source
    }

    /// Handles what starts at `at`; returns how many characters that were.
    fn step(&mut self, chars: &[char], at: usize, state: &mut State) -> usize {
        let here = chars[at];
        let next = chars.get(at + 1).copied().unwrap_or('\0');
        let (part, taken) = match *state {
            State::Code => return self.code_step(chars, at, state),
            State::LineComment => {
                if here == '\n' {
                    *state = State::Code;
                }
                (Part::Comment, 1)
            }
            State::BlockComment(depth) => match (here, next) {
                ('*', '/') => {
                    *state = if depth == 1 { State::Code } else { State::BlockComment(depth - 1) };
                    (Part::Comment, 2)
                }
                ('/', '*') => {
                    *state = State::BlockComment(depth + 1);
                    (Part::Comment, 2)
                }
                _ => (Part::Comment, 1),
            },
            State::Text => {
                if here == '"' {
                    *state = State::Code;
                }
                (Part::Neither, if here == '\\' { 2 } else { 1 })
            }
            State::RawText(hashes) => {
                let ends = here == '"' && chars[at + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes;
                if ends {
                    *state = State::Code;
                }
                (Part::Neither, if ends { 1 + hashes } else { 1 })
            }
        };
        self.push(chars, at, taken, part);
        taken
    }

    fn code_step(&mut self, chars: &[char], at: usize, state: &mut State) -> usize {
        let rest = &chars[at..];
        let (part, taken) = match rest {
            ['/', '/', ..] => {
                *state = State::LineComment;
                (Part::Comment, 2)
            }
            ['/', '*', ..] => {
                *state = State::BlockComment(1);
                (Part::Comment, 2)
            }
            ['"', ..] => {
                *state = State::Text;
                (Part::Neither, 1)
            }
            ['r', tail @ ..] if !after_word(chars, at) && raw_hashes(tail).is_some() => {
                let hashes = raw_hashes(tail).unwrap_or(0);
                *state = State::RawText(hashes);
                (Part::Neither, hashes + 2)
            }
            ['\'', '\\', _, tail @ ..] => {
                let end = tail.iter().position(|c| *c == '\'').map_or(0, |end| end + 1);
                (Part::Neither, 3 + end)
            }
            // 'a' is a literal, 'a without a closing quote a lifetime.
            ['\'', _, '\'', ..] => (Part::Neither, 3),
            _ => (Part::Code, 1),
        };
        self.push(chars, at, taken, part);
        taken
    }

    fn push(&mut self, chars: &[char], at: usize, taken: usize, part: Part) {
        for c in chars[at..].iter().take(taken) {
            let blank = if *c == '\n' { '\n' } else { ' ' };
            self.code.push(if part == Part::Code { *c } else { blank });
            self.comments.push(if part == Part::Comment { *c } else { blank });
        }
    }

    /// Functions with a body, in order.
    pub fn functions(&self) -> Vec<Function> {
        let mut found = Vec::new();
        for (start, _) in self.code.match_indices("fn ") {
            let before = self.code[..start].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
                continue;
            }
            let name: String =
                self.code[start + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if let Some(end) = body_end(&self.code[start..]).filter(|_| !name.is_empty()) {
                let line = self.code[..start].matches('\n').count() + 1;
                let lines = self.code[start..start + end].matches('\n').count() + 1;
                found.push(Function { name, line, lines });
            }
        }
        found
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Code,
    Comment,
    Neither,
}

fn after_word(chars: &[char], at: usize) -> bool {
    // b and c may stand before r: byte strings and C strings.
    at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_') && !matches!(chars[at - 1], 'b' | 'c')
}

/// The number of hashes if a raw string starts after its `r`.
fn raw_hashes(tail: &[char]) -> Option<usize> {
    let hashes = tail.iter().take_while(|c| **c == '#').count();
    (tail.get(hashes) == Some(&'"')).then_some(hashes)
}

/// Where the body of the function that starts here ends; `None` for one without a body.
fn body_end(code: &str) -> Option<usize> {
    let (mut braces, mut brackets) = (0_usize, 0_i32);
    for (at, c) in code.char_indices() {
        match c {
            ';' if braces == 0 && brackets == 0 => return None,
            '(' | '[' if braces == 0 => brackets += 1,
            ')' | ']' if braces == 0 => brackets -= 1,
            '{' => braces += 1,
            '}' if braces <= 1 => return (braces == 1).then_some(at + 1),
            '}' => braces -= 1,
            _ => {}
        }
    }
    None
}
