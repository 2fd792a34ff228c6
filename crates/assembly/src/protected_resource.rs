//! Describes the MCP endpoint as a protected resource: its address and the servers that issue tokens for it.

use crate::authorization::Authorization;
use signalbox_config::{Auth, Config};
use signalbox_engine::resource_address::ResourceAddress;
use signalbox_govern::ProtectedResource;
use signalbox_transport::http_front::STREAM_PATH;

/// Returns the address of the resource: `auth.resource`, else the one web address that the tokens of all issuers are
/// for, else `url`, by which clients know the MCP endpoint.
pub(crate) fn address(config: &Config, url: &str) -> ResourceAddress {
    let configured = config.auth.known_resource();
    let address = ResourceAddress::fixed(configured.unwrap_or(url)).with_stream(&config.listen.path, STREAM_PATH);
    match configured {
        None => address.known_as(&config.gateway.allowed_hosts),
        Some(_) if address.is_local() => address.known_as(&[]),
        Some(_) => address,
    }
}

/// Returns the protected resource, if a server issues tokens for it.
pub(crate) fn protected(
    auth: &Auth,
    own: Option<&Authorization>,
    address: ResourceAddress,
) -> Option<ProtectedResource> {
    let mut servers: Vec<String> = own.into_iter().map(|own| own.url().to_owned()).collect();
    let others = auth.authorization_servers.iter().filter(|other| own.is_none_or(|own| own.url() != *other));
    servers.extend(others.cloned());
    if servers.is_empty() {
        return None;
    }
    let mut scopes = auth.required_scopes.clone();
    for (scope, _) in auth.scopes.iter().chain(&auth.scope_hierarchy) {
        if !scopes.contains(scope) {
            scopes.push(scope.clone());
        }
    }
    Some(ProtectedResource {
        address,
        authorization_servers: servers,
        required_scopes: auth.required_scopes.clone(),
        scopes_supported: scopes,
        documentation: None,
    })
}
