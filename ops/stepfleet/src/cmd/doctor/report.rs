//! What the doctor found.

use comfy_table::Table;
use serde::Serialize;

use crate::output::table;

/// One thing that was looked at.
#[derive(Debug, Clone, Serialize)]
pub struct Check {
    pub name: String,
    pub well: bool,
    pub detail: String,
}

impl Check {
    pub fn new(name: &str, well: bool, detail: impl Into<String>) -> Self {
        Self { name: name.into(), well, detail: detail.into() }
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
        self.checks.push(Check::new(name, well, detail));
    }

    /// Draws the conclusion.
    pub fn finish(&mut self) {
        self.well = self.checks.iter().all(|check| check.well)
            && self.history.as_ref().is_none_or(|history| history.broken == 0);
    }

    pub fn table(&self) -> Table {
        let mut rows = table(&["", "well", "detail"]);
        for check in &self.checks {
            rows.add_row([check.name.clone(), check.well.to_string(), check.detail.clone()]);
        }
        if let Some(history) = &self.history {
            let History { sessions, steps, memories, records, broken, .. } = history;
            let detail = format!(
                "{sessions} sessions, {steps} steps, {memories} memories, {records} messages and moves, \
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
    }
}
