//! How many files and sockets this process may have open.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the soft limit to what the machine allows: a stream is a socket for as long as it lasts, and
/// the usual soft limit of 1,024 is for programs that call `select`. Returns the limit that holds now;
/// `None`: there is none.
pub fn raise() -> Option<u64> {
    let mut limit = getrlimit(Resource::Nofile);
    let allowed = limit.maximum;
    if limit.current != allowed {
        let before = limit.current;
        limit.current = allowed;
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::debug!(%error, "the limit of open files stays as it is");
            return before;
        }
    }
    allowed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let raised = raise();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!((limit.current, limit.maximum), (raised, raised));
    }
}
