//! The credentials that go with requests to backends.

use signalbox_config::{BackendConfig, BackendTarget, Config};
use signalbox_oauth::{AuthSpec, OauthCredentials, OauthDesk, StaticCredentials, Vault};
use signalbox_runtime::{BackendCredentials, Gateway};
use std::sync::Arc;

/// What the OAuth clients of all backends share. Nothing is read or opened before one of them needs it.
#[must_use]
pub fn desk(config: &Config) -> Arc<OauthDesk> {
    let vault = Vault::of(&config.data_dir, config.outbound.key_command.clone());
    OauthDesk::new(config.outbound.clone(), vault)
}

/// The credentials of a backend, if any are configured.
pub(crate) fn credentials(backend: &BackendConfig, desk: &Arc<OauthDesk>) -> Option<Arc<dyn BackendCredentials>> {
    // Of several addresses the first one names the server.
    let BackendTarget::Url { auth, url, .. } = &backend.target else { return None };
    Some(match auth.as_deref()? {
        AuthSpec::Static(spec) => Arc::new(StaticCredentials::new(&backend.name, spec.clone())),
        AuthSpec::Oauth(spec) => {
            let spec = spec.as_ref().clone();
            Arc::new(OauthCredentials::new(&backend.name, &url.to_string(), spec, Arc::clone(desk)))
        }
    })
}

/// A backend that is down because nobody has signed in is tried again as soon as somebody has.
pub(crate) fn follow_sign_ins(desk: &OauthDesk, gateway: &Arc<Gateway>) {
    let gateway = Arc::downgrade(gateway);
    desk.on_sign_in(move |backend, outcome| {
        let backends = gateway.upgrade().map(|gateway| gateway.backends());
        if let (Some(backend), Ok(())) = (backends.as_ref().and_then(|all| all.get(backend)), outcome) {
            backend.signed_in();
        }
    });
}

/// Says at the start which addresses are exceptions.
pub(crate) fn tell_exceptions(config: &Config) {
    if !config.outbound.allow.is_empty() {
        let allowed = &config.outbound.allow;
        tracing::warn!(
            ?allowed,
            "OAuth requests may go to these addresses although they may not be public or have no TLS"
        );
    }
}
