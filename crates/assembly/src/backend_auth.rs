//! Credentials for requests to backends, and the pages on which people sign in at backends.

use crate::auditing::Auditing;
use serde_json::json;
use signalbox_audit::{AdminAction, AdminOrigin, AdminOutcome};
use signalbox_config::{BackendConfig, BackendTarget, Config, Transport};
use signalbox_engine::{Caller, Fault, FaultKind, Identity};
use signalbox_oauth_client::oauth_client_state::CONNECT;
use signalbox_oauth_client::page_host::{PageHost, Place};
use signalbox_oauth_client::web_address::WebAddress;
use signalbox_oauth_client::{AuthSpec, OauthClientState, OauthCredentials, StaticCredentials, Vault};
use signalbox_runtime::{BackendCredentials, Gateway};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// Creates the state that the OAuth clients of all backends share. Nothing is read or opened until one of them needs
/// it.
#[must_use]
pub fn oauth(config: &Config, pages: PageHost) -> Arc<OauthClientState> {
    let vault = Vault::of(&config.data_dir, config.outbound.key_command.clone());
    OauthClientState::new(config.outbound.clone(), vault, pages)
}

/// Returns the host of the sign-in pages for a gateway that listens at this address.
#[must_use]
pub fn page_host(config: &Config, address: SocketAddr) -> PageHost {
    if let Some(url) = &config.outbound.public_url {
        return PageHost::Public(url.clone());
    }
    let listen = &config.listen;
    let named = config.auth.server.as_ref().and_then(|server| server.issuer.as_ref()).or(config.auth.resource.as_ref());
    let named = named.and_then(|url| WebAddress::read(url)).map(|address| address.origin);
    let named = named.filter(|origin| origin.starts_with("https://"));
    // Authorization codes come back through the browser, so they must go by TLS or stay on the machine.
    let own = match (listen.transport, listen.tls.is_some()) {
        (Transport::Tcp, _) => None,
        (_, true) => Some(format!("https://{}", local(address))),
        (_, false) => local(address).ip().is_loopback().then(|| format!("http://{}", local(address))),
    };
    PageHost::Unnamed { base: own.map(|own| named.unwrap_or(own)), is_proof_required: config.auth.required }
}

/// Returns the address at which this machine reaches a listener.
fn local(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Returns the credentials of a backend, if any are configured.
pub(crate) fn credentials(
    backend: &BackendConfig,
    oauth: &Arc<OauthClientState>,
) -> Option<Arc<dyn BackendCredentials>> {
    // Of several addresses the first one identifies the server.
    let BackendTarget::Url { auth, url, .. } = &backend.target else { return None };
    Some(match auth.as_deref()? {
        AuthSpec::Static(spec) => Arc::new(StaticCredentials::new(&backend.name, spec.clone())),
        AuthSpec::Oauth(spec) => {
            let spec = spec.as_ref().clone();
            Arc::new(OauthCredentials::new(&backend.name, &url.to_string(), spec, Arc::clone(oauth)))
        }
    })
}

/// Returns the fault by which a link of no sign-in is recorded. The link is the credential, and stays out of the
/// record: one that was mistyped is almost a good one.
#[must_use]
pub fn stray_link(method: &str) -> Fault {
    let path = CONNECT.trim_end_matches('/');
    let text = format!("{method} {path}: the link is none of this gateway, or no longer good");
    Fault::new(FaultKind::Unauthenticated, text).with_str("error", "invalid_link")
}

/// Retries a backend that waits for a sign-in once the sign-in has succeeded, and records sign-ins at the loopback
/// port. The pages of the gateway's own listener record theirs with the browser's address.
pub(crate) fn follow_sign_ins(oauth: &OauthClientState, gateway: &Arc<Gateway>, audit: Option<&Arc<Auditing>>) {
    let strayed = Arc::downgrade(gateway);
    oauth.on_stray_link(move |method, address| {
        if let Some(gateway) = strayed.upgrade() {
            let unknown = Caller::anonymous("http");
            let caller = Caller::new(Identity { address, ..unknown.identity().clone() });
            gateway.refused(&caller, Some(404), &stray_link(method), None);
        }
    });
    let (gateway, audit) = (Arc::downgrade(gateway), audit.cloned());
    oauth.on_sign_in(move |ended| {
        let mut recorded = None;
        if let (Some(audit), Place::Loopback, Some(holder)) = (&audit, ended.place, ended.holder) {
            let why = ended.outcome.map_err(ToString::to_string);
            recorded = Some(audit.administer_confirmed(&AdminAction {
                who: &holder.subject,
                address: None,
                origin: AdminOrigin::Api,
                action: "backend.login",
                target: &holder.backend,
                before: None,
                after: Some(&json!({"user": holder.subject, "place": "loopback"})),
                outcome: why.as_ref().map_or_else(|why| AdminOutcome::Failed(why), |()| AdminOutcome::Done),
            }));
        }
        let backends = gateway.upgrade().map(|gateway| gateway.backends());
        if let Some(backend) = backends.as_ref().and_then(|all| all.get(ended.backend())) {
            match ended.outcome {
                Ok(()) => backend.signed_in(),
                Err(_) => backend.sign_in_failed(),
            }
        }
        recorded
    });
}

/// Logs a warning with the addresses that are exempt from the rules for outgoing requests.
pub(crate) fn tell_exceptions(config: &Config) {
    if !config.outbound.allow.is_empty() {
        let allowed: Vec<String> = config.outbound.allow.iter().map(ToString::to_string).collect();
        tracing::warn!(
            allowed = allowed.join(", "),
            "OAuth requests may go to these addresses although they may not be public or have no TLS"
        );
    }
}
