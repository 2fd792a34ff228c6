//! Follows the switches and grants of a data folder. Any process of the folder can write them, and each process looks
//! at the files once a second, so that a change in one process applies in all.

use crate::auth_file::FileStamp;
use crate::grants::{GrantClock, GrantFile};
use crate::permissions::{self, SetSwitches, SwitchFile};
use signalbox_config::Config;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_govern::Permissions;
use signalbox_runtime::Gateway;
use std::fmt::Display;
use std::path::Path;
use std::sync::Mutex;

/// Follower of both files.
#[derive(Debug, Default)]
pub(crate) struct GovernFiles(Mutex<FollowState>);

/// Last seen state of the files.
#[derive(Debug, Default)]
struct FollowState {
    switches: FileState,
    grants: FileState,
    /// Switches in force, which are rewritten if their file disappears.
    in_force: SetSwitches,
}

/// Last seen state of one file.
#[derive(Debug, Default)]
struct FileState {
    /// Stamp at the last look; `None` before the first look.
    stamp: Option<Option<FileStamp>>,
    /// True if the last read succeeded.
    is_read: bool,
}

impl FileState {
    /// Returns `true` if the file changed or the last read failed.
    fn is_due(&self, now: Option<FileStamp>) -> bool {
        self.stamp != Some(now) || !self.is_read
    }

    /// Reads the file if it changed or the last read failed. Logs `otherwise` once for each version that fails.
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
    /// Returns `true` if there may be a change to apply. Compares stamps only and reads no file.
    pub fn has_news(&self, config: &Config) -> bool {
        let followed = self.0.lock().unpoisoned();
        let switches = match SwitchFile::of(&config.data_dir).stamp() {
            None => !followed.in_force.0.is_empty(),
            stamp => followed.switches.is_due(stamp),
        };
        switches || followed.grants.is_due(GrantFile::of(&config.data_dir).stamp())
    }

    /// Applies changes since the last look. If the file of switches is gone, its switches stay in force and the file is
    /// rewritten, so that an accident switches nothing on again. Returns the number of rewritten switches.
    pub fn follow(&self, config: &Config, permissions: &Permissions, grants: &GrantClock, gateway: &Gateway) -> usize {
        let mut followed = self.0.lock().unpoisoned();
        let file = SwitchFile::of(&config.data_dir);
        let restored = followed.restore(&file, &config.data_dir);
        if let Some(stamp) = file.stamp() {
            let otherwise = "keeping the switches that were set before";
            if let Some(all) = followed.switches.read(Some(stamp), || file.load(), otherwise) {
                permissions::apply(permissions, &all, gateway);
                followed.in_force = all;
            }
        }
        let file = GrantFile::of(&config.data_dir);
        let otherwise = "keeping the grants that were given before";
        if let Some(all) = followed.grants.read(file.stamp(), || file.load(), otherwise) {
            grants.apply(&all, config.permissions.break_glass.allowed);
        }
        restored
    }

    /// Makes the next look read both files, because the configuration or this process changed something.
    pub fn look_again(&self) {
        let mut followed = self.0.lock().unpoisoned();
        (followed.switches, followed.grants) = Default::default();
    }
}

impl FollowState {
    /// Rewrites the file of switches if it is gone, and returns the number of switches. A failure is logged once.
    fn restore(&mut self, file: &SwitchFile, data_dir: &Path) -> usize {
        // Do not recreate a data folder that is gone as a whole.
        if self.in_force.0.is_empty() || file.stamp().is_some() || !data_dir.is_dir() {
            return 0;
        }
        match file.restore(&self.in_force) {
            Ok(()) => {
                let (switches, file) = (self.in_force.0.len(), file.path().display());
                tracing::warn!(switches, %file, "the file of switches was gone, and is written again");
                switches
            }
            Err(error) => {
                if self.switches.stamp != Some(None) {
                    tracing::error!(%error, "the file of switches is gone; they stay in force");
                }
                self.switches.stamp = Some(None);
                0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth_file::AuthFile;
    use crate::permissions::SetSwitch;

    /// File and running state agree after the file was deleted.
    #[test]
    fn switches_in_force_are_written_down_again_when_their_file_goes() {
        let folder = tempfile::tempdir().unwrap();
        let file = SwitchFile::of(folder.path());
        let switch = SetSwitch {
            pattern: "b/echo".to_owned(),
            principal: false,
            off: "killed".to_owned(),
            reason: String::new(),
            by: "ada".to_owned(),
            since: 7,
        };
        let all = file.change(|all| all.set(switch)).unwrap();
        let mut followed = FollowState { in_force: all.clone(), ..FollowState::default() };
        assert_eq!(followed.restore(&file, folder.path()), 0, "it is there");
        std::fs::remove_file(file.path()).unwrap();
        assert_eq!((followed.restore(&file, folder.path()), file.load().unwrap()), (1, all));
        std::fs::remove_dir_all(folder.path()).unwrap();
        assert_eq!(followed.restore(&file, folder.path()), 0, "the data folder is gone");
    }

    #[test]
    fn a_file_is_read_when_it_is_another_one_or_could_not_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = AuthFile::of(folder.path(), "a.json");
        let mut seen = FileState::default();
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
