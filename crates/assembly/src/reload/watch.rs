//! Watches the configuration file and its rule files for changes, and follows the switches and grants of the data
//! folder.
//!
//! Polling the files' metadata finds a file that was rewritten in place as well as one that was replaced, and needs no
//! support of the system. A file is read only after it has been unchanged for a while, because it may still be being
//! written.

use super::{ReloadTrigger, Reloader};
use signalbox_config::Config;
use signalbox_config::loader::Loader;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Interval between looks at unchanged files.
const LOOK: Duration = Duration::from_secs(1);
/// Interval between looks while a file changes.
const LOOK_CLOSELY: Duration = Duration::from_millis(500);
/// Number of equal looks in a row after which a file is read.
const QUIET: u32 = 2;

/// Metadata of a file; `None` if there is no file.
type Mark = Option<(u64, u64, u64, i64, i64, i64, i64)>;

fn mark(file: &Path) -> Mark {
    let seen = std::fs::metadata(file).ok()?;
    let (modified, changed) = ((seen.mtime(), seen.mtime_nsec()), (seen.ctime(), seen.ctime_nsec()));
    Some((seen.dev(), seen.ino(), seen.size(), modified.0, modified.1, changed.0, changed.1))
}

/// Decides when files are read.
#[derive(Debug, Default)]
struct Watcher {
    /// Metadata of the files when they were last read.
    read: Option<Vec<Mark>>,
    seen: Vec<Mark>,
    quiet: u32,
}

impl Watcher {
    /// Returns `true` if everything seen has been read.
    fn is_at_rest(&self) -> bool {
        self.seen.is_empty() || self.read.as_ref() == Some(&self.seen)
    }

    /// Returns `true` if a file has changed since the last read and all files have been quiet for a while.
    fn look(&mut self, now: Vec<Mark>) -> bool {
        if self.read.as_ref() == Some(&now) {
            return false;
        }
        if self.seen != now {
            (self.seen, self.quiet) = (now, 0);
            return false;
        }
        self.quiet += 1;
        let due = self.quiet >= QUIET;
        if due {
            self.read = Some(now);
            self.quiet = 0;
        }
        due
    }
}

/// Reloads whenever a file has changed, as long as the configuration asks for watching. Switches and grants are
/// followed in any case.
pub(super) async fn watch(reloader: &Arc<Reloader>, loader: &Loader) {
    let mut watcher = Watcher::default();
    loop {
        tokio::time::sleep(if watcher.is_at_rest() { LOOK } else { LOOK_CLOSELY }).await;
        let config = reloader.current();
        follow_govern_files(reloader, &config).await;
        let spent = reloader.app().govern.spent();
        if spent.is_due() {
            let spent = Arc::clone(spent);
            let _ = tokio::task::spawn_blocking(move || spent.save()).await;
        }
        reloader.gateway().tell_refusals_left_out();
        if !config.gateway.watch_config {
            continue;
        }
        let files = loader.files();
        if files.is_empty() {
            continue;
        }
        let seen = tokio::task::spawn_blocking(move || files.iter().map(|file| mark(file)).collect()).await;
        if seen.is_ok_and(|seen| watcher.look(seen)) {
            // `reload` logs and reports the outcome. It does nothing if the content is unchanged.
            let _ = reloader.reload(ReloadTrigger::File).await;
        }
    }
}

/// Applies changes that other processes of the data folder made. Without news it starts no blocking task.
async fn follow_govern_files(reloader: &Arc<Reloader>, config: &Config) {
    if reloader.app().govern.has_news(config) {
        let this = Arc::clone(reloader);
        let _ = tokio::task::spawn_blocking(move || this.follow_govern_files()).await;
    }
    if reloader.app().audit.is_some() && reloader.admin_files.have_news(&config.data_dir) {
        let this = Arc::clone(reloader);
        let _ = tokio::task::spawn_blocking(move || this.tell_of_admin_files()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn state(size: u64) -> Mark {
        Some((1, 1, size, 0, 0, 0, 0))
    }

    #[test]
    fn a_file_is_read_once_it_is_quiet_and_not_again_until_it_changes() {
        let mut watcher = Watcher::default();
        let looks = |watcher: &mut Watcher, sizes: &[u64]| -> Vec<bool> {
            sizes.iter().map(|size| watcher.look(vec![state(*size)])).collect()
        };
        assert_eq!(looks(&mut watcher, &[1, 1, 1, 1]), [false, false, true, false]);
        // It grows while it is written.
        assert_eq!(looks(&mut watcher, &[2, 3, 4, 4, 4, 4]), [false, false, false, false, true, false]);
        // It goes away for a moment while another is put in its place.
        assert!(!watcher.look(vec![None]));
        assert_eq!(looks(&mut watcher, &[5, 5, 5]), [false, false, true]);
        // It goes away for good.
        assert_eq!([None; 4].map(|gone| watcher.look(vec![gone])), [false, false, true, false]);
    }

    #[test]
    fn a_file_that_is_put_in_the_place_of_another_looks_different() {
        let folder = tempfile::tempdir().unwrap();
        let (file, fresh) = (folder.path().join("a"), folder.path().join("b"));
        assert_eq!(mark(&file), None);
        std::fs::write(&file, "same").unwrap();
        let before = mark(&file);
        assert!(before.is_some());
        std::fs::write(&fresh, "same").unwrap();
        std::fs::rename(&fresh, &file).unwrap();
        assert_ne!(mark(&file), before);
    }
}
