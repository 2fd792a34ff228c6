//! What is refused, and why.

use super::{MAX_BREAKPOINTS, MAX_INJECTIONS};
use serde_json::Value;

/// Why a wish is refused.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum ControlError {
    /// The run has ended.
    #[error("the run has been stopped")]
    Over,
    /// There is no next call.
    #[error("all calls have been sent; seek back to send some of them again")]
    AtEnd,
    /// There is no such call.
    #[error("there is no call {wanted}; the run has calls 1 to {count}")]
    NoCall {
        /// What was asked for.
        wanted: usize,
        /// How many there are.
        count: usize,
    },
    /// Too slow or too fast.
    #[error("the speed must be from 0.1 to 10, or max")]
    Speed,
    /// No breakpoint has this number.
    #[error("there is no breakpoint {0}")]
    NoBreakpoint(u64),
    /// Too many breakpoints.
    #[error("there are {MAX_BREAKPOINTS} breakpoints already; clear some first")]
    TooManyBreakpoints,
    /// Too many injected requests wait.
    #[error("{MAX_INJECTIONS} injected requests wait to be sent already")]
    TooManyInjections,
    /// It is not a request.
    #[error("a request must be a JSON object with the text `method`; `params`, if there are any, must be an object")]
    NoRequest,
    /// The handshake cannot be changed.
    #[error("call {0} is part of the handshake, which the run does itself; it cannot be edited")]
    Handshake(usize),
}

/// The request with its version; its id is given when it is sent.
pub(super) fn as_request(mut request: Value) -> Result<Value, ControlError> {
    let whole = request.get("method").is_some_and(Value::is_string)
        && request.get("params").is_none_or(Value::is_object)
        && request.is_object();
    if !whole {
        return Err(ControlError::NoRequest);
    }
    request["jsonrpc"] = "2.0".into();
    Ok(request)
}
