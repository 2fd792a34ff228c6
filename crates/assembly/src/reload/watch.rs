//! Watches the configuration file, and the rule files it names, for changes, and besides them the switches and grants of the data folder.
//!
//! Their state is looked at in short intervals, which finds a file that was written in place as well as one that was put in the
//! place of another, and needs nothing of the system. What is still being written is left alone until it has been quiet.

use super::{Reloader, Trigger};
use signalbox_config::Config;
use signalbox_config::loader::Loader;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How often the file is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How often while it changes.
const LOOK_CLOSELY: Duration = Duration::from_millis(500);
/// How many looks in a row must find the same before it is read.
const QUIET: u32 = 2;

/// What is seen of a file without reading it; nothing if there is none.
type Mark = Option<(u64, u64, u64, i64, i64, i64, i64)>;

fn mark(file: &Path) -> Mark {
    let seen = std::fs::metadata(file).ok()?;
    let (modified, changed) = ((seen.mtime(), seen.mtime_nsec()), (seen.ctime(), seen.ctime_nsec()));
    Some((seen.dev(), seen.ino(), seen.size(), modified.0, modified.1, changed.0, changed.1))
}

/// Decides when files are to be read.
#[derive(Debug, Default)]
struct Watcher {
    /// The state in which they were read last.
    read: Option<Vec<Mark>>,
    seen: Vec<Mark>,
    quiet: u32,
}

impl Watcher {
    /// True if nothing was seen that has not been read.
    fn is_at_rest(&self) -> bool {
        self.seen.is_empty() || self.read.as_ref() == Some(&self.seen)
    }

    /// True if one of the files has changed since they were read, and all have been quiet for a while.
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

/// Reloads whenever a file has changed, for as long as the configuration says that it should be watched. Switches and grants are
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
            // What came of it is in the log and in the report. Where it was read before, nothing happens.
            let _ = reloader.reload(Trigger::File).await;
        }
    }
}

/// Puts in force what other processes of the data folder were told. No thread is woken while there is nothing.
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
