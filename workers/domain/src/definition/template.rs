//! The outline of a template (SPEC 4.5): places that end, and blocks that are closed in order.

use crate::action::fields::Problems;
use crate::template::Template;

const BLOCKS: [&str; 4] = ["if", "unless", "each", "with"];

pub(super) fn check(path: String, text: &str, problems: &mut Problems) {
    // Blocks first: what is wrong with them is told best here.
    if let Err(what) = outline(text).and_then(|()| Template::parse(text).map(drop)) {
        problems.add(path, what);
    }
}

/// What is wrong first; what follows it is often its consequence.
fn outline(text: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let (mut rest, mut line, mut counted) = (text, 1, 0);
    while let Some(start) = rest.find("{{") {
        let at = text.len() - rest.len() + start;
        line += text[counted..at].matches('\n').count();
        counted = at;
        let raw = rest[start..].starts_with("{{{");
        let (from, close) = if raw { (start + 3, "}}}") } else { (start + 2, "}}") };
        let Some(end) = rest[from..].find(close) else {
            return Err(format!("line {line}: {{{{ is not closed; end the place with {close}"));
        };
        let inner = rest[from..from + end].trim();
        rest = &rest[from + end + close.len()..];
        if let Some(block) = inner.strip_prefix('#') {
            let name = block.split_whitespace().next().unwrap_or_default();
            if !BLOCKS.contains(&name) {
                return Err(format!("line {line}: there is no block #{name}; known are {}", BLOCKS.join(", ")));
            }
            open.push(name);
        } else if let Some(name) = inner.strip_prefix('/') {
            match open.pop() {
                Some(block) if block == name.trim() => {}
                Some(block) => return Err(format!("line {line}: /{} closes #{block}; write /{block}", name.trim())),
                None => return Err(format!("line {line}: /{} closes nothing; open it with #", name.trim())),
            }
        } else if inner.is_empty() {
            return Err(format!("line {line}: a place is empty; name what comes there, as in {{{{topic}}}}"));
        }
    }
    open.pop().map_or(Ok(()), |block| Err(format!("#{block} is not closed; add {{{{/{block}}}}}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sound_ones_pass() {
        for text in [
            "plain",
            "{{a.b}} {{{raw}}} {{! a comment }}",
            "{{#each items}}{{@index}} {{this}}{{else}}none{{/each}}",
            "{{#if (eq a 1)}}{{#unless b}}x{{/unless}}{{/if}}",
            "a { b } } {",
        ] {
            assert_eq!(outline(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn each_break_is_told_with_its_line() {
        for (text, told) in [
            ("a\n{{b", "line 2: {{ is not closed"),
            ("{{{b}}", "end the place with }}}"),
            ("{{}}", "a place is empty"),
            ("{{#each a}}", "#each is not closed"),
            ("{{#if a}}{{/each}}", "/each closes #if"),
            ("{{/if}}", "closes nothing"),
            ("{{#loop a}}{{/loop}}", "there is no block #loop"),
        ] {
            let found = outline(text).expect_err(text);
            assert!(found.contains(told), "{text}: {found}");
        }
    }
}
