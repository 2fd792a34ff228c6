//! Stores callers' use of their daily budgets in the data folder, so that a restart does not reset it and all processes
//! of the folder count together.

use crate::auth_file::{AuthFile, AuthFileError};
use signalbox_govern::{CallBudgets, DayCounts};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Number of looks between two writes, with one look per second. A crash loses the counts of that time.
const LOOKS: u32 = 5;

/// File of the counts, with the budgets that they belong to.
pub(crate) struct SpentBudgets {
    file: AuthFile,
    budgets: Arc<CallBudgets>,
    looks: AtomicU32,
    failed: AtomicBool,
}

impl SpentBudgets {
    /// Continues from the counts in this data folder. Creates nothing.
    pub(crate) fn new(data_dir: &Path, budgets: &Arc<CallBudgets>) -> Self {
        let (file, budgets) = (AuthFile::of(data_dir, "budgets.json"), Arc::clone(budgets));
        match read(&file) {
            Ok(total) => budgets.take_over(total),
            Err(error) => tracing::error!(%error, "counting the budgets of callers from nothing"),
        }
        Self { file, budgets, looks: AtomicU32::new(0), failed: AtomicBool::new(false) }
    }

    /// Returns `true` if counts are pending and their write is due.
    pub(crate) fn is_due(&self) -> bool {
        self.looks.fetch_add(1, Ordering::Relaxed) % LOOKS == LOOKS - 1 && self.budgets.has_unsaved()
    }

    /// Adds pending counts to the file and takes over those of other processes. Blocks. A failure is logged once, and
    /// pending counts are kept for the next attempt.
    pub(crate) fn save(&self) {
        if !self.budgets.has_unsaved() {
            return;
        }
        let unsaved = self.budgets.take_unsaved();
        let saved = self.file.change(|| {
            // Replace a damaged file, which was reported at the start.
            let mut total = read(&self.file).unwrap_or_default();
            total.add(&unsaved);
            Ok::<_, SpentFileError>((serde_json::to_string(&total)?, total))
        });
        match saved {
            Ok(total) => {
                self.failed.store(false, Ordering::Relaxed);
                self.budgets.take_over(total);
            }
            Err(error) => {
                self.budgets.put_back(&unsaved);
                if !self.failed.swap(true, Ordering::Relaxed) {
                    tracing::error!(%error, "budgets that callers have used are not kept beyond this run");
                }
            }
        }
    }
}

/// Error of the file of budgets.
#[derive(Debug, thiserror::Error)]
enum SpentFileError {
    #[error(transparent)]
    File(#[from] AuthFileError),
    #[error("the file of budgets is damaged: {0}")]
    Damaged(#[from] serde_json::Error),
}

fn read(file: &AuthFile) -> Result<DayCounts, SpentFileError> {
    match file.read()? {
        Some(text) => Ok(serde_json::from_str(&text)?),
        None => Ok(DayCounts::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(day: u64, amount: u64) -> DayCounts {
        DayCounts { day, spent: [("ada".into(), amount)].into_iter().collect(), ..DayCounts::default() }
    }

    #[test]
    fn budgets_of_a_day_outlive_the_process_and_add_up_over_processes() {
        let folder = tempfile::tempdir().unwrap();
        let spend = |amount| {
            let budgets = Arc::new(CallBudgets::default());
            let spent = SpentBudgets::new(folder.path(), &budgets);
            budgets.put_back(&counted(7, amount));
            (budgets, spent)
        };
        let ((_, first), (one, second)) = (spend(2), spend(3));
        first.save();
        second.save();
        assert!(!one.has_unsaved());
        assert_eq!(read(&first.file).unwrap(), counted(7, 5));
        let (_, third) = spend(1);
        third.save();
        assert_eq!(read(&first.file).unwrap(), counted(7, 6));
        std::fs::write(first.file.path(), "{").unwrap();
        let (budgets, damaged) = spend(4);
        damaged.save();
        assert!(!budgets.has_unsaved());
        assert_eq!(read(&first.file).unwrap(), counted(7, 4), "a damaged file is replaced");
    }

    #[test]
    fn counts_that_cannot_be_written_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("no folder");
        std::fs::write(&file, "x").unwrap();
        let budgets = Arc::new(CallBudgets::default());
        let spent = SpentBudgets::new(&file, &budgets);
        budgets.put_back(&counted(7, 2));
        spent.save();
        assert_eq!(budgets.take_unsaved(), counted(7, 2));
        assert_eq!([(); 10].map(|()| spent.is_due()), [false; 10], "nothing is left to write");
    }
}
