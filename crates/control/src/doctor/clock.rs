//! System clock, on which certificates and tokens depend.

use super::finding::Finding;
use std::path::Path;
use std::time::{Duration, SystemTime};

const CHECK: &str = "clock";
/// Tolerated difference between two good clocks, including the delay of a slow answer.
const TOLERATED: Duration = Duration::from_secs(120);
/// Difference at which certificates and tokens fail.
const TOO_MUCH: Duration = Duration::from_secs(3600);
const ADVICE: &str =
    "let the machine set its clock by itself (`timedatectl set-ntp true`); certificates and tokens depend on it";

/// Compares the clock with those of backends, and with the dates of files that were certainly written before.
pub(super) fn check(now: SystemTime, told: &[(String, SystemTime)], written: &[&Path]) -> Finding {
    for (backend, theirs) in told {
        let (far, direction) = distance(now, *theirs);
        let found = format!("our clock is {} s {direction} that of backend `{backend}`", far.as_secs());
        match far {
            far if far > TOO_MUCH => return Finding::problem(CHECK, found, ADVICE),
            far if far > TOLERATED => return Finding::warning(CHECK, found, ADVICE),
            _ => {}
        }
    }
    for file in written {
        let modified = file.metadata().and_then(|metadata| metadata.modified());
        if let Ok(ahead) = modified.map_or(Ok(Duration::ZERO), |modified| modified.duration_since(now))
            && ahead > TOLERATED
        {
            let found = format!("{} was written {} s in the future by our clock", file.display(), ahead.as_secs());
            return Finding::warning(CHECK, found, ADVICE);
        }
    }
    match told.len() {
        0 => Finding::ok(CHECK, "no file is dated in the future; there is no remote backend to compare the clock with"),
        count => Finding::ok(CHECK, format!("it agrees with the clocks of remote backends ({count})")),
    }
}

fn distance(ours: SystemTime, theirs: SystemTime) -> (Duration, &'static str) {
    match ours.duration_since(theirs) {
        Ok(ahead) => (ahead, "ahead of"),
        Err(behind) => (behind.duration(), "behind"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Severity;

    #[test]
    fn a_clock_is_compared_with_others() {
        let now = SystemTime::now();
        let with = |theirs| check(now, &[("a".to_owned(), theirs)], &[]);
        assert_eq!(with(now).severity, Severity::Ok);
        assert_eq!(with(now - Duration::from_secs(600)).severity, Severity::Warning);
        let late = with(now + Duration::from_secs(86_400));
        assert_eq!(late.severity, Severity::Problem);
        assert!(late.found.contains("86400 s behind that of backend `a`"), "{late:?}");
        assert!(late.advice.unwrap().contains("set-ntp"));
    }

    #[test]
    fn a_file_from_the_future_shows_that_the_clock_is_late() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let now = SystemTime::now();
        assert_eq!(check(now, &[], &[file.path()]).severity, Severity::Ok);
        assert_eq!(check(now - Duration::from_secs(9_999), &[], &[file.path()]).severity, Severity::Warning);
        assert_eq!(check(now, &[], &[Path::new("/nowhere")]).severity, Severity::Ok);
    }
}
