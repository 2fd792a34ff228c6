//! Recognition of requests of the new era that are rounds of the same call (S-16).
//!
//! A backend that wants input answers a call with a `requestState`, and the client repeats the call with it. The
//! gateway remembers the caller and the request of each state, so the next round is recognised as part of its call.
//! Each state counts as the next round once: limits, budgets and rules see a second use as a new call. A state that was
//! given only to other callers is refused.
//!
//! The state itself is the backend's and opaque. A state that was dropped, or given out by an earlier process, is
//! unknown and counts as a new call too.

use crate::caller::Principal;
use crate::keys::ExchangeId;
use crate::lock::LockResultExt;
use bytes::Bytes;
use signalbox_wire::json;
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard};

/// Maximum number of states remembered. Beyond it, the caller with the most states loses its oldest.
pub const MAX_OPERATIONS: usize = 4096;
/// Maximum number of bytes of the remembered states.
pub const MAX_OPERATION_BYTES: usize = 4 << 20;
/// Maximum number of states remembered for one caller.
pub const MAX_OPERATIONS_EACH: usize = 1024;
/// Maximum number of bytes of one caller's states.
pub const MAX_OPERATION_BYTES_EACH: usize = 1 << 20;
/// Maximum number of calls of one caller that wait with the same state, which some backends give to every call.
pub const MAX_SAME_STATE: usize = 64;

/// Round of a call.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct OperationRound {
    /// Exchange of the first round.
    pub operation: ExchangeId,
    /// Number of the round, starting at 1.
    pub round: u32,
    /// True if the call was held and then let through.
    pub consulted: bool,
}

/// Origin of a state that a client sends.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum StateOrigin {
    /// It ended this round, and is used for the first time.
    Fresh(OperationRound),
    /// This caller was given it, and has used it before or uses it for another request.
    Spent,
    /// It was given only to other callers.
    Foreign,
    /// It is not remembered.
    Unknown,
}

/// Request that a state belongs to: its method and its tool, prompt or resource, as the client names them.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct StateSubject<'a> {
    /// Method of the request.
    pub method: &'a str,
    /// The client's name or URI for the subject.
    pub name: &'a str,
}

/// Call that waits for its next round.
#[derive(Debug)]
struct WaitingRound {
    round: OperationRound,
    method: Box<str>,
    name: Box<str>,
}

impl WaitingRound {
    fn is_of(&self, subject: StateSubject<'_>) -> bool {
        *self.method == *subject.method && *self.name == *subject.name
    }
}

/// States of one caller. A used state stays, without a round.
#[derive(Default, Debug)]
struct CallerStates {
    waiting: HashMap<Bytes, VecDeque<WaitingRound>>,
    order: VecDeque<Bytes>,
    bytes: usize,
}

#[derive(Default, Debug)]
struct Inner {
    callers: HashMap<Principal, CallerStates>,
    /// Number of callers that were given each state.
    holders: HashMap<Bytes, usize>,
    states: usize,
    bytes: usize,
    /// Number of deleted accounts whose states remain.
    gone: u64,
}

/// Rounds that clients may continue.
#[derive(Default, Debug)]
pub struct Operations(Mutex<Inner>);

impl Operations {
    /// Remembers that this principal was given this state at the end of a round.
    pub fn note(&self, principal: &Principal, state: &[u8], subject: StateSubject<'_>, round: OperationRound) {
        let state = &*as_read(state);
        if state.len() > MAX_OPERATION_BYTES_EACH / 16 {
            return;
        }
        let waiting = WaitingRound { round, method: subject.method.into(), name: subject.name.into() };
        let mut inner = self.lock();
        let own = inner.callers.entry(principal.clone()).or_default();
        if let Some(all) = own.waiting.get_mut(state) {
            all.push_back(waiting);
            if all.len() > MAX_SAME_STATE {
                all.pop_front();
            }
            return;
        }
        let state = Bytes::copy_from_slice(state);
        own.waiting.insert(state.clone(), VecDeque::from([waiting]));
        own.order.push_back(state.clone());
        own.bytes += state.len();
        inner.states += 1;
        inner.bytes += state.len();
        *inner.holders.entry(state).or_default() += 1;
        inner.make_room(principal);
    }

    /// Returns the origin of a state. A fresh one is thereby used up.
    #[must_use]
    pub fn take(&self, principal: &Principal, state: &[u8], subject: StateSubject<'_>) -> StateOrigin {
        let state = &*as_read(state);
        let mut inner = self.lock();
        if let Some(waiting) = inner.callers.get_mut(principal).and_then(|own| own.waiting.get_mut(state)) {
            let place = waiting.iter().position(|one| one.is_of(subject));
            let taken = place.and_then(|place| waiting.remove(place));
            return taken.map_or(StateOrigin::Spent, |taken| StateOrigin::Fresh(taken.round));
        }
        if inner.holders.contains_key(state) { StateOrigin::Foreign } else { StateOrigin::Unknown }
    }

    /// Detaches the states of a principal whose account was deleted: a later account with the same name gets none of
    /// them.
    pub fn forget(&self, principal: &Principal) {
        let mut inner = self.lock();
        if let Some(own) = inner.callers.remove(principal) {
            inner.gone += 1;
            let gone = Principal::gone(inner.gone);
            inner.callers.insert(gone, own);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unpoisoned()
    }
}

/// Normalises a state, given as JSON, as servers read it: without escapes, surrounding blanks and padding, and with one
/// base64 alphabet. States that only a strict server distinguishes are equal here.
fn as_read(json: &[u8]) -> Cow<'_, [u8]> {
    let Some(text) = json::string(json) else { return Cow::Borrowed(json) };
    let plain = |char: char| match char {
        '-' => '+',
        '_' => '/',
        other => other,
    };
    Cow::Owned(text.trim().trim_end_matches('=').chars().map(plain).collect::<String>().into_bytes())
}

impl Inner {
    /// Drops states until every bound holds: first of the caller that was given one, then of the one with the most.
    fn make_room(&mut self, principal: &Principal) {
        let crowded =
            |own: &CallerStates| own.order.len() > MAX_OPERATIONS_EACH || own.bytes > MAX_OPERATION_BYTES_EACH;
        while self.callers.get(principal).is_some_and(crowded) {
            self.forget_oldest(principal);
        }
        while self.states > MAX_OPERATIONS || self.bytes > MAX_OPERATION_BYTES {
            let many = self.states > MAX_OPERATIONS;
            let held = |own: &CallerStates| if many { own.order.len() } else { own.bytes };
            let greediest =
                self.callers.iter().max_by_key(|(_, own)| held(own)).map(|(principal, _)| principal.clone());
            let Some(greediest) = greediest else { return };
            self.forget_oldest(&greediest);
        }
    }

    fn forget_oldest(&mut self, principal: &Principal) {
        let Some(own) = self.callers.get_mut(principal) else { return };
        if let Some(state) = own.order.pop_front() {
            own.waiting.remove(&state);
            own.bytes -= state.len();
            self.states -= 1;
            self.bytes -= state.len();
            if let Some(holders) = self.holders.get_mut(&state) {
                *holders -= 1;
                if *holders == 0 {
                    self.holders.remove(&state);
                }
            }
        }
        if own.order.is_empty() {
            self.callers.remove(principal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOL: StateSubject<'static> = StateSubject { method: "tools/call", name: "t" };

    fn place(operation: u64) -> OperationRound {
        OperationRound { operation: ExchangeId(operation), round: 1, consulted: false }
    }

    /// A user who is added again under a name inherits nothing.
    #[test]
    fn states_of_an_account_that_is_gone_are_foreign_to_its_successor() {
        let (operations, ann, bob) = (Operations::default(), Principal::named("ann"), Principal::named("bob"));
        operations.note(&ann, b"\"s\"", TOOL, place(7));
        operations.note(&bob, b"\"t\"", TOOL, place(8));
        operations.forget(&ann);
        assert_eq!(operations.take(&ann, b"\"s\"", TOOL), StateOrigin::Foreign);
        assert_eq!(operations.take(&bob, b"\"t\"", TOOL), StateOrigin::Fresh(place(8)));
        operations.note(&ann, b"\"u\"", TOOL, place(9));
        assert_eq!(operations.take(&ann, b"\"u\"", TOOL), StateOrigin::Fresh(place(9)));
    }

    /// Proves S-16.
    #[test]
    fn a_state_is_the_next_round_once_and_for_nobody_else() {
        let (operations, ann, bob) = (Operations::default(), Principal::named("ann"), Principal::named("bob"));
        assert_eq!(operations.take(&ann, b"\"made up\"", TOOL), StateOrigin::Unknown);
        operations.note(&ann, b"\"s\"", TOOL, place(7));
        assert_eq!(operations.take(&bob, b"\"s\"", TOOL), StateOrigin::Foreign);
        let other = StateSubject { name: "dear", ..TOOL };
        assert_eq!(operations.take(&ann, b"\"s\"", other), StateOrigin::Spent, "of another tool");
        assert_eq!(operations.take(&ann, b"\"s\"", TOOL), StateOrigin::Fresh(place(7)));
        assert_eq!(operations.take(&ann, b"\"s\"", TOOL), StateOrigin::Spent);
        assert_eq!(operations.take(&bob, b"\"s\"", TOOL), StateOrigin::Foreign, "used is not free for others");
    }

    /// What a server reads as the state of another caller is that state.
    #[test]
    fn a_state_in_another_spelling_is_the_same_state() {
        let (operations, ann, bob) = (Operations::default(), Principal::named("ann"), Principal::named("bob"));
        operations.note(&ann, br#""S1-a_==""#, TOOL, place(7));
        for spelling in [r#""\u0053\u0031-a_==""#, r#""\u00531-a_""#, r#"" S1-a_==""#, r#""S1+a/""#] {
            assert_eq!(operations.take(&bob, spelling.as_bytes(), TOOL), StateOrigin::Foreign, "{spelling}");
        }
        assert_eq!(operations.take(&ann, br#""S1-a_==""#, TOOL), StateOrigin::Fresh(place(7)));
        assert_eq!(operations.take(&ann, br#""\u00531-a_==""#, TOOL), StateOrigin::Spent);
    }

    #[test]
    fn a_state_that_a_backend_gives_to_every_call_counts_once_for_each() {
        let (operations, ann, bob) = (Operations::default(), Principal::named("ann"), Principal::named("bob"));
        for (who, operation) in [(&ann, 1), (&bob, 2), (&ann, 3)] {
            operations.note(who, b"s", TOOL, place(operation));
        }
        assert_eq!(operations.take(&ann, b"s", TOOL), StateOrigin::Fresh(place(1)));
        assert_eq!(operations.take(&ann, b"s", TOOL), StateOrigin::Fresh(place(3)));
        assert_eq!(operations.take(&ann, b"s", TOOL), StateOrigin::Spent);
        assert_eq!(operations.take(&bob, b"s", TOOL), StateOrigin::Fresh(place(2)));
    }

    #[test]
    fn a_caller_with_many_states_loses_its_own() {
        let (operations, ann, bob) = (Operations::default(), Principal::named("ann"), Principal::named("bob"));
        operations.note(&bob, b"bob", TOOL, place(0));
        for number in 0..=MAX_OPERATIONS_EACH {
            operations.note(&ann, number.to_string().as_bytes(), TOOL, place(number as u64));
        }
        assert_eq!(operations.take(&ann, b"0", TOOL), StateOrigin::Unknown);
        assert_eq!(operations.take(&ann, b"1", TOOL), StateOrigin::Fresh(place(1)));
        for number in 0..17_u8 {
            operations.note(&ann, &vec![number; MAX_OPERATION_BYTES_EACH / 16], TOOL, place(1));
        }
        assert_eq!(operations.take(&ann, b"2", TOOL), StateOrigin::Unknown);
        for number in 0..2 * MAX_OPERATIONS {
            let who = Principal::named(&(number % 8).to_string());
            operations.note(&who, format!("n{number}").as_bytes(), TOOL, place(1));
        }
        let inner = operations.lock();
        assert!(inner.states <= MAX_OPERATIONS && inner.bytes <= MAX_OPERATION_BYTES);
        assert_eq!(inner.states, inner.callers.values().map(|own| own.waiting.len()).sum::<usize>());
        assert_eq!(inner.bytes, inner.callers.values().map(|own| own.bytes).sum::<usize>());
        assert_eq!(inner.holders.len(), inner.states);
        drop(inner);
        assert_eq!(operations.take(&bob, b"bob", TOOL), StateOrigin::Fresh(place(0)), "others took nothing of his");
    }
}
