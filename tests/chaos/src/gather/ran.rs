//! Which process ran which steps: a file for each worker, with a line for each step that it ran.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;

use crate::fleet::recipes::RAN;
use crate::seen::journal::Ran;

/// Of all workers, and all starts of each.
pub fn read(dir: &Path) -> Vec<Ran> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir.join("run")).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(worker) = name.strip_prefix(RAN) else { continue };
        let Ok(file) = std::fs::File::open(entry.path()) else { continue };
        all.extend(fold(worker, BufReader::new(file).lines().map_while(Result::ok)));
    }
    all.sort_by(|a, b| (&a.session, a.first, &a.process).cmp(&(&b.session, b.first, &b.process)));
    all
}

/// Lines `session step pid time`.
fn fold(worker: &str, lines: impl Iterator<Item = String>) -> Vec<Ran> {
    let mut all: Vec<Ran> = Vec::new();
    let mut newest: HashMap<(String, String), usize> = HashMap::new();
    for line in lines {
        let fields: Vec<&str> = line.split(' ').collect();
        let [session, step, pid, _] = fields[..] else { continue };
        let Ok(step) = step.parse::<u64>() else { continue };
        let key = (session.to_owned(), pid.to_owned());
        if let Some(ran) = newest.get(&key).and_then(|at| all.get_mut(*at)) {
            if (ran.first..=ran.last).contains(&step) {
                continue;
            }
            if step == ran.last + 1 {
                ran.last = step;
                continue;
            }
        }
        newest.insert(key, all.len());
        all.push(Ran { process: format!("{worker}/{pid}"), session: session.to_owned(), first: step, last: step });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_in_a_row_are_one_and_each_start_of_a_worker_is_another_process() {
        let text = "a 0 7 1\na 1 7 2\nb 5 7 3\na 1 7 4\na 2 7 5\na 2 9 6\nhalf a li\na 9 9 7\n";
        let ran = fold("w", text.lines().map(str::to_owned));
        let told: Vec<(&str, &str, u64, u64)> =
            ran.iter().map(|ran| (&*ran.process, &*ran.session, ran.first, ran.last)).collect();
        assert_eq!(told, [("w/7", "a", 0, 2), ("w/7", "b", 5, 5), ("w/9", "a", 2, 2), ("w/9", "a", 9, 9)]);
    }
}
