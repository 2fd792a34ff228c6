//! Errors of the control commands.

use super::{MAX_BREAKPOINTS, MAX_INJECTIONS};
use serde_json::Value;

/// Error of a control command.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum ControlError {
    #[error("the run has been stopped")]
    Over,
    #[error("all calls have been sent; seek back to send some of them again")]
    AtEnd,
    #[error("there is no call {wanted}; the run has calls 1 to {count}")]
    NoCall {
        /// Requested position, counted from 1.
        wanted: usize,
        count: usize,
    },
    /// The speed is out of range.
    #[error("the speed must be from 0.1 to 10, or max")]
    Speed,
    #[error("there is no breakpoint {0}")]
    NoBreakpoint(u64),
    #[error("there are {MAX_BREAKPOINTS} breakpoints already; clear some first")]
    TooManyBreakpoints,
    /// Too many injected requests are queued.
    #[error("{MAX_INJECTIONS} injected requests wait to be sent already")]
    TooManyInjections,
    #[error("a request must be a JSON object with the text `method`; `params`, if there are any, must be an object")]
    NoRequest,
    #[error("call {0} is part of the handshake, which the run does itself; it cannot be edited")]
    Handshake(usize),
}

/// Validates a request and sets its version. Its id is assigned on send.
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
