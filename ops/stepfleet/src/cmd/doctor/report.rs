//! What the doctor found.

use std::fmt::Display;

use comfy_table::Table;
use serde::Serialize;

use crate::output::table;

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    pub name: String,
    pub well: bool,
    /// It works, and somebody should look at it all the same.
    pub warning: bool,
    pub detail: String,
}

impl Check {
    pub fn new(name: &str, well: bool, detail: impl Into<String>) -> Self {
        Self { name: name.into(), well, warning: false, detail: detail.into() }
    }

    pub fn warning(name: &str, detail: impl Into<String>) -> Self {
        Self { warning: true, ..Self::new(name, true, detail) }
    }

    fn verdict(&self) -> &'static str {
        match (self.well, self.warning) {
            (false, _) => "false",
            (true, true) => "warning",
            (true, false) => "true",
        }
    }
}

/// What the walk over all history found.
#[derive(Debug, Clone, Serialize)]
pub struct History {
    pub sessions: u64,
    pub steps: u64,
    /// That have left the tail: the archive must have them.
    pub memories: u64,
    /// Messages and moves that are recorded as archived.
    pub records: u64,
    pub broken: u64,
    pub findings: Vec<String>,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    pub well: bool,
    pub checks: Vec<Check>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
}

impl Report {
    pub fn add(&mut self, name: &str, well: bool, detail: impl Into<String>) {
        self.push(Check::new(name, well, detail));
    }

    pub fn push(&mut self, check: Check) {
        self.checks.push(check);
    }

    /// What came of a look; one that cannot be taken is unwell, and the others go on.
    pub fn note(&mut self, name: &str, look: Result<Check, impl Display>) {
        self.push(look.unwrap_or_else(|error| Check::new(name, false, format!("{error:#}"))));
    }

    /// Draws the conclusion.
    pub fn finish(&mut self) {
        self.well = self.unwell().is_empty();
    }

    /// The names of what is not well.
    pub fn unwell(&self) -> Vec<&str> {
        let checks = self.checks.iter().filter(|check| !check.well).map(|check| check.name.as_str());
        let history = self.history.iter().filter(|history| history.broken > 0).map(|_| "history");
        checks.chain(history).collect()
    }

    pub fn table(&self) -> Table {
        let mut rows = table(&["", "well", "detail"]);
        for check in &self.checks {
            rows.add_row([check.name.as_str(), check.verdict(), check.detail.as_str()]);
        }
        if let Some(history) = &self.history {
            let History { sessions, steps, memories, records, broken, .. } = history;
            let detail = format!(
                "{sessions} sessions, {steps} steps, {memories} memories, {records} records of conversations, \
                 {broken} breaches"
            );
            rows.add_row(["history".into(), (history.broken == 0).to_string(), detail]);
            for finding in &history.findings {
                rows.add_row([String::new(), "false".into(), finding.clone()]);
            }
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bad_part_makes_the_whole_unwell() {
        let mut report = Report::default();
        report.add("a", true, "");
        report.finish();
        assert!(report.well);
        let findings = vec!["gap".into()];
        report.history = Some(History { sessions: 1, steps: 1, memories: 0, records: 0, broken: 1, findings });
        report.finish();
        assert!(!report.well && report.table().to_string().contains("gap"));
        report.note("b", Err::<Check, _>("nobody answers"));
        assert_eq!(report.unwell(), ["b", "history"]);
    }

    #[test]
    fn a_warning_is_shown_and_harms_nobody() {
        let mut report = Report::default();
        report.push(Check::warning("workers", "versions 1 and 2"));
        report.finish();
        assert!(report.well);
        let told = serde_json::to_value(&report).unwrap();
        let check =
            serde_json::json!({ "name": "workers", "well": true, "warning": true, "detail": "versions 1 and 2" });
        assert_eq!(told, serde_json::json!({ "well": true, "checks": [check] }));
    }

    #[test]
    fn the_table_has_a_row_for_each_check_with_its_verdict() {
        let mut report = Report::default();
        report.add("database", true, "SQLite 3.51.3");
        report.push(Check::warning("workers", "versions 1 and 2"));
        report.add("broker", false, "cannot connect");
        let table = report.table().to_string();
        let row = |name: &str| {
            let line = table.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{name}: {table}"));
            line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(row("detail"), "well detail");
        assert_eq!(row("database"), "database true SQLite 3.51.3");
        assert_eq!(row("workers"), "workers warning versions 1 and 2");
        assert_eq!(row("broker"), "broker false cannot connect");
    }
}
