//! What `/proc` tells of processes.

use std::fs;
use std::path::PathBuf;

/// The processes that have this among their arguments.
pub fn with_argument(argument: &str) -> Vec<u32> {
    let has = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|one| one == argument.as_bytes())
    };
    all().filter(has).collect()
}

/// The processes that this one has started, zombies not among them.
pub fn children(parent: u32) -> Vec<u32> {
    let is_child = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name, in brackets, may hold anything; what follows are the state and the parent.
        let mut rest = stat.rsplit(") ").next().unwrap_or_default().split(' ');
        rest.next().is_some_and(|state| state != "Z") && rest.next() == Some(parent.to_string().as_str())
    };
    all().filter(is_child).collect()
}

/// How many descriptors a process has open.
pub fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// What the descriptors of a process stand for, for people.
pub fn descriptor_targets(pid: u32) -> Vec<String> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let target = |path: PathBuf| fs::read_link(path).map(|target| target.display().to_string()).ok();
    let mut targets: Vec<String> = entries.filter_map(|entry| target(entry.path())).collect();
    targets.sort();
    targets
}

/// A number from `/proc/PID/status`; of memory in KiB.
pub fn figure(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn this_process_is_seen_as_it_is() {
        let own = std::process::id();
        assert!(descriptors(own) >= 3 && descriptor_targets(own).len() >= 3);
        assert!(figure(own, "VmRSS") > 100 && figure(own, "Threads") >= 1);
        let mut child = std::process::Command::new("sleep").arg("61.25").spawn().unwrap();
        assert!(children(own).contains(&child.id()));
        // Between fork and exec a child still has its parent's arguments.
        let look = async || with_argument("61.25").contains(&child.id()).then_some(());
        crate::scene::eventually("the child has its own arguments", look).await.unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!children(own).contains(&child.id()));
    }
}
