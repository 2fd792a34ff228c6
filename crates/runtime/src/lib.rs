//! The runtime: feeds the engine's machines with events from links and streams, and carries out their commands.

mod allowance;
pub mod backend;
pub mod backends;
pub mod batch;
pub mod breakpoints;
pub mod bridged_call_driver;
pub mod catalog_keeper;
mod clock;
pub mod counters;
mod fact_buffer;
pub mod gateway;
pub mod holds;
pub mod hosted_task;
#[cfg(feature = "testing")]
mod leftovers;
pub mod link;
pub mod list_wait;
pub mod lists;
pub mod origin;
pub mod outbox;
pub mod parked_calls;
pub mod peer;
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

pub use backend::{Backend, BackendSpec, FailureRules, Lifetime, Start};
pub use backends::Backends;
pub use batch::Batch;
pub use breakpoints::{Breakpoint, BreakpointError, Breakpoints, SetBreakpoint};
pub use gateway::{Gateway, GatewayParts};
pub use holds::{HeldMessage, HoldError, Holds};
pub use link::{BoxFuture, Connector, Link, LinkEvents};
pub use outbox::{Out, Outbox};
pub use replacement::Replaced;
pub use session::{CallInFlight, Session, StreamReader};
pub use settings::BackendCallers;
pub use settings::Settings;
pub use webhooks::{Post, Posted, WebhookError, Webhooks};
