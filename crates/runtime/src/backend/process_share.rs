//! Fair share of one caller in the processes of a local backend.
//!
//! If callers are distinguishable, no caller gets all processes: a part of `max_children` is reserved for others, and a
//! caller without a process waits for one as long as its call may take. There is no share on a gateway where every
//! caller is the same principal.

use super::Backend;
use super::connection_request::{Capacity, Pick};
use super::connections::Candidates;
use super::state::BackendState;
use signalbox_engine::{BackendUser, Fault, FaultKind};
use std::sync::Arc;

/// Divisor of `max_children`: one process of so many, at least one, is reserved for other callers.
pub const KEPT_FOR_OTHERS: usize = 4;
/// Divisor that applies while other callers have a process.
pub const KEPT_AMONG_OTHERS: usize = 2;

/// Returns the maximum number of processes of one caller. `most` is `max_children`, of which one is the gateway's own.
fn share(most: usize, others_have_any: bool) -> usize {
    let free = most.saturating_sub(1);
    let kept = if others_have_any { free / KEPT_AMONG_OTHERS } else { most / KEPT_FOR_OTHERS };
    free.saturating_sub(kept.max(1)).max(1)
}

impl Backend {
    /// Makes room for one more process of this user. Returns the verdict on its call if there is none.
    pub(super) fn make_room_for(self: &Arc<Self>, state: &mut BackendState, user: &BackendUser) -> Option<Pick> {
        if let Some(fault) = self.beyond_share(state, user) {
            return match self.make_room(state, Candidates::Of(user)) {
                Capacity::Available => None,
                Capacity::AfterClose => Some(Pick::Wait),
                Capacity::Exhausted => Some(Pick::Refuse(fault)),
            };
        }
        let fault = self.no_room(state)?;
        match self.make_room(state, Candidates::OwnedThenPooled) {
            Capacity::Available => None,
            Capacity::AfterClose => Some(Pick::Wait),
            Capacity::Exhausted if self.has_no_process(state, user) => Some(Pick::Wait),
            Capacity::Exhausted => Some(Pick::Refuse(fault)),
        }
    }

    /// Returns the refusal of a further process if the caller has reached its share.
    pub(super) fn beyond_share(&self, state: &BackendState, user: &BackendUser) -> Option<Fault> {
        if !self.has_share(user) {
            return None;
        }
        let gateway = self.gateway()?;
        let is_other = |other: &BackendUser| ![&gateway.principal, user.principal()].contains(&other.principal());
        let most = self.spec().max_children;
        let share = share(most, !state.connections.of_users(is_other).is_empty());
        if self.processes_of(state, user) < share {
            return None;
        }
        let text = format!(
            "{} already has its share ({}) of the {most} processes that backend `{}` may run (`max_children`); the others are kept for other callers",
            user.principal().as_str(),
            share,
            self.name,
        );
        Some(Fault::new(FaultKind::Overloaded, text).with_str("backend", &self.name))
    }

    /// Returns true if the caller has no process yet and therefore waits for its first one.
    pub(super) fn has_no_process(&self, state: &BackendState, user: &BackendUser) -> bool {
        self.has_share(user) && self.processes_of(state, user) == 0
    }

    fn has_share(&self, user: &BackendUser) -> bool {
        self.connector.is_process() && self.gateway().is_some_and(|gateway| gateway.principal != *user.principal())
    }

    fn processes_of(&self, state: &BackendState, user: &BackendUser) -> usize {
        state.connections.of_users(|other| other.principal() == user.principal()).len()
    }

    /// Redispatches calls that wait for a process, because other processes may be idle by now.
    pub(super) fn retry_for_room(self: &Arc<Self>) {
        let waits = {
            let state = self.lock();
            !state.waiting.is_empty() && self.connector.is_process() && self.is_full(&state)
        };
        if waits {
            self.retry_waiting();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_leaves_a_quarter_and_half_where_others_have_any() {
        assert_eq!([1, 2, 3, 4, 8, 100].map(|most| share(most, false)), [1, 1, 1, 2, 5, 74]);
        assert_eq!([1, 2, 3, 4, 8, 100].map(|most| share(most, true)), [1, 1, 1, 2, 4, 50]);
    }
}
