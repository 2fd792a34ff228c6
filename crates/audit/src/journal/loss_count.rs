//! Number of records that could not be written to a journal, beside it on disk.
//!
//! A full disk takes no record of a loss, and a killed process forgets how many there were. The file has its size from
//! the start and is overwritten in place, which a full disk does not prevent.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Name of the file in the folder of a journal.
const FILE: &str = "lost";

/// File with the loss that no record of the journal states yet.
#[derive(Debug)]
pub(super) struct LossCount(File);

/// Loss after a record of the journal. The next record states it, so it counts only while there is none.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct UntoldLoss {
    /// Last record of the journal before the loss.
    pub after: u64,
    /// Number of records that could not be written.
    pub count: u64,
}

impl LossCount {
    /// Opens the file in this folder, and fills it if it is new.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let path = folder.join(FILE);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        let count = Self(file);
        if count.0.metadata()?.len() < text(UntoldLoss::default()).len() as u64 {
            count.keep(UntoldLoss::default(), false)?;
        }
        Ok(count)
    }

    /// Overwrites the stored loss, which a kill leaves as it is.
    pub fn keep(&self, loss: UntoldLoss, fsync: bool) -> io::Result<()> {
        self.0.write_all_at(text(loss).as_bytes(), 0)?;
        if fsync { self.0.sync_data() } else { Ok(()) }
    }
}

impl UntoldLoss {
    /// Reads the loss of the journal in this folder.
    pub fn read(folder: &Path) -> Self {
        let text = std::fs::read_to_string(folder.join(FILE)).unwrap_or_default();
        let mut numbers = text.split_whitespace().map(str::parse);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(after)), Some(Ok(count))) => Self { after, count },
            _ => Self::default(),
        }
    }

    /// Returns how many records are lost, if `last` is the last record of the journal.
    pub fn behind(self, last: u64) -> u64 {
        if self.after == last { self.count } else { 0 }
    }
}

/// Text of the file, of the same length for all losses.
fn text(UntoldLoss { after, count }: UntoldLoss) -> String {
    format!("{after:020} {count:020}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_counts_until_a_record_follows() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(UntoldLoss::read(folder.path()), UntoldLoss::default());
        let count = LossCount::open(folder.path()).unwrap();
        let size = || std::fs::metadata(folder.path().join(FILE)).unwrap().len();
        let (before, loss) = (size(), UntoldLoss { after: 7, count: 34 });
        count.keep(loss, true).unwrap();
        assert_eq!((size(), UntoldLoss::read(folder.path())), (before, loss));
        LossCount::open(folder.path()).unwrap();
        assert_eq!(UntoldLoss::read(folder.path()), loss);
        assert_eq!((loss.behind(7), loss.behind(8)), (34, 0));
    }
}
