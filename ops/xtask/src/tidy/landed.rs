//! Migrations that have landed: databases keep the checksum of each text and refuse a program that has
//! another one, so no landed text is ever changed.

use sha2::{Digest, Sha256};

use super::{Finding, Text};

/// A line for each, as `sha256sum` writes and checks them.
const LIST: &str = "migrations/SHA256SUMS";
const FOLDER: &str = "migrations/";
const DIALECTS: &[&str] = &["sqlite/", "postgres/", "library/"];
/// What the migrations make grows with them.
const GOLDEN: &str = "schema.sql";

pub fn check(files: &[Text]) -> Vec<Finding> {
    let list = files.iter().find(|file| file.path == LIST).map_or("", |file| file.text.as_str());
    let mut findings: Vec<Finding> = files.iter().filter_map(|file| check_one(file, list)).collect();
    for (index, line) in list.lines().enumerate() {
        let is_there = listed(line).is_some_and(|(_, name)| files.iter().any(|file| name_of(file) == Some(name)));
        if !is_there {
            let what = "names no migration that is there: a landed one is neither removed nor renamed";
            findings.push(Finding::new(LIST, index + 1, what));
        }
    }
    findings
}

fn check_one(file: &Text, list: &str) -> Option<Finding> {
    let name = name_of(file)?;
    let sum: String = Sha256::digest(file.text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let landed: Vec<&str> =
        list.lines().filter_map(listed).filter(|(_, listed)| *listed == name).map(|(sum, _)| sum).collect();
    let what = if landed.is_empty() {
        format!("is not pinned; once its text is final, add this line to {LIST}: {sum}  {name}")
    } else if landed.iter().any(|landed| *landed != sum) {
        "has changed since it landed, and databases that have it would refuse this program: \
         take the change back, and make it in a new migration"
            .to_owned()
    } else {
        return None;
    };
    Some(Finding::new(&file.path, 0, what))
}

/// The name of a migration below its folder; `None` for every other file.
fn name_of(file: &Text) -> Option<&str> {
    let name = file.path.strip_prefix(FOLDER)?;
    let rest = DIALECTS.iter().find_map(|dialect| name.strip_prefix(dialect))?;
    (rest != GOLDEN).then_some(name)
}

/// Checksum and name of a line.
fn listed(line: &str) -> Option<(&str, &str)> {
    line.split_once("  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of `a` and of `b`.
    const A: &str = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
    const B: &str = "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d";

    fn told(list: &str, migrations: &[(&str, &str)]) -> Vec<String> {
        let mut files = vec![Text { path: LIST.into(), text: list.into() }];
        files.extend(
            migrations.iter().map(|(name, text)| Text { path: format!("{FOLDER}{name}"), text: (*text).into() }),
        );
        check(&files)
            .into_iter()
            .map(|finding| format!("{}:{}: {}", finding.path, finding.line, finding.what))
            .collect()
    }

    #[test]
    fn what_is_pinned_and_unchanged_is_well() {
        let list = format!("{A}  postgres/0001_x.sql\n{B}  sqlite/0001_x.sql\n");
        let golden = ("sqlite/schema.sql", "anything");
        assert_eq!(told(&list, &[("postgres/0001_x.sql", "a"), ("sqlite/0001_x.sql", "b"), golden]), [""; 0]);
    }

    #[test]
    fn a_landed_text_that_changes_is_found() {
        let found = told(&format!("{A}  sqlite/0001_x.sql\n"), &[("sqlite/0001_x.sql", "b")]);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("migrations/sqlite/0001_x.sql:0: has changed"), "{found:?}");
        let twice = format!("{A}  sqlite/0001_x.sql\n{B}  sqlite/0001_x.sql\n");
        assert_eq!(told(&twice, &[("sqlite/0001_x.sql", "b")]).len(), 1, "a second line does not help");
    }

    #[test]
    fn a_new_one_is_asked_for_with_its_line() {
        let found = told("", &[("sqlite/0001_x.sql", "a")]);
        assert_eq!(found.len(), 1);
        assert!(found[0].ends_with(&format!("{LIST}: {A}  sqlite/0001_x.sql")), "{found:?}");
    }

    #[test]
    fn a_landed_one_that_is_gone_is_found() {
        let found = told(&format!("{A}  sqlite/0001_x.sql\nnonsense\n"), &[("sqlite/0001_y.sql", "a")]);
        let at: Vec<&str> = found.iter().filter_map(|text| text.split_once(": ")).map(|(at, _)| at).collect();
        assert_eq!(at, ["migrations/sqlite/0001_y.sql:0", "migrations/SHA256SUMS:1", "migrations/SHA256SUMS:2"]);
    }
}
