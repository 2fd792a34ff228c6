//! The files of the file sink: one for today, and one beside it for each earlier day.

use crate::record::AuditRecord;
use signalbox_wire::timestamp::{self, CivilDate, TimeOfDay};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

const DAY_SECONDS: i64 = 24 * 3600;
/// File extension of the file of checkpoints.
const CHECKPOINTS: &str = "pruned";
/// Maximum size of a line in bytes. A longer line is not a record.
const MAX_LINE: u64 = 8 << 20;

/// Returns the path for a day, in days since 1970: the name with the date appended.
#[must_use]
pub fn of_day(path: &Path, day: u64) -> PathBuf {
    let CivilDate { year, month, day } = timestamp::date_of_day(i64::try_from(day).unwrap_or(i64::MAX));
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{year:04}-{month:02}-{day:02}"));
    name.into()
}

/// Returns the day in a file's name; none if it is not the file of an earlier day.
fn day_of(path: &Path, other: &Path) -> Option<i64> {
    let name = path.file_name()?.to_str()?;
    let date = other.file_name()?.to_str()?.strip_prefix(name)?.strip_prefix('.')?;
    let [year, month, day] = date.split('-').collect::<Vec<_>>().try_into().ok()?;
    let date = CivilDate { year: year.parse().ok()?, month: month.parse().ok()?, day: day.parse().ok()? };
    let seconds = timestamp::unix_seconds(date, TimeOfDay::default())?;
    Some(seconds / DAY_SECONDS)
}

/// Returns the name that a file of a log has today, without the date of an earlier day or the extension of the
/// checkpoints.
#[must_use]
pub fn of_today(file: &Path) -> PathBuf {
    let is_date = |ending: &str| day_of(Path::new("x"), Path::new(&format!("x.{ending}"))).is_some();
    let is_own = |ending: &str| ending == CHECKPOINTS || is_date(ending);
    match file.extension().and_then(|ending| ending.to_str()).is_some_and(is_own) {
        true => file.with_extension(""),
        false => file.to_owned(),
    }
}

/// Renames the file if it was last written to on an earlier day.
pub(crate) fn rotate(path: &Path, today: u64) -> io::Result<()> {
    let Ok(there) = std::fs::metadata(path) else { return Ok(()) };
    if !there.is_file() || there.len() == 0 {
        return Ok(());
    }
    let day = u64::try_from(there.mtime() / DAY_SECONDS).unwrap_or(0);
    if day >= today {
        return Ok(());
    }
    let lock = File::open(path)?;
    lock.lock()?;
    // Another process may have renamed it meanwhile.
    if std::fs::metadata(path).is_ok_and(|now| now.ino() == there.ino() && now.dev() == there.dev()) {
        std::fs::rename(path, of_day(path, day))?;
    }
    Ok(())
}

/// Returns the files of earlier days, oldest first.
///
/// # Errors
/// If the folder cannot be read.
pub fn earlier(path: &Path) -> io::Result<Vec<(i64, PathBuf)>> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut found = Vec::new();
    let entries = match std::fs::read_dir(folder) {
        // Nothing was written yet.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        entries => entries?,
    };
    for entry in entries {
        let other = entry?.path();
        if let Some(day) = day_of(path, &other) {
            found.push((day, other));
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the day of the newest record in a file, in days since 1970; `None` if it has no record.
pub(crate) fn newest_day(file: &Path) -> io::Result<Option<u64>> {
    let mut newest = None;
    lines(file, &mut |_, line| {
        newest = newest.max(AuditRecord::read(line).ok().map(|record| record.at / 1000 / DAY_SECONDS.unsigned_abs()));
        true
    })?;
    Ok(newest)
}

/// Returns the file of checkpoints, which stand for the records of files deleted by age.
#[must_use]
pub fn checkpoints(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{CHECKPOINTS}"));
    name.into()
}

/// Returns all files of a log, oldest first, with the checkpoints before them.
///
/// # Errors
/// If the folder cannot be read.
pub fn all(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = Some(checkpoints(path)).into_iter().filter(|path| path.exists()).collect();
    found.extend(earlier(path)?.into_iter().map(|(_, path)| path));
    if path.exists() {
        found.push(path.to_owned());
    }
    Ok(found)
}

/// Passes every line of a file to `each` with its number, until `each` returns false.
///
/// # Errors
/// If the file cannot be read.
pub fn lines(path: &Path, each: &mut dyn FnMut(u64, &str) -> bool) -> io::Result<()> {
    use io::Read as _;
    let mut file = BufReader::new(File::open(path)?);
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        if file.by_ref().take(MAX_LINE).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        let line = String::from_utf8_lossy(&bytes);
        if !each(number, line.trim_end_matches('\n')) {
            break;
        }
    }
    Ok(())
}
