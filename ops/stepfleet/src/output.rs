//! How answers are shown: tables for people, JSON for programs.

use std::io::Write;

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

/// Longest cell of a table; `--json` has the whole.
const CELL_CHARS_MAX: usize = 80;

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
        if self.json { print(&serde_json::to_string_pretty(value)?) } else { print(&table(value).to_string()) }
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
    use super::*;

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
