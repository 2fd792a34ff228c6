//! What `/proc` says about a process: the processor time it used and the most memory it held.

use std::fs;
use std::io;

/// Length of one tick of `/proc/PID/stat`: `USER_HZ` is 100 on every Linux.
const TICK_US: u64 = 10_000;

/// User and system time of a process so far, all threads together.
pub fn cpu_us(pid: u32) -> io::Result<u64> {
    let stat = read(pid, "stat")?;
    // The command name is the second field, in parentheses, and may itself hold spaces and parentheses.
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut fields = after_name.split_whitespace().skip(11);
    let mut ticks = || fields.next().and_then(|field| field.parse::<u64>().ok());
    match (ticks(), ticks()) {
        (Some(user), Some(system)) => Ok((user + system) * TICK_US),
        _ => Err(io::Error::other(format!("/proc/{pid}/stat is not understood"))),
    }
}

/// The most resident memory the process held since it started.
pub fn peak_rss_kb(pid: u32) -> io::Result<u64> {
    let status = read(pid, "status")?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .ok_or_else(|| io::Error::other(format!("/proc/{pid}/status has no VmHWM")))
}

fn read(pid: u32, file: &str) -> io::Result<String> {
    let path = format!("/proc/{pid}/{file}");
    fs::read_to_string(&path).map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::{cpu_us, peak_rss_kb};

    #[test]
    fn knows_this_process() {
        let pid = std::process::id();
        assert!(cpu_us(pid).is_ok());
        assert!(peak_rss_kb(pid).unwrap() > 100);
        assert!(cpu_us(u32::MAX).is_err());
    }
}
