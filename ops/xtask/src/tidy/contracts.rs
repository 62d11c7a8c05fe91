//! Things that two places must agree on: codes and runbooks, metrics and their help, metrics and
//! the code that records them, metrics and the dashboards that show them, migrations and their numbers.

use super::{Finding, Text};
use crate::source::Source;

const CODES: &str = "schemas/src/problem.rs";
const METRICS: &str = "schemas/src/telemetry.rs";
const HELP: &str = "workers/host/src/metrics.rs";
/// Whoever asks for metrics by name: dashboards, scaling rules.
const WATCHERS: &[&str] = &["ops/dashboards/", "ops/k8s/"];
/// What records a metric; `describe_counter!` and its kin, which do not, are in [`HELP`].
const RECORDERS: &[&str] = &["counter!", "gauge!", "histogram!"];
/// What every metric's name starts with, and what the text format appends to a histogram's.
const PREFIX: &str = "stepfleet_";
const HISTOGRAM_PARTS: &[&str] = &["_bucket", "_sum", "_count"];

/// Every problem code has a page, and every page is of a code, or of a metric to be alarmed by.
pub fn runbooks(files: &[Text]) -> Vec<Finding> {
    let codes = codes(text_of(files, CODES));
    let page = |code: &str| format!("ops/runbooks/{code}.md");
    let mut findings: Vec<Finding> = codes
        .iter()
        .filter(|code| !files.iter().any(|file| file.path == page(code)))
        .map(|code| Finding::new(CODES, 0, format!("code {code} has no page {}", page(code))))
        .collect();
    for file in files {
        let stem = file.path.strip_prefix("ops/runbooks/").and_then(|name| name.strip_suffix(".md"));
        let is_metric = |stem: &str| text_of(files, METRICS).contains(&format!("\"{PREFIX}{stem}\""));
        if stem.is_some_and(|stem| stem != "README" && !codes.iter().any(|code| code == stem) && !is_metric(stem)) {
            findings.push(Finding::new(&file.path, 0, "is the page of a code or metric that does not exist"));
        }
    }
    findings
}

/// Every metric is described where the recorder is installed.
pub fn metrics(files: &[Text]) -> Vec<Finding> {
    // However the formatter breaks its lines.
    let help: String = text_of(files, HELP).split_whitespace().collect();
    constants(text_of(files, METRICS))
        .into_iter()
        .filter(|name| !help.contains(&format!("!({name},")))
        .map(|name| Finding::new(METRICS, 0, format!("metric {name} is not described in {HELP}")))
        .collect()
}

/// Every metric is recorded by something else than a test: without that its panels stay empty for ever.
pub fn recorded(files: &[Text]) -> Vec<Finding> {
    let records = |file: &&Text| file.path.ends_with(".rs") && file.path != HELP && !is_test(&file.path);
    let named = files.iter().filter(records).filter(|file| file.text.contains("metric::"));
    // However the formatter breaks its lines; what comments say counts for nothing.
    let code: Vec<String> = named.map(|file| Source::parse(&file.text).code.split_whitespace().collect()).collect();
    let is_recorded = |name: &str| {
        let mut calls =
            RECORDERS.iter().flat_map(|recorder| [',', ')'].map(|end| format!("{recorder}(metric::{name}{end}")));
        calls.any(|call| code.iter().any(|code| code.contains(&call)))
    };
    let names = constants(text_of(files, METRICS)).into_iter().filter(|name| !is_recorded(name));
    names.map(|name| Finding::new(METRICS, 0, format!("metric {name} is recorded nowhere"))).collect()
}

fn is_test(path: &str) -> bool {
    path.starts_with("tests/") || path.contains("/tests/") || path.ends_with("/tests.rs")
}

/// Every metric that is asked for exists: a panel of a misspelt one stays empty for ever.
pub fn watched(files: &[Text]) -> Vec<Finding> {
    let known: Vec<&str> = text_of(files, METRICS).split('"').filter(|text| text.starts_with(PREFIX)).collect();
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| WATCHERS.iter().any(|folder| file.path.starts_with(folder))) {
        for (index, line) in file.text.lines().enumerate() {
            let words = line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            for word in words.filter(|word| word.starts_with(PREFIX)) {
                let whole = HISTOGRAM_PARTS.iter().find_map(|part| word.strip_suffix(part));
                if !known.iter().any(|name| *name == word || Some(*name) == whole) {
                    findings.push(Finding::new(&file.path, index + 1, format!("{METRICS} has no metric {word}")));
                }
            }
        }
    }
    findings
}

/// `migrations/<dialect>/NNNN_name.sql`, from 0001 without gaps.
pub fn migrations(files: &[Text]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for dialect in ["sqlite", "postgres", "library"] {
        let folder = format!("migrations/{dialect}/");
        let names =
            files.iter().filter_map(|file| file.path.strip_prefix(&folder)).filter(|name| *name != "schema.sql");
        for (index, name) in names.enumerate() {
            let number = name.split_once('_').map_or("", |(number, _)| number);
            if number != format!("{:04}", index + 1) || !name.ends_with(".sql") {
                let want = format!("{:04}_name.sql", index + 1);
                findings.push(Finding::new(&format!("{folder}{name}"), 0, format!("is out of order; expected {want}")));
            }
        }
    }
    findings
}

fn text_of<'f>(files: &'f [Text], path: &str) -> &'f str {
    files.iter().find(|file| file.path == path).map_or("", |file| file.text.as_str())
}

/// The texts of the `codes!` table: lines as in `NotFound = "not_found", 404, "…";`.
fn codes(text: &str) -> Vec<String> {
    let table = text.split_once("\ncodes! {").map_or("", |(_, table)| table);
    let lines = table.lines().take_while(|line| *line != "}");
    lines.filter_map(|line| line.split('"').nth(1)).map(str::to_owned).collect()
}

/// Names of the constants of the module `metric`.
fn constants(text: &str) -> Vec<&str> {
    let module = text.split_once("pub mod metric {").map_or("", |(_, module)| module);
    let names = module.lines().filter_map(|line| line.trim().strip_prefix("pub const "));
    names.filter_map(|line| line.split(':').next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(list: &[(&str, &str)]) -> Vec<Text> {
        list.iter().map(|(path, text)| Text { path: (*path).into(), text: (*text).into() }).collect()
    }

    #[test]
    fn codes_and_pages_belong_together() {
        let table = "x\ncodes! {\n    A = \"a_b\", 400, \"T\";\n    C = \"c\", 404, \"U\";\n}\n";
        let found = runbooks(&files(&[(CODES, table), ("ops/runbooks/c.md", ""), ("ops/runbooks/d.md", "")]));
        assert_eq!(found.len(), 2);
        assert!(found[0].what.contains("a_b") && found[1].path.ends_with("d.md"));
    }

    #[test]
    fn a_metric_without_help_is_found() {
        let names = "pub mod metric {\n    pub const A: &str = \"a\";\n    pub const B: &str = \"b\";\n}\n";
        let found = metrics(&files(&[(METRICS, names), (HELP, "describe_counter!(A, count, \"x\");")]));
        assert_eq!(found.len(), 1);
        assert!(found[0].what.contains("metric B"));
    }

    #[test]
    fn a_metric_that_nothing_records_is_found() {
        let names = "pub mod metric {\n    pub const A: &str = \"a\";\n    pub const AB: &str = \"ab\";\n}\n";
        let told = |path: &str, text: &str| recorded(&files(&[(METRICS, names), (path, text)])).len();
        assert_eq!(told("x/y.rs", "gauge!(metric::A).set(0.0); counter!(\n    metric::AB,\n    \"of\" => of\n);"), 0);
        assert_eq!(told("x/y.rs", "metrics::gauge!(metric::AB).set(0.0); // gauge!(metric::A)"), 1);
        assert_eq!(told("x/y.rs", "use metric::A; describe(metric::AB);"), 2);
        for elsewhere in [HELP, "x/tests.rs", "x/tests/y.rs", "tests/x.rs", "x/y.md"] {
            assert_eq!(told(elsewhere, "gauge!(metric::A).set(0.0);"), 2, "{elsewhere}");
        }
    }

    #[test]
    fn a_metric_that_does_not_exist_is_found_on_a_dashboard() {
        let names = "pub mod metric {\n    pub const A: &str = \"stepfleet_a_seconds\";\n}\n";
        let panel = "x\n\"rate(stepfleet_a_seconds_bucket[1m]) / stepfleet_a_seconds_count\"\n\"stepfleet_b\"\n";
        let found =
            watched(&files(&[(METRICS, names), ("ops/dashboards/x.json", panel), ("docs/x.md", "stepfleet_c")]));
        assert_eq!(found.len(), 1);
        assert!(found[0].line == 3 && found[0].what.contains("stepfleet_b"));
    }

    #[test]
    fn migrations_count_up() {
        let good = files(&[
            ("migrations/sqlite/0001_a.sql", ""),
            ("migrations/sqlite/0002_b.sql", ""),
            ("migrations/sqlite/schema.sql", ""),
        ]);
        assert!(migrations(&good).is_empty());
        assert_eq!(
            migrations(&files(&[("migrations/sqlite/0001_a.sql", ""), ("migrations/sqlite/0003_b.sql", "")])).len(),
            1
        );
    }
}
