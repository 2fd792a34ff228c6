//! HTTP routes of the gateway's own authorization server.

use super::ApiState;
use super::administration::AuditedAction;
use http::header::{CONTENT_TYPE, COOKIE};
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::{Value, json};
use signalbox_assembly::authorization::Authorization;
use signalbox_audit::{AdminOrigin, AdminOutcome};
use signalbox_config::auth_server::LOCAL_USERS;
use signalbox_engine::Caller;
use signalbox_engine::audit::IntentWrite;
use signalbox_engine::fault::{Fault, FaultKind};
use signalbox_oauth_client::form;
use signalbox_oauth_server::{AuthEvent, Reply};
use signalbox_transport::router::{HandlerResult, RouteFault, RoutedAnswer, RoutedRequest};
use std::net::IpAddr;
use std::sync::Arc;

/// Maximum size of a form or registration in bytes.
pub(super) const MAX_BODY: usize = 16 * 1024;

/// Audit action for opening the first page of a sign-in.
pub(super) const BEGIN: &str = "sign_in.begin";

const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";

/// OAuth error codes for an invalid code, token or client.
const BAD_CREDENTIALS: [&str; 2] = ["invalid_grant", "invalid_client"];

/// Authorization server, and the process whose audit log records its events.
pub(super) struct OauthRoutes {
    pub served: Arc<ApiState>,
    pub server: Arc<Authorization>,
}

impl OauthRoutes {
    /// Returns the test for users that a switch has turned off.
    fn switched_off(&self) -> impl Fn(&str) -> bool + Sync {
        let permissions = &self.served.app().govern.permissions;
        |name| permissions.stops_principal(&format!("{LOCAL_USERS}:{name}")).is_some()
    }
}

pub(super) async fn metadata(routes: Arc<OauthRoutes>, _: RoutedRequest) -> HandlerResult {
    Ok(answer(routes.server.metadata()))
}

pub(super) async fn key_set(routes: Arc<OauthRoutes>, _: RoutedRequest) -> HandlerResult {
    Ok(answer(routes.server.key_set()))
}

pub(super) async fn authorize(routes: Arc<OauthRoutes>, request: RoutedRequest) -> HandlerResult {
    let pairs: Vec<(&str, &str)> = request.query.iter().collect();
    let reply = routes.server.authorize(&form::write(&pairs), address(&request)).await;
    Ok(recorded(&routes.served, &request.caller, BEGIN, reply))
}

pub(super) async fn sign_in(routes: Arc<OauthRoutes>, request: RoutedRequest) -> HandlerResult {
    let (cookies, address, caller) = (cookies(&request), address(&request), request.caller.clone());
    let form = body(request, FORM).await?;
    let reply = routes.server.sign_in(&form, &cookies, address, &routes.switched_off()).await;
    Ok(recorded(&routes.served, &caller, "sign_in.password", reply))
}

pub(super) async fn consent(routes: Arc<OauthRoutes>, request: RoutedRequest) -> HandlerResult {
    let (cookies, caller) = (cookies(&request), request.caller.clone());
    let form = body(request, FORM).await?;
    let reply = routes.server.consent(&form, &cookies, &routes.switched_off()).await;
    Ok(recorded(&routes.served, &caller, "sign_in.consent", reply))
}

pub(super) async fn openid(routes: Arc<OauthRoutes>, request: RoutedRequest) -> HandlerResult {
    let pairs: Vec<(&str, &str)> = request.query.iter().collect();
    let reply = routes.server.openid(&pairs, &cookies(&request), &routes.switched_off()).await;
    Ok(recorded(&routes.served, &request.caller, "sign_in.openid", reply))
}

pub(super) async fn token(routes: Arc<OauthRoutes>, request: RoutedRequest) -> HandlerResult {
    let caller = request.caller.clone();
    let reply = routes.server.token(&body(request, FORM).await?, &routes.switched_off()).await;
    Ok(recorded(&routes.served, &caller, "token.issue", reply))
}

pub(super) async fn register(routes: Arc<OauthRoutes>, request: RoutedRequest) -> HandlerResult {
    let (address, caller) = (address(&request), request.caller.clone());
    let reply = routes.server.register(body(request, JSON).await?.as_bytes(), address).await;
    Ok(recorded(&routes.served, &caller, "client.register", reply))
}

pub(super) async fn revoke(routes: Arc<OauthRoutes>, request: RoutedRequest) -> HandlerResult {
    let caller = request.caller.clone();
    let reply = routes.server.revoke(&body(request, FORM).await?).await;
    Ok(recorded(&routes.served, &caller, "token.revoke", reply))
}

/// Records the event of a reply and returns the response, which waits for the record.
pub(super) fn recorded(served: &ApiState, caller: &Caller, action: &str, reply: Reply) -> RoutedAnswer {
    let written = reply.event.as_ref().and_then(|event| record(served, caller, action, reply.status, event));
    answer(reply).once_recorded(written)
}

/// Records an event. Events that any client can cause at will are recorded like other refusals: a limited number per
/// address and second, and the rest is counted.
fn record(served: &ApiState, caller: &Caller, action: &str, status: u16, event: &AuthEvent) -> Option<IntentWrite> {
    let AuthEvent { person, tried, client, about, refused } = event;
    if let (Some(why), None) = (refused, person) {
        let client = client.as_ref().map(|client| format!("client {client}"));
        let tried = tried.as_ref().map(|name| format!("as {LOCAL_USERS}:{name}"));
        let named: Vec<String> = [client, tried].into_iter().flatten().collect();
        let named = if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) };
        let fault = fault(status, why, format!("{action}: {why}{named}"));
        served.app().gateway.refused(caller, Some(status), &fault, None);
        return None;
    }
    let mut after = if about.is_object() { about.clone() } else { json!({}) };
    if let Some(members) = after.as_object_mut() {
        members.insert("client".to_owned(), json!(client));
    }
    let who = person.as_ref().map(|name| format!("{LOCAL_USERS}:{name}"));
    let outcome = refused.as_deref().map_or(AdminOutcome::Done, AdminOutcome::Denied);
    let target = client.as_deref().unwrap_or_default();
    let after: Option<&Value> = Some(&after);
    let action = AuditedAction { name: action, target };
    served.administer_as(who.as_deref(), caller, AdminOrigin::Api, action, after, outcome)
}

/// Returns the fault by which a refused step is recorded.
fn fault(status: u16, why: &str, text: String) -> Fault {
    let is_bad_credential = status == 401 || BAD_CREDENTIALS.iter().any(|code| why.starts_with(code));
    match status {
        429 => Fault::new(FaultKind::RateLimited, text),
        500.. => Fault::new(FaultKind::Overloaded, text),
        _ if is_bad_credential => Fault::new(FaultKind::Unauthenticated, text).with_str("error", "invalid_grant"),
        _ => Fault::new(FaultKind::InvalidRequest, text),
    }
}

pub(super) fn address(request: &RoutedRequest) -> Option<IpAddr> {
    request.caller.identity().address.map(|address| address.ip())
}

/// Returns all cookies. A browser may send them in several headers.
pub(super) fn cookies(request: &RoutedRequest) -> String {
    let all = request.headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    all.collect::<Vec<_>>().join(";")
}

/// Returns the body, if it is text of this type.
pub(super) async fn body(request: RoutedRequest, kind: &'static str) -> Result<String, RouteFault> {
    let given = request.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let given = given.split(';').next().unwrap_or_default().trim();
    if !given.eq_ignore_ascii_case(kind) {
        return Err(RouteFault::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, format_args!("the body must be {kind}")));
    }
    let text = request.body.bytes().await?;
    String::from_utf8(text.to_vec()).map_err(|_| super::bad("the body is not UTF-8"))
}

pub(super) fn answer(reply: Reply) -> RoutedAnswer {
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = RoutedAnswer::whole(status, reply.kind, reply.body);
    for (name, value) in reply.headers {
        if let Ok(value) = HeaderValue::try_from(value) {
            answer.headers.append(HeaderName::from_static(name), value);
        }
    }
    answer
}
