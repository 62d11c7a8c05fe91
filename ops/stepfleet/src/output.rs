//! How answers are shown: tables for people, JSON for programs.

use std::io::Write;

use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width, presets};
use schemas::id::ActionId;
use serde::Serialize;

/// Longest cell of a table; `--json` has the whole.
const CELL_CHARS_MAX: usize = 80;
/// What a column has at least in a narrow terminal: room for a date.
const COLUMN_CHARS_MIN: u16 = 10;

#[derive(Debug, Clone, Copy)]
pub struct Output {
    pub json: bool,
}

impl Output {
    /// Prints the answer as JSON, or else as what `table` makes of it.
    ///
    /// # Errors
    /// The value cannot be written as JSON.
    pub fn show<T: Serialize>(self, value: &T, table: impl FnOnce(&T) -> Table) -> anyhow::Result<()> {
        if self.json { print(&serde_json::to_string_pretty(value)?) } else { print(&drawn(table(value))) }
    }

    /// The same for a page of a list; below its table stands where the next page begins.
    ///
    /// # Errors
    /// See [`Self::show`].
    pub fn show_page<T: Serialize>(
        self,
        page: &T,
        next_cursor: Option<&str>,
        table: impl FnOnce(&T) -> Table,
    ) -> anyhow::Result<()> {
        self.show(page, table)?;
        // Not a row: a column as wide as a cursor would squeeze the others, or break it into pieces.
        match next_cursor.filter(|_| !self.json) {
            Some(cursor) => print(&more(cursor)),
            None => Ok(()),
        }
    }
}

/// What to say below a page that is not the last one.
fn more(cursor: &str) -> String {
    format!("more: the same with --cursor {cursor}")
}

/// Writes a line to stdout.
///
/// # Errors
/// Nobody reads it any more (`… | head`), or the disk behind it is full. `println!` would panic.
pub fn print(line: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}")?;
    Ok(stdout.flush()?)
}

/// Writes a line to stderr, beside the answer. That nobody reads it changes nothing; `eprintln!` would panic.
pub fn note(line: &str) {
    _ = writeln!(std::io::stderr(), "{line}");
}

/// A table as text, no wider than the terminal if that can be. An id is never broken over two lines, because people
/// copy it: the others give way, and where that is not enough, the table is wider.
pub fn drawn(mut table: Table) -> String {
    let contents = table.column_max_content_widths();
    let mut ids = vec![0; contents.len()];
    for row in table.header().into_iter().chain(table.row_iter()) {
        for (longest, cell) in ids.iter_mut().zip(row.cell_iter()) {
            *longest = id_chars(&cell.content()).max(*longest);
        }
    }
    for ((column, content), id) in table.column_iter_mut().zip(contents).zip(ids) {
        let padding = column.padding_width();
        // One that is too wide to be counted has no bound.
        let Some(whole) = content.checked_add(padding) else { continue };
        let least = COLUMN_CHARS_MIN.max(id).saturating_add(padding).min(whole);
        column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
    }
    table.to_string()
}

/// The length of the longest word of a text that may be an id.
fn id_chars(text: &str) -> u16 {
    let words = text.split_whitespace().filter(|word| may_be_id(word));
    let longest = words.map(|word| word.chars().count()).max().unwrap_or(0);
    u16::try_from(longest).unwrap_or(u16::MAX)
}

/// By its letters, without what stands around it. A time has such letters, too, and is rarely copied.
fn may_be_id(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let is_time = word.get(4..5) == Some("-") && word.get(10..11) == Some("T");
    !is_time && ActionId::parse(word).is_ok()
}

/// An empty table with these columns.
pub fn table(columns: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(columns.iter().copied());
    table
}

/// A table of two columns, name and value.
pub fn facts(rows: impl IntoIterator<Item = (&'static str, String)>) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    for (name, value) in rows {
        table.add_row([name.to_owned(), value]);
    }
    table
}

/// An optional value; a dash where there is none.
pub fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".into(), |value| value.to_string())
}

/// Text cut to one cell, without line breaks.
pub fn cell(text: &str) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if flat.chars().count() <= CELL_CHARS_MAX {
        return flat;
    }
    let mut cut: String = flat.chars().take(CELL_CHARS_MAX - 1).collect();
    cut.push('…');
    cut
}

/// What a session waits for, in a few words.
pub fn cause(cause: &schemas::session::Cause) -> String {
    use schemas::session::Cause;
    match cause {
        Cause::Runnable => "runs".into(),
        Cause::Timer => "timer".into(),
        Cause::Input => "waits for input".into(),
        Cause::Operation => "waits for an operation".into(),
        Cause::Paused { by, reason: None } => format!("paused by {by}"),
        Cause::Paused { by, reason: Some(reason) } => format!("paused by {by}: {reason}"),
        Cause::Ended => "ended".into(),
    }
}

#[cfg(test)]
mod tests {
    use schemas::limits::ID_BYTES_MAX;

    use super::*;

    const SESSION: &str = "01JZ4Q7V9M3N5P8R2S6T0W1X4Y";
    const AGENT: &str = "01JZ4Q7V9M3N5P8R2S6T0W1X4Z";
    const TIME: &str = "2026-01-31T12:00:00.000Z";
    const TERMINAL: usize = 80;

    fn in_terminal(mut table: Table) -> String {
        table.set_width(TERMINAL as u16);
        drawn(table)
    }

    fn is_within(text: &str) -> bool {
        text.lines().all(|line| line.chars().count() <= TERMINAL)
    }

    #[test]
    fn an_id_is_never_broken_and_the_others_give_way() {
        let mut rows = table(&["session", "agent", "status", "cause", "updated", "error"]);
        let error = "the model did not answer within a minute";
        rows.add_row([SESSION, AGENT, "running", "waits for an operation", TIME, error]);
        let text = in_terminal(rows);
        let line = text.lines().find(|line| line.contains(SESSION)).unwrap_or_default();
        assert!(line.contains(AGENT) && line.contains("running"), "{text}");
        assert!(!text.contains(TIME) && !text.contains(error) && text.contains("2026-01-31"), "{text}");
        let id = "s".repeat(ID_BYTES_MAX);
        let turn = format!("({id}) of {AGENT}: it waits for the answer of a person");
        let text = in_terminal(facts([("session", id.clone()), ("turn", turn)]));
        assert_eq!((text.matches(&id).count(), text.matches(AGENT).count()), (2, 1), "{text}");
    }

    #[test]
    fn a_table_is_as_wide_as_the_terminal_if_that_can_be() {
        let mut rows = table(&["id", "name", "updated"]);
        rows.add_row([SESSION, "a name of several words, longer than what is left of the line", TIME]);
        let text = in_terminal(rows);
        assert!(text.contains(SESSION) && is_within(&text), "{text}");
        let text = in_terminal(facts([("state", "x".repeat(ID_BYTES_MAX + 1)), ("agent", AGENT.into())]));
        assert!(text.contains(AGENT) && is_within(&text), "what is no id is broken: {text}");
        let endless = in_terminal(facts([("body", "x".repeat(usize::from(u16::MAX)))]));
        assert!(endless.contains("xxx"));
    }

    #[test]
    fn cells_are_flat_and_bounded() {
        assert_eq!(cell("a\n  b"), "a b");
        let cut = cell(&"ü".repeat(200));
        assert_eq!(cut.chars().count(), CELL_CHARS_MAX);
        assert!(cut.ends_with('…'));
    }

    #[test]
    fn a_cursor_is_told_whole() {
        let cursor = format!("1795380852249~{}", "s".repeat(128));
        assert!(more(&cursor).ends_with(&format!(" --cursor {cursor}")));
    }
}
