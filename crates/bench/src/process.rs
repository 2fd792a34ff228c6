//! Processor time and peak memory of processes, from `/proc`.

use std::fs;
use std::io;

/// Length of one tick of `/proc/PID/stat`: `USER_HZ` is 100 on every Linux.
const TICK_US: u64 = 10_000;
/// Maximum number of descendants of a process.
const DESCENDANTS_MAX: usize = 4096;

/// Processor time of one process so far, all threads together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cpu {
    /// Its own user and system time.
    pub own_us: u64,
    /// Time of children that ended and were waited for.
    pub ended_us: u64,
}

/// Reads the processor time of a process.
pub fn cpu(pid: u32) -> io::Result<Cpu> {
    let stat = read(pid, "stat")?;
    // The command name is the second field, in parentheses, and may itself contain spaces and parentheses.
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut fields = after_name.split_whitespace().skip(11);
    let mut ticks = || fields.next().and_then(|field| field.parse::<u64>().ok());
    match (ticks(), ticks(), ticks(), ticks()) {
        (Some(user), Some(system), Some(children_user), Some(children_system)) => {
            Ok(Cpu { own_us: (user + system) * TICK_US, ended_us: (children_user + children_system) * TICK_US })
        }
        _ => Err(io::Error::other(format!("/proc/{pid}/stat is not understood"))),
    }
}

/// Reads the peak resident memory of a process.
pub fn peak_rss_kb(pid: u32) -> io::Result<u64> {
    let status = read(pid, "status")?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .ok_or_else(|| io::Error::other(format!("/proc/{pid}/status has no VmHWM")))
}

/// Returns all descendants of these processes, without the processes themselves. Skips those that end meanwhile.
pub fn descendants(pids: &[u32]) -> Vec<u32> {
    let mut found: Vec<u32> = Vec::new();
    let mut ahead = pids.to_vec();
    while let Some(pid) = ahead.pop() {
        for child in children(pid) {
            if !pids.contains(&child) && !found.contains(&child) && found.len() < DESCENDANTS_MAX {
                found.push(child);
                ahead.push(child);
            }
        }
    }
    found
}

/// Returns the children of a process. Each thread has its own list.
fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()).collect()
}

fn read(pid: u32, file: &str) -> io::Result<String> {
    let path = format!("/proc/{pid}/{file}");
    fs::read_to_string(&path).map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::{cpu, descendants, peak_rss_kb};

    #[test]
    fn knows_this_process() {
        let pid = std::process::id();
        assert!(cpu(pid).is_ok());
        assert!(peak_rss_kb(pid).unwrap() > 100);
        assert!(cpu(u32::MAX).is_err());
    }

    #[test]
    fn knows_who_was_started() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let own = std::process::id();
        assert!(descendants(&[own]).contains(&child.id()));
        assert!(!descendants(&[own, child.id()]).contains(&child.id()));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!descendants(&[own]).contains(&child.id()));
    }
}
