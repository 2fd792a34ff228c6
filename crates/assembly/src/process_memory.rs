//! Memory of processes and their descendants, read from `/proc`. Other systems than Linux report nothing.

use std::fs;

/// Maximum number of descendants that are measured.
const MAX_DESCENDANTS: usize = 256;

/// Returns the resident memory of these processes and their descendants in bytes, or `None` if none can be read.
#[must_use]
pub fn resident(pids: &[u32]) -> Option<u64> {
    let mut all = pids.to_vec();
    let mut next = 0;
    while let Some(pid) = all.get(next).copied() {
        next += 1;
        for child in children(pid) {
            if all.len() < pids.len() + MAX_DESCENDANTS && !all.contains(&child) {
                all.push(child);
            }
        }
    }
    // Shared pages count for each process, as in `ps`.
    all.into_iter().filter_map(resident_of).reduce(|sum, more| sum.saturating_add(more))
}

fn resident_of(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

/// Returns the children of a process. Linux lists them under the thread that started them.
fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>())
        .collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// The memory of child processes counts.
    /// Proves G-30.
    #[test]
    fn a_process_is_measured_with_what_it_has_started() {
        let mut shell = Command::new("sh");
        // The shell has to stay, or it would become the program.
        let mut child = shell.args(["-c", "cat; true"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        while children(child.id()).is_empty() {
            std::thread::yield_now();
        }
        let (alone, together) = (resident_of(child.id()).unwrap(), resident(&[child.id()]).unwrap());
        assert!(together > alone && alone > 0, "{alone} {together}");
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(resident(&[child.id()]), None);
        assert_eq!(resident(&[]), None);
    }
}
