//! A child process with all that it starts: none of it outlives its handle.

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process_group, prlimit};
use tokio::process::{Child, Command};

pub struct Group {
    pub child: Child,
    id: Option<Pid>,
}

impl Group {
    /// Starts the leader of a new group.
    ///
    /// # Errors
    /// When there is no such program, or it cannot be started.
    pub fn start(command: &mut Command) -> std::io::Result<Self> {
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Ok(Self { child, id })
    }

    /// Bounds the memory that the leader, and each process that it starts from now on, may write to.
    ///
    /// # Errors
    /// When the system does not allow it.
    pub fn bound_memory(&self, bytes: u64) -> std::io::Result<()> {
        self.bound(Resource::Data, bytes)
    }

    /// Bounds each file that they write to.
    ///
    /// # Errors
    /// When the system does not allow it.
    pub fn bound_file(&self, bytes: u64) -> std::io::Result<()> {
        self.bound(Resource::Fsize, bytes)
    }

    fn bound(&self, resource: Resource, bytes: u64) -> std::io::Result<()> {
        let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
        if self.id.is_some() {
            prlimit(self.id, resource, limit)?;
        }
        Ok(())
    }

    /// Ends what is left of the group. The leader must not have been waited for: until then its
    /// number is its own.
    fn kill(&self) {
        if let Some(id) = self.id.filter(|_| self.child.id().is_some()) {
            // It may have ended by itself.
            _ = kill_process_group(id, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
