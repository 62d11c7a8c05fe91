//! What a process does in its fleet.

use anyhow::{Result, bail};

/// The roles of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roles {
    pub gateway: bool,
    pub runner: bool,
    pub executor: bool,
    pub archivist: bool,
}

impl Roles {
    /// Everything in one process: `up`.
    pub const ALL: Self = Self { gateway: true, runner: true, executor: true, archivist: true };
    /// `dispatcher`.
    pub const GATEWAY: Self = Self { gateway: true, runner: false, executor: false, archivist: false };

    /// The roles of a worker by name; at least one.
    ///
    /// # Errors
    /// One is not known, or there is none.
    pub fn of_worker(names: &[String]) -> Result<Self> {
        let mut roles = Self { gateway: false, runner: false, executor: false, archivist: false };
        for name in names {
            match name.as_str() {
                "runner" => roles.runner = true,
                "executor" => roles.executor = true,
                "archivist" => roles.archivist = true,
                _ => bail!("{name:?} is no role of a worker; use runner, executor or archivist"),
            }
        }
        if roles.names().is_empty() {
            bail!("a worker needs a role: runner, executor or archivist");
        }
        Ok(roles)
    }

    /// The names of the roles a worker registers with.
    pub fn names(self) -> Vec<String> {
        let all = [(self.runner, "runner"), (self.executor, "executor"), (self.archivist, "archivist")];
        all.into_iter().filter(|(has, _)| *has).map(|(_, name)| name.to_owned()).collect()
    }

    /// All that the process does, the gateway included.
    pub fn all_names(self) -> Vec<String> {
        let gateway = self.gateway.then(|| "gateway".to_owned());
        gateway.into_iter().chain(self.names()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_named_and_unknown_ones_refused() {
        let roles = Roles::of_worker(&["archivist".into(), "runner".into()]).unwrap();
        assert_eq!(roles.names(), ["runner", "archivist"]);
        assert_eq!(roles.all_names(), roles.names());
        assert_eq!(Roles::GATEWAY.all_names(), ["gateway"]);
        assert_eq!(Roles::ALL.all_names(), ["gateway", "runner", "executor", "archivist"]);
        assert!(Roles::of_worker(&["gateway".into()]).unwrap_err().to_string().contains("no role"));
        assert!(Roles::of_worker(&[]).is_err());
    }
}
