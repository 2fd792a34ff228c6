//! Connectors of backends with addresses: HTTP, HTTP+SSE and WebSocket.

use crate::assemble::AssembleError;
use crate::backend_auth;
use signalbox_config::{BackendConfig, BackendTarget, EraSetting, UrlTransport};
use signalbox_oauth_client::OauthClientState;
use signalbox_runtime::Connector;
use signalbox_transport::auto_back::AutoConnector;
use signalbox_transport::http_back::{HttpConnector, HttpSpec};
use signalbox_transport::many_back::{Address, ManyConnector, ManySpec};
use signalbox_transport::sse_back::SseConnector;
use signalbox_transport::ws_back::{WsConnector, WsSpec};
use signalbox_wire::Limits;
use std::sync::Arc;

/// Returns the connector of a backend with several addresses. It tries the next address before it retries one.
pub(crate) fn many(
    backend: &BackendConfig,
    oauth: &Arc<OauthClientState>,
    limits: &Limits,
) -> Result<Arc<dyn Connector>, AssembleError> {
    let mut addresses = Vec::new();
    for (url, weight) in &backend.addresses.all {
        let label = url.authority().map_or_else(String::new, |authority| authority.as_str().to_owned());
        addresses.push(Address { label, weight: *weight, connector: single(backend, url, oauth, 0, limits)? });
    }
    let spec = ManySpec {
        name: backend.name.as_str().into(),
        balance: backend.addresses.balance,
        recovery: backend.failing.breaker.unwrap_or_default().recovery,
        retries: backend.failing.retries,
    };
    Ok(Arc::new(ManyConnector::new(spec, addresses)))
}

/// Returns the connector of a backend with one address.
pub(crate) fn single(
    backend: &BackendConfig,
    url: &http::Uri,
    oauth: &Arc<OauthClientState>,
    retries: u32,
    limits: &Limits,
) -> Result<Arc<dyn Connector>, AssembleError> {
    let BackendTarget::Url { headers, transport, tls, .. } = &backend.target else {
        return Err(AssembleError::NoAddress);
    };
    let headers = headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let credentials = backend_auth::credentials(backend, oauth);
    if is_websocket(url) {
        let spec = WsSpec {
            headers,
            credentials,
            max_message: limits.message,
            tls: tls.clone(),
            ..WsSpec::new(backend.name.as_str(), url.to_string())
        };
        return Ok(Arc::new(WsConnector::new(spec)?));
    }
    let spec = HttpSpec {
        headers,
        credentials,
        limits: *limits,
        retries,
        tls: tls.clone(),
        ..HttpSpec::new(backend.name.as_str(), url.to_string())
    };
    Ok(match transport {
        UrlTransport::Sse => Arc::new(SseConnector::new(spec)?),
        // HTTP+SSE exists in the old era only. It is not probed for at several addresses.
        UrlTransport::Auto if backend.era != EraSetting::New && backend.addresses.all.is_empty() => {
            Arc::new(AutoConnector::new(spec)?)
        }
        UrlTransport::Auto | UrlTransport::Http => Arc::new(HttpConnector::new(spec)?),
    })
}

fn is_websocket(url: &http::Uri) -> bool {
    url.scheme_str().is_some_and(|scheme| ["ws", "wss"].iter().any(|one| scheme.eq_ignore_ascii_case(one)))
}
