//! Probe of a server without a credential, to get its challenge.

use crate::error::OauthError;
use bytes::Bytes;
use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use signalbox_transport::tls::BackTlsSpec;
use signalbox_transport::web_client::{self, DialGuard, WebRequest};
use std::net::IpAddr;

/// Request that every server answers, of old revisions and new.
const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"#,
    r#""clientInfo":{"name":"signalbox","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}}}"#
);

/// Guard that permits any address: the URL of a backend comes from the configuration.
struct AnyAddress;

impl DialGuard for AnyAddress {
    fn may_dial(&self, _: &str, _: IpAddr) -> bool {
        true
    }

    fn may_be_plain(&self, _: &str) -> bool {
        true
    }
}

/// Returns the challenges of the server at a configured URL; none if it requires no credential.
///
/// # Errors
/// If it is unreachable.
pub async fn challenges(url: &str, tls: &BackTlsSpec) -> Result<Vec<String>, OauthError> {
    let request = WebRequest {
        method: Method::POST,
        url: url.to_owned(),
        headers: vec![
            (ACCEPT, HeaderValue::from_static("application/json, text/event-stream")),
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        ],
        body: Bytes::from_static(INITIALIZE.as_bytes()),
    };
    let answer = web_client::fetch(request, &AnyAddress, tls).await?;
    Ok(if answer.status == 401 { answer.challenges } else { Vec::new() })
}
