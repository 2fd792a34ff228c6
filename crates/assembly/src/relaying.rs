//! Integrates the relay into the gateway: its backend, its visibility, and the face of the gateway at its endpoint.

use signalbox_config::Config;
use signalbox_engine::Caller;
use signalbox_engine::back::Wish;
use signalbox_engine::catalog::{Audience, EntryRef, Visibility};
use signalbox_engine::front::EndpointFace;
use signalbox_relay::store::memory::MemoryStore;
use signalbox_relay::store::redis::RedisStore;
use signalbox_relay::{BACKEND, Relay, RelayConnector, RelaySettings, RelayStore, TRANSPORT};
use signalbox_runtime::{Backend, BackendSpec, FailureRules, Lifetime, Settings, TransportFace};
use std::sync::Arc;
use std::time::Duration;

/// Time by which the gateway's timeout exceeds the relay's, so that the relay reports what happened.
const GRACE: Duration = Duration::from_secs(15);

/// Creates the relay of a configuration, if it has one.
pub(crate) fn relay(config: &Config) -> Option<Arc<Relay>> {
    let relay = config.relay.as_ref()?;
    let settings = RelaySettings {
        phase: relay.phase,
        ttl: relay.ttl,
        public_url: relay.public_url.clone().unwrap_or_default(),
        origins: relay.origins.clone(),
        tools: relay.tools,
        proof_needed: config.auth.required && !relay.anonymous,
        sunset: relay.sunset.clone(),
        limits: relay.limits.clone(),
    };
    let store: Arc<dyn RelayStore> = match &relay.redis {
        None => Arc::new(MemoryStore::default()),
        Some(address) => {
            tracing::info!(%address, "the relay keeps its sessions in Redis");
            Arc::new(RedisStore::at(address.clone()))
        }
    };
    Some(Relay::new(settings, store))
}

/// Creates the backend of the pages. It has no circuit breaker, because one failing page is no reason to refuse calls
/// to others.
pub(crate) fn backend(relay: &Arc<Relay>, settings: &Settings) -> Arc<Backend> {
    let limits = &relay.settings.limits;
    let spec = BackendSpec {
        timeout: limits.request_timeout.max(limits.request_ttl) + GRACE,
        start_timeout: Duration::from_secs(10),
        max_children: 1,
        wish: Wish::Legacy,
        strict: settings.strict.then_some(settings.limits),
        failing: FailureRules {
            breaker: None,
            ping: None,
            slow_start: Duration::ZERO,
            max_queue: limits.max_sessions,
            ..FailureRules::default()
        },
        lifetime: Lifetime::default(),
        questions: signalbox_runtime::QuestionTime::default(),
        source: 0,
        allows: Box::new(|_| true),
    };
    Backend::new(BACKEND, Arc::new(RelayConnector::new(relay)), spec)
}

/// Wraps the permissions so that only callers of the relay see it.
pub(crate) fn visibility(relay: Option<&Arc<Relay>>, permissions: Arc<dyn Visibility>) -> Arc<dyn Visibility> {
    match relay {
        Some(relay) => Arc::new(RelayVisibility { relay: Arc::clone(relay), inner: permissions }),
        None => permissions,
    }
}

/// Returns the face that callers of the relay see.
pub(crate) fn face(relay: &Relay) -> TransportFace {
    let face = EndpointFace::of_tools("codap-mcp-server", "1.0.0");
    TransportFace {
        transport: TRANSPORT,
        face: EndpointFace { eager: true, open: !relay.settings.proof_needed, ..face },
    }
}

/// Shows callers of the relay its backend alone, and all other callers everything else. Permissions decide within that.
struct RelayVisibility {
    relay: Arc<Relay>,
    inner: Arc<dyn Visibility>,
}

fn by_relay(caller: &Caller) -> bool {
    caller.identity().transport == TRANSPORT
}

impl RelayVisibility {
    fn allows(&self, ask: impl FnOnce(&dyn Visibility) -> bool) -> bool {
        self.inner.is_open() || ask(&*self.inner)
    }
}

impl Visibility for RelayVisibility {
    fn audience(&self, caller: &Caller) -> Audience {
        let inner = if self.inner.is_open() { Audience::default() } else { self.inner.audience(caller) };
        match by_relay(caller) {
            true => Audience(format!("{TRANSPORT} {}", inner.0).into()),
            false => inner,
        }
    }

    fn sole_backend(&self, caller: &Caller) -> Option<&str> {
        by_relay(caller).then_some(BACKEND)
    }

    fn shows_backend(&self, caller: &Caller, backend: &str) -> bool {
        by_relay(caller) == (backend == BACKEND) && self.allows(|inner| inner.shows_backend(caller, backend))
    }

    fn lists(&self, caller: &Caller, entry: &EntryRef<'_>) -> bool {
        self.shows_backend(caller, entry.backend)
            && (entry.backend != BACKEND || self.relay.tools.is_listed(entry.name))
            && self.allows(|inner| inner.lists(caller, entry))
    }

    fn is_off(&self, caller: &Caller, entry: &EntryRef<'_>) -> bool {
        self.inner.is_off(caller, entry)
    }

    /// Unlisted tools of the relay can still be called.
    fn reveals(&self, caller: &Caller, entry: &EntryRef<'_>) -> bool {
        by_relay(caller) == (entry.backend == BACKEND) && self.allows(|inner| inner.reveals(caller, entry))
    }

    fn keeps(&self, caller: &Caller, entry: &EntryRef<'_>) -> bool {
        by_relay(caller) == (entry.backend == BACKEND) && self.allows(|inner| inner.keeps(caller, entry))
    }
}
