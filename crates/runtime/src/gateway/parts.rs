//! Parts that a gateway is made of.

use crate::backend::Backend;
use crate::session_store::SessionStore;
use crate::settings::Settings;
use crate::webhooks::WebhookTransport;
use signalbox_engine::audit::IntentLog;
use signalbox_engine::audit_id::AuditRun;
use signalbox_engine::catalog::{ListInspector, Visibility};
use signalbox_engine::dialect::PermissionSource;
use signalbox_engine::front::EndpointFace;
use signalbox_engine::message_proof::MessageProof;
use signalbox_engine::tool_label::{LabelSource, TimeoutSource};
use signalbox_engine::{Chain, FactSink, Fault, FaultKind, Principal};
use std::path::PathBuf;
use std::sync::Arc;

/// Parts of a gateway. Everything that it asks before it lets a call pass is among them, so that none can be forgotten:
///
/// ```
/// # use signalbox_runtime::{AuditTrail, GatewayParts};
/// # fn whole(parts: GatewayParts, audit: AuditTrail) -> GatewayParts {
/// # let GatewayParts { settings, backends, chain, facts, post, principal, catalog_file, .. } = parts;
/// GatewayParts {
///     settings,
///     backends,
///     chain,
///     facts,
///     post,
///     principal,
///     catalog_file,
///     lists: None,
///     visibility: None,
///     audit,
///     proof: None,
///     governance: None,
///     face: None,
///     session_store: None,
/// }
/// # }
/// ```
///
/// Without the visibility, it does not compile:
///
/// ```compile_fail,E0063
/// # use signalbox_runtime::{AuditTrail, GatewayParts};
/// # fn without_permissions(parts: GatewayParts, audit: AuditTrail) -> GatewayParts {
/// # let GatewayParts { settings, backends, chain, facts, post, principal, catalog_file, .. } = parts;
/// GatewayParts {
///     settings,
///     backends,
///     chain,
///     facts,
///     post,
///     principal,
///     catalog_file,
///     lists: None,
///     audit,
///     proof: None,
///     governance: None,
///     face: None,
///     session_store: None,
/// }
/// # }
/// ```
///
/// Nor does it without the audit trail:
///
/// ```compile_fail,E0063
/// # use signalbox_runtime::GatewayParts;
/// # fn without_audit(parts: GatewayParts) -> GatewayParts {
/// # let GatewayParts { settings, backends, chain, facts, post, principal, catalog_file, .. } = parts;
/// GatewayParts {
///     settings,
///     backends,
///     chain,
///     facts,
///     post,
///     principal,
///     catalog_file,
///     lists: None,
///     visibility: None,
///     proof: None,
///     governance: None,
///     face: None,
///     session_store: None,
/// }
/// # }
/// ```
pub struct GatewayParts {
    pub settings: Settings,
    /// Backends in configured order.
    pub backends: Vec<Arc<Backend>>,
    pub chain: Chain,
    /// Sinks that get every fact, in order.
    pub facts: Vec<Arc<dyn FactSink>>,
    /// Transport for webhooks, if interceptors may use any.
    pub post: Option<Arc<dyn WebhookTransport>>,
    /// Principal of the gateway's own connections.
    pub principal: Principal,
    /// File of the last known lists.
    pub catalog_file: Option<PathBuf>,
    /// Looks at the lists of backends before anyone sees them.
    pub lists: Option<Arc<dyn ListInspector>>,
    /// Decides which entries callers see. Without it every caller sees all of them.
    pub visibility: Option<Arc<dyn Visibility>>,
    /// Audit ids of this run, and the log that intents go to before calls leave.
    pub audit: AuditTrail,
    /// Checks the proofs that messages carry.
    pub proof: Option<MessageProofs>,
    /// Labels, permissions and time limits, with which the governed dialect is served.
    pub governance: Option<Governance>,
    /// Appearance towards the callers of one transport.
    pub face: Option<TransportFace>,
    /// Sessions that outlive the process.
    pub session_store: Option<SessionStore>,
}

/// Proofs that messages carry.
pub struct MessageProofs {
    /// Verifier of these proofs.
    pub proof: Arc<dyn MessageProof>,
    /// True if a caller whom the connection does not prove must sign. Interceptors refuse messages without a signature;
    /// fronts read less of messages that are not proved yet.
    pub demanded: bool,
}

/// Sources of governance data.
pub struct Governance {
    pub labels: Arc<dyn LabelSource>,
    pub permissions: Arc<dyn PermissionSource>,
    /// Timeouts of tool calls.
    pub timeouts: Arc<dyn TimeoutSource>,
}

/// Audit ids of a run of the gateway, and the log that intents go to.
pub struct AuditTrail {
    pub(crate) run: AuditRun,
    pub(crate) log: Option<Arc<dyn IntentLog>>,
}

impl AuditTrail {
    /// Begins a run. With a log, calls leave only after their intents are in it.
    ///
    /// # Errors
    /// A fault if the system gives no randomness.
    pub fn begin(log: Option<Arc<dyn IntentLog>>) -> Result<Self, Fault> {
        let mut random = [0; 2];
        getrandom::fill(&mut random)
            .map_err(|error| Fault::new(FaultKind::Internal, format!("no randomness from the system: {error}")))?;
        Ok(Self { run: AuditRun::new(crate::clock::unix_millis(), u16::from_be_bytes(random)), log })
    }
}

/// Appearance of the gateway towards callers of one transport.
pub struct TransportFace {
    pub transport: &'static str,
    pub face: EndpointFace,
}

impl GatewayParts {
    /// Returns parts of a gateway that asks nothing: every caller may do everything, and no intent is logged. For
    /// tests, and for commands that act for the user of this machine alone.
    ///
    /// # Errors
    /// Returns a fault if the system gives no randomness.
    pub fn unguarded(settings: Settings, backends: Vec<Arc<Backend>>) -> Result<Self, Fault> {
        Ok(Self {
            settings,
            backends,
            chain: Chain::default(),
            facts: Vec::new(),
            post: None,
            principal: Principal::anonymous(),
            catalog_file: None,
            lists: None,
            visibility: None,
            audit: AuditTrail::begin(None)?,
            proof: None,
            governance: None,
            face: None,
            session_store: None,
        })
    }
}
