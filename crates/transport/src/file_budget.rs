//! Divides the process's open files between client connections, backend connections and everything else.
//!
//! A process without free descriptors can neither accept nor open a connection, for any caller. The number of places
//! for connections therefore never exceeds what the system's limit allows.

use crate::admission::{FrontPlaces, RESERVE};

/// Files for listeners, logs, databases and pipes of child processes, in addition to one in [`OTHERS_EACH`] of the
/// limit.
const OTHERS: usize = 64;
/// One file in this many is kept for uses other than connections.
const OTHERS_EACH: usize = 16;
/// One file in this many of the rest is kept for backend connections.
const BACKENDS_EACH: usize = 4;
/// The reserve of a front takes at most one file in this many, and refused connections that are told the reason take as
/// many.
const RESERVE_EACH: usize = 8;
/// Maximum number of backend connections if the system sets no limit.
pub const UNLIMITED_BACKENDS: usize = 65_536;

/// Numbers of connections that fit into the limit of open files.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FileBudget {
    /// Places for client connections.
    pub clients: FrontPlaces,
    /// Places for connections to HTTP backends.
    pub backends: usize,
}

impl FileBudget {
    /// Divides a limit of open files (`None` for no limit) for a configured maximum of client connections.
    #[must_use]
    pub fn of(limit: Option<u64>, max_connections: usize) -> Self {
        let Some(limit) = limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)) else {
            return Self { clients: max_connections.into(), backends: UNLIMITED_BACKENDS };
        };
        let usable = limit.saturating_sub(OTHERS + limit / OTHERS_EACH);
        let reserve = RESERVE.min(usable / RESERVE_EACH).max(1);
        let most = max_connections.min(usable.saturating_sub(2 * reserve + usable / BACKENDS_EACH)).max(1);
        let backends = usable.saturating_sub(2 * reserve + most).max(1);
        Self { clients: FrontPlaces { most, reserve }, backends }
    }

    /// Returns the lowest limit of open files that allows this many client connections.
    #[must_use]
    pub fn least_files(max_connections: usize) -> u64 {
        let (mut low, mut high) = (0_u64, 4 * (max_connections as u64 + 1024));
        while low < high {
            let middle = low.midpoint(high);
            if Self::of(Some(middle), max_connections).clients.most < max_connections {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn usual_limits_leave_the_configured_places() {
        for limit in [None, Some(20_000), Some(65_536), Some(1_048_576)] {
            let budget = FileBudget::of(limit, 10_000);
            assert_eq!(budget.clients, FrontPlaces { most: 10_000, reserve: RESERVE });
            assert!(budget.backends >= 5_000, "{budget:?}");
        }
    }

    #[test]
    fn small_limits_lower_the_places() {
        assert_eq!(
            FileBudget::of(Some(256), 10_000),
            FileBudget { clients: FrontPlaces { most: 88, reserve: 22 }, backends: 44 }
        );
        assert_eq!(
            FileBudget::of(Some(1024), 10_000),
            FileBudget { clients: FrontPlaces { most: 448, reserve: 112 }, backends: 224 }
        );
    }

    proptest! {
        /// All connections together leave files for the rest, whatever is configured.
        #[test]
        fn connections_fit_into_the_limit(limit in 100..200_000_u64, max_connections in 1..1_000_000_usize) {
            let FileBudget { clients, backends } = FileBudget::of(Some(limit), max_connections);
            prop_assert!((clients.most + 2 * clients.reserve + backends + OTHERS) as u64 <= limit);
            prop_assert!(clients.most >= 1 && clients.most <= max_connections && backends >= 1);
        }

        #[test]
        fn the_least_number_of_files_is_enough_and_one_less_is_not(max_connections in 2..500_000_usize) {
            let files = FileBudget::least_files(max_connections);
            prop_assert_eq!(FileBudget::of(Some(files), max_connections).clients.most, max_connections);
            prop_assert!(FileBudget::of(Some(files - 1), max_connections).clients.most < max_connections);
        }
    }
}
