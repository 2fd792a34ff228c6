//! JSON-RPC and MCP at the byte level: envelopes, ids, batches, message builders, methods, revisions, line and SSE
//! codecs, header rules, the strict scan, byte-range edits and limits. No async, no clock, no I/O.

#![warn(missing_docs)]

pub mod address_class;
pub mod batch;
pub mod builder;
pub mod closest;
pub mod codes;
pub mod completion_ref;
pub mod disguised_dots;
pub mod endpoint;
pub mod envelope;
pub mod framing;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod glob;
pub mod header;
pub mod header_params;
pub mod hex;
pub mod id;
pub mod json;
mod keys;
pub mod limits;
pub mod line;
pub mod long_line;
pub mod meta;
pub mod method;
mod number;
mod outline;
mod parts;
pub mod percent;
pub mod printable;
mod punycode;
mod rejected_message;
pub mod revision;
pub mod scan;
mod scanner;
mod skip;
pub mod span;
pub mod splice;
pub mod sse;
mod strings;
pub mod timestamp;
pub mod trace_parent;
pub mod uri_readings;

pub use batch::Message;
pub use builder::{BatchBuilder, Ids, Notification, RequestBuilder};
pub use envelope::{Envelope, EnvelopeError, InnerMember, InnerMembers, Kind, Refusal, RejectedMessage};
pub use framing::{FramingError, single_line};
pub use header::{HeaderError, HeaderProblem, HeaderValues};
pub use header_params::{HeaderSchemaError, ParamHeader, ParamKind};
pub use id::RawId;
pub use limits::Limits;
pub use line::{LineDecoder, LineError};
pub use long_line::LongLine;
pub use method::Direction;
pub use revision::{Era, Revision};
pub use scan::{ScanError, ScanErrorKind, scan};
pub use span::Span;
pub use splice::{Edits, Overlap};
pub use sse::{SseDecoder, SseError, SseEvent};
pub use trace_parent::TraceParent;
