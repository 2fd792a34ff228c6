//! A child's process group: the child and every descendant that has not left it.

use rustix::process::{Pid, Signal, WaitOptions};
use std::sync::atomic::{AtomicBool, Ordering};

/// A process group that we started. Once it is known to be gone it is never signalled again, because its number may
/// then belong to a stranger.
#[derive(Debug)]
pub(crate) struct Group {
    id: Pid,
    gone: AtomicBool,
}

impl Group {
    /// The group that this process leads.
    pub(crate) fn led_by(pid: u32) -> Option<Self> {
        let id = Pid::from_raw(i32::try_from(pid).ok()?)?;
        Some(Self { id, gone: AtomicBool::new(false) })
    }

    /// Sends a signal to every member.
    pub(crate) fn signal(&self, signal: Signal) {
        if self.gone.load(Ordering::Acquire) {
            return;
        }
        if let Err(error) = rustix::process::kill_process_group(self.id, signal)
            && error != rustix::io::Errno::SRCH
        {
            tracing::warn!(group = self.id.as_raw_pid(), %error, "a process group could not be signalled");
        }
    }

    /// True while there are members. Only to be asked once the leader was waited for: it also reaps members that
    /// became our own children, as orphans do when the gateway is process 1 of a container.
    pub(super) fn survives(&self) -> bool {
        if self.gone.load(Ordering::Acquire) {
            return false;
        }
        while let Ok(Some(_)) = rustix::process::waitpgid(self.id, WaitOptions::NOHANG) {}
        let gone = rustix::process::test_kill_process_group(self.id) == Err(rustix::io::Errno::SRCH);
        if gone {
            self.forget();
        }
        !gone
    }

    /// The group is gone, or nothing more can be done about it.
    pub(crate) fn forget(&self) {
        self.gone.store(true, Ordering::Release);
    }
}
