//! What no file of the repository may name: hosts of package registries, and paths that exist on
//! one machine only.

use super::{Finding, Text};

/// Put together here, so that this file does not contain them.
const REGISTRIES: &[&str] = &[
    concat!("crates", ".io"),
    concat!("npmjs", ".org"),
    concat!("npmjs", ".com"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("rubygems", ".org"),
    concat!("proxy.golang", ".org"),
];
const MACHINE_PATHS: &[&str] =
    &[concat!("/root", "/"), concat!("/work", "/main"), concat!("/work", "/shared"), concat!("/tmp", "/td/")];

pub fn check(file: &Text) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        for host in REGISTRIES.iter().filter(|host| line.contains(**host)) {
            findings.push(Finding::new(&file.path, number + 1, format!("names the package registry {host}")));
        }
        for path in MACHINE_PATHS.iter().filter(|path| line.contains(**path)) {
            findings.push(Finding::new(
                &file.path,
                number + 1,
                format!("names the path {path}, which is on one machine only"),
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_paths_are_found_with_their_line() {
        let text = ["fine\nsee https://crates", ".io/x\n", "/root", "/.cache\n"].concat();
        let findings = check(&Text { path: "README.md".into(), text });
        assert_eq!(findings.iter().map(|finding| finding.line).collect::<Vec<_>>(), [2, 3]);
    }
}
