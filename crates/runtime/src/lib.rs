//! The runtime: turns what happens on links and streams into events for the engine's machines, and their commands into
//! messages on links and streams.

mod allowance;
pub mod backend;
mod backend_callers;
pub mod backends;
pub mod batch;
pub mod breakpoints;
pub mod bridged_call_driver;
pub mod catalog_keeper;
mod clock;
pub mod counters;
pub mod exclusive_use;
mod fact_buffer;
pub mod failure_rules;
pub mod gateway;
pub mod holds;
pub mod hosted_task;
#[cfg(feature = "testing")]
mod leftovers;
pub mod lifetime;
pub mod link;
pub mod list_wait;
pub mod lists;
pub mod origin;
pub mod outbox;
pub mod parked_calls;
mod party;
pub mod peer;
mod pulse;
pub mod reads;
pub mod replacement;
pub mod runtimes;
pub mod sealer;
pub mod session;
pub mod session_table;
pub mod settings;
pub mod status;
pub mod task_directory;
mod unwritten;
pub mod webhooks;

pub use backend::{Backend, BackendSpec};
pub use backend_callers::BackendCallers;
pub use backends::Backends;
pub use batch::Batch;
pub use breakpoints::{Breakpoint, BreakpointError, Breakpoints, SetBreakpoint};
pub use failure_rules::FailureRules;
pub use gateway::{Gateway, Parts};
pub use holds::{HeldMessage, HoldError, Holds};
pub use lifetime::{Lifetime, Start};
pub use link::{BoxFuture, Connector, Link, LinkEvents};
pub use outbox::{Out, Outbox};
pub use replacement::Replaced;
pub use session::{CallInFlight, Session, StreamReader};
pub use settings::Settings;
pub use webhooks::{Post, Posted, WebhookError, Webhooks};
