//! Callers whom the connection does not prove. If their signature is what proves them, the whole message has to be read before anybody
//! knows who sent it, so that little is read of it.

use crate::read_body::BodyError;
use signalbox_engine::{Caller, Proof};
use signalbox_runtime::Gateway;

/// Largest message of such a caller, in bytes.
pub const UNKNOWN_CALLER: usize = 1024 * 1024;

/// How large a message of this caller may be, of `most` bytes. Protobuf is read for its signature; JSON only where nothing is taken
/// without one.
pub(crate) fn limit(gateway: &Gateway, caller: impl FnOnce() -> Caller, most: usize, protobuf: bool) -> usize {
    let by_signature = protobuf || gateway.demands_signatures();
    let is_unknown = by_signature && most > UNKNOWN_CALLER && caller().identity().proof == Proof::Unproved;
    if is_unknown { UNKNOWN_CALLER } else { most }
}

/// Counts a message of this caller that was larger than it may be.
pub(crate) fn count(gateway: &Gateway, caller: &Caller) {
    let address = caller.identity().address.map(|address| address.ip());
    gateway.counters.unknown_caller(address);
}

/// Why a body was not taken, where its bound was `limit` instead of `most`.
pub(crate) fn explain(gateway: &Gateway, caller: impl FnOnce() -> Caller, error: BodyError, most: usize) -> BodyError {
    match error {
        BodyError::TooLarge(limit) if limit < most => {
            count(gateway, &caller());
            BodyError::UnknownCaller(limit)
        }
        other => other,
    }
}

/// The same for a person, where it is no body.
pub(crate) fn words(limit: usize) -> String {
    BodyError::UnknownCaller(limit).to_string()
}
