//! The sans-IO core of Signalbox: machines that turn events into commands.
//!
//! Nothing here owns a socket, a task, a file, a clock or a source of randomness. Time comes in as an argument, so that
//! feeding the same events again gives the same commands. `ARCHITECTURE.md` draws the path of a message.

#![warn(missing_docs)]

pub mod audit;
pub mod audit_id;
pub mod authenticator;
pub mod back;
pub mod backend_breaker;
pub mod backend_user;
pub mod balance;
pub mod bounded;
pub mod breaker;
pub mod bridge;
pub mod budget;
pub mod call_index;
pub mod caller;
pub mod caller_tokens;
pub mod capset;
pub mod catalog;
pub mod chain;
pub mod command;
pub mod correlation;
pub mod dialect;
pub mod distinguished_name;
pub mod event;
pub mod exchange;
pub mod fact;
pub mod fault;
pub mod front;
pub mod health;
pub mod histogram;
pub mod http_head;
pub mod keys;
pub mod labelled_durations;
pub mod limit;
pub mod local_answer;
pub mod lock;
pub mod log_level;
pub mod message_proof;
pub mod message_redactor;
pub mod message_table;
pub mod metrics;
pub mod name_pattern;
mod notice_origin;
pub mod operation_metrics;
pub mod operations;
pub mod pacing;
pub mod percentiles;
pub mod profile;
pub mod question_origin;
pub mod rate;
pub mod read_cache;
pub mod record;
pub mod resource_address;
pub mod standing;
pub mod subject_names;
pub mod task_calls;
pub mod tool_label;
pub mod tool_metrics;
pub mod trace;

pub use back::BackMachine;
pub use backend_user::BackendUser;
pub use breaker::{Breaker, BreakerRules};
pub use budget::Budget;
pub use caller::{Caller, Identity, Principal, Proof, Rights};
pub use capset::CapSet;
pub use catalog::{Catalog, Snapshot};
pub use chain::{Chain, Interceptor, Verdict};
pub use command::Command;
pub use event::Event;
pub use exchange::{Absence, Call, Exchange, RefusedSubject};
pub use fact::{Fact, FactSink};
pub use fault::{Fault, FaultKind};
pub use front::{AuthorizedCall, Context, FrontMachine};
pub use keys::{ExchangeId, PeerId, SessionKey, StreamId};
pub use limit::Limit;
pub use name_pattern::NamePattern;
pub use profile::{ClientProfile, ServerProfile};
pub use subject_names::SubjectNames;
pub use task_calls::TaskCalls;
pub use trace::{Carrier, Trace};
