//! Size limits for callers that the connection does not authenticate. If only the signature identifies the caller, the
//! whole message must be read first, so it must be small.

use crate::read_body::BodyError;
use signalbox_engine::{Caller, Proof};
use signalbox_runtime::Gateway;

/// Maximum size of a message of an unidentified caller, in bytes.
pub const UNKNOWN_CALLER: usize = 1024 * 1024;

/// Returns the maximum size of a message of this caller, which is otherwise `most`. Protobuf messages are always
/// identified by their signature, JSON messages only if signatures are required.
pub(crate) fn limit(gateway: &Gateway, caller: impl FnOnce() -> Caller, most: usize, protobuf: bool) -> usize {
    let by_signature = protobuf || gateway.demands_signatures();
    let is_unknown = by_signature && most > UNKNOWN_CALLER && caller().identity().proof == Proof::Unproved;
    if is_unknown { UNKNOWN_CALLER } else { most }
}

/// Counts a message of this caller that exceeded the limit.
pub(crate) fn count(gateway: &Gateway, caller: &Caller) {
    let address = caller.identity().address.map(|address| address.ip());
    gateway.counters.unknown_caller(address);
}

/// Returns the reason why a body was refused whose limit was this module's instead of `most`.
pub(crate) fn explain(gateway: &Gateway, caller: impl FnOnce() -> Caller, error: BodyError, most: usize) -> BodyError {
    match error {
        BodyError::TooLarge(limit) if limit < most => {
            count(gateway, &caller());
            BodyError::UnknownCaller(limit)
        }
        other => other,
    }
}

/// Returns the same reason as text, for messages that are not an HTTP body.
pub(crate) fn words(limit: usize) -> String {
    BodyError::UnknownCaller(limit).to_string()
}
