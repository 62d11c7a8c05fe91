//! Text that must not reach a log.

use std::fmt;

/// A secret. `Debug` and `Display` hide it; [`Secret::expose`] is the only way out.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<hidden>")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<hidden>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_print() {
        let secret = Secret::new("hunter2hunter2");
        assert_eq!(format!("{secret} {secret:?}"), "<hidden> <hidden>");
        assert_eq!(secret.expose(), "hunter2hunter2");
    }
}
