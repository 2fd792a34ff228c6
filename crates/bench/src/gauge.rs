//! Resource usage of the measured processes, and separately of the processes that they started.

use std::io;

use crate::process::{self, Cpu};

/// Processor time at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// Time of each measured process, in the order given.
    pub own_us: Vec<u64>,
    /// Time of all processes that they started, running or ended.
    pub children_us: u64,
}

impl Reading {
    /// Reads the clocks of these processes.
    pub fn take(pids: &[u32]) -> io::Result<Self> {
        let own = pids.iter().map(|&pid| process::cpu(pid)).collect::<io::Result<Vec<Cpu>>>()?;
        // A process that ended since it was listed is in its parent's account by now, or ran for a negligible time.
        let running = process::descendants(pids).into_iter().filter_map(|pid| process::cpu(pid).ok());
        let children = running.map(|cpu| cpu.own_us + cpu.ended_us).sum::<u64>();
        let ended = own.iter().map(|cpu| cpu.ended_us).sum::<u64>();
        Ok(Self { own_us: own.iter().map(|cpu| cpu.own_us).collect(), children_us: children + ended })
    }

    /// Returns the usage between an earlier reading and this one.
    pub fn since(&self, before: &Self) -> Self {
        let own = self.own_us.iter().zip(&before.own_us).map(|(after, before)| after.saturating_sub(*before));
        Self { own_us: own.collect(), children_us: self.children_us.saturating_sub(before.children_us) }
    }
}

/// Peak memory of processes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Peaks {
    /// Peak of each measured process.
    pub own_kb: Vec<u64>,
    /// Sum of the peaks of the processes that they started and that still run.
    pub children_kb: u64,
    /// Number of these processes.
    pub children: usize,
}

impl Peaks {
    /// Reads the current peaks.
    pub fn take(pids: &[u32]) -> io::Result<Self> {
        let children = process::descendants(pids);
        Ok(Self {
            own_kb: pids.iter().map(|&pid| process::peak_rss_kb(pid)).collect::<io::Result<_>>()?,
            children_kb: children.iter().filter_map(|&pid| process::peak_rss_kb(pid).ok()).sum(),
            children: children.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Reading;

    #[test]
    fn a_difference_never_falls_below_nothing() {
        let before = Reading { own_us: vec![5, 9], children_us: 7 };
        let after = Reading { own_us: vec![8, 9], children_us: 6 };
        assert_eq!(after.since(&before), Reading { own_us: vec![3, 0], children_us: 0 });
    }
}
