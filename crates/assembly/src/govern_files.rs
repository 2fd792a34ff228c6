//! The switches and grants of a data folder. Any process of the folder writes them down, and each of them looks at the files once a
//! second, so that what one process is told holds in all of them.

use crate::auth_file::FileStamp;
use crate::grants::{GrantClock, GrantFile};
use crate::permissions::{self, SwitchFile};
use signalbox_config::Config;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_govern::Permissions;
use signalbox_runtime::Gateway;
use std::fmt::Display;
use std::sync::Mutex;

/// What was read of both files last.
#[derive(Debug, Default)]
pub(crate) struct GovernFiles(Mutex<[Seen; 2]>);

/// What was seen of one file.
#[derive(Debug, Default)]
struct Seen {
    /// As it was looked at last; `None` before that.
    stamp: Option<Option<FileStamp>>,
    /// Whether it could be read then.
    is_read: bool,
}

impl Seen {
    /// True if it is another file than before, or could not be read then.
    fn is_due(&self, now: Option<FileStamp>) -> bool {
        self.stamp != Some(now) || !self.is_read
    }

    /// Reads the file if it is another one than before, or could not be read then. A failure is told once for each file.
    fn read<T, E: Display>(
        &mut self,
        now: Option<FileStamp>,
        load: impl FnOnce() -> Result<T, E>,
        otherwise: &'static str,
    ) -> Option<T> {
        if !self.is_due(now) {
            return None;
        }
        let is_other = self.stamp != Some(now);
        let read = load();
        (self.stamp, self.is_read) = (Some(now), read.is_ok());
        match read {
            Ok(all) => Some(all),
            Err(error) => {
                if is_other {
                    tracing::error!(%error, "{otherwise}");
                }
                None
            }
        }
    }
}

impl GovernFiles {
    /// True if there is something to put in force: two looks at the system, and nothing is read.
    pub fn has_news(&self, config: &Config) -> bool {
        let seen = self.0.lock().unpoisoned();
        let [of_switches, of_grants] = &*seen;
        let switches = SwitchFile::of(&config.data_dir).stamp();
        (switches.is_some() && of_switches.is_due(switches))
            || of_grants.is_due(GrantFile::of(&config.data_dir).stamp())
    }

    /// Puts in force what changed since it was last looked at. Switches whose file is gone stay: nothing comes back by an accident.
    pub fn follow(&self, config: &Config, permissions: &Permissions, grants: &GrantClock, gateway: &Gateway) {
        let mut seen = self.0.lock().unpoisoned();
        let [of_switches, of_grants] = &mut *seen;
        let file = SwitchFile::of(&config.data_dir);
        if let Some(stamp) = file.stamp()
            && let Some(all) =
                of_switches.read(Some(stamp), || file.load(), "keeping the switches that were set before")
        {
            permissions::apply(permissions, &all, gateway);
        }
        let file = GrantFile::of(&config.data_dir);
        if let Some(all) = of_grants.read(file.stamp(), || file.load(), "keeping the grants that were given before") {
            grants.apply(&all, config.permissions.break_glass.allowed);
        }
    }

    /// Has both read at the next look, because the configuration or this process changed something.
    pub fn look_again(&self) {
        *self.0.lock().unpoisoned() = Default::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth_file::AuthFile;

    #[test]
    fn a_file_is_read_when_it_is_another_one_or_could_not_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = AuthFile::of(folder.path(), "a.json");
        let mut seen = Seen::default();
        let mut looks = |now, good: bool| seen.read(now, || if good { Ok(()) } else { Err("damaged") }, "x").is_some();
        assert!(looks(None, true) && !looks(None, true), "a file that is not there is read once");
        let write = |text: &str| {
            file.change(|| Ok::<_, crate::auth_file::AuthFileError>((text.to_owned(), ()))).unwrap();
            file.stamp()
        };
        let first = write("1");
        assert!(first.is_some() && looks(first, true) && !looks(first, true));
        // The same length in the same moment: it is another file all the same.
        let second = write("2");
        assert!(!looks(second, false) && looks(second, true) && !looks(second, true));
    }
}
