//! An HTTP/1.1 client with the features that calls to a backend need. It must know nothing of MCP.
//!
//! # Why not hyper
//!
//! Every call sends nearly the same head and needs only the status, the content type and the end of the response.
//! hyper's client took 16,400 more instructions per call, most of them in header maps, channels and polls
//! (docs/performance.md, "What was chosen"). `httparse` parses the lines of a head, as it does for hyper; this module
//! decides what they mean for the connection.
//!
//! # Connections
//!
//! A [`Conn`] has no task: its user polls it, and dropping it closes the socket. It carries one request at a time and
//! never pipelines. A [`HttpRequest`] of which no byte was written can be sent again on another connection; any other
//! may have been processed. [`Pool`] keeps idle connections for the runtime that opened them.
//!
//! # Accepted and refused input
//!
//! Section numbers are those of RFC 9112 unless another RFC is named. Refused input ends the connection: the caller
//! gets [`MalformedBody`], and the connection is not reused.
//!
//! | input from the server | handling | section |
//! |---|---|---|
//! | `HTTP/1.1` or `HTTP/1.0` in the status line | accepted; any other protocol or version is refused | 2.3, 4 |
//! | a status line without a reason | accepted | 4 |
//! | a status code that is not three digits from 100 | refused | 4 |
//! | more than one blank between the parts of a status line | refused | 4 |
//! | lines of a head that end in a bare LF | accepted; a bare CR is refused | 2.2 |
//! | empty lines before a status line | skipped | 2.2 |
//! | a blank before the colon of a header line | refused | 5.1 |
//! | a line that begins with a blank (obs-fold) | refused | 5.2 |
//! | a name that is no token, a value with control characters | refused | 5.1; RFC 9110 5.5 |
//! | a head of more than 64 KiB or 100 lines | refused | RFC 9110 5.4 |
//! | 1xx heads | skipped, at most 16 of them; after 101 the connection is not reused | RFC 9110 15.2 |
//! | 1xx, 204 and 304 | have no body, whatever the head says | 6.3, rule 1 |
//! | 1xx or 204 that announces a body | the connection is not reused: the body may still arrive | 6.1; RFC 9110 8.6 |
//! | `Transfer-Encoding` in HTTP/1.0 | refused | 6.1 |
//! | an empty `Transfer-Encoding`, or one that names `chunked` twice | refused | 6.1 |
//! | `Transfer-Encoding` that ends in `chunked` | read in chunks; the caller decodes the rest | 6.3, rule 4 |
//! | `Transfer-Encoding` that ends in something else | read until the connection closes | 6.3, rule 4 |
//! | `Transfer-Encoding` and `Content-Length` | the coding decides, and the connection is not reused | 6.3, rule 3 |
//! | several equal `Content-Length` values, in one line or many | accepted as one | 6.3, rule 5 |
//! | several different `Content-Length` values | refused | 6.3, rule 5 |
//! | a `Content-Length` that is not digits, or beyond 64 bits | refused | 6.3, rule 5 |
//! | neither of the two | read until the connection closes | 6.3, rule 8 |
//! | a body that ends before its length or its last chunk | an error, never a shorter body | 8 |
//! | a chunk size that is not 1 to 15 hexadecimal digits | refused | 7.1 |
//! | blanks after a chunk size | accepted, since servers pad sizes | 7.1 |
//! | chunk extensions and trailers | read and dropped, at most 16 KiB for each body | 7.1.1, 7.1.2 |
//! | a trailer that is not `name:` and a value, or begins with a blank | refused | 5.1, 7.1.2 |
//! | a line between chunks that ends in a bare LF, holds a bare CR or another control character, or is longer than 4 KiB | refused | 2.2, 7.1 |
//! | bytes after the end of a response, or before a request | the connection is not reused | 9.2 |
//! | `Connection: close`, or HTTP/1.0 without `keep-alive` | the connection is not reused | 9.3 |
//! | a response before the whole request was written | read, but the connection is not reused | 9.5 |
//! | `Keep-Alive: timeout=N` | the connection is closed a second before that | |
//!
//! `http1/tests` checks these rules against the cases of a public test suite.

pub(crate) mod body;
mod conn;
pub(crate) mod framing;
pub(crate) mod head;
mod pool;
mod request;
mod target;
#[cfg(test)]
mod tests;

pub(crate) use conn::{Conn, HttpError, SendError};
#[cfg(doc)]
use framing::MalformedBody;
pub(crate) use head::{ContentKind, Head};
pub(crate) use pool::Pool;
pub(crate) use request::{HttpRequest, RequestDraft};
pub use target::TargetError;
pub(crate) use target::{ConnectError, HttpTarget};
