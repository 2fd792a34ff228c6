//! Pages of sign-ins at backends, on the gateway's own listener.
//!
//! A person who completes a sign-in lends an account to the caller that asked for it. So link and callback must be used
//! by one person in one browser: a cookie ties them together, and a browser that can prove to be the caller must do so,
//! both times. If it cannot (the caller has an API key, a token of another issuer, or signs its messages), a page names
//! the caller and asks for confirmation.

use super::administration::AuditedAction;
use super::routes::ADMIN;
use super::{ApiState, authorization};
use http::header::{LOCATION, SET_COOKIE};
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::json;
use signalbox_assembly::authorization::{Authorization, BrowserUser};
use signalbox_assembly::backend_auth::stray_link;
use signalbox_audit::{AdminOrigin, AdminOutcome};
use signalbox_config::auth_server::LOCAL_USERS;
use signalbox_engine::Proof;
use signalbox_engine::audit::IntentWrite;
use signalbox_engine::fault::{Fault, FaultKind};
use signalbox_oauth_client::oauth_client_state::BrowserResponse;
use signalbox_oauth_client::oauth_credentials::SHARED_SUBJECT;
use signalbox_oauth_client::page_host::Place;
use signalbox_oauth_client::sign_in::TokenHolder;
use signalbox_transport::router::{HandlerResult, RouteFault, RoutedAnswer, RoutedRequest};
use std::sync::Arc;

/// Audit action of a sign-in at a backend. `signalbox login` uses it too.
const LOGIN: &str = "backend.login";

const OF_ANOTHER: &str = "this address was made for another user";

/// State of the sign-in pages, with the server at which visitors can prove their identity.
pub(super) struct SignInPages {
    pub served: Arc<ApiState>,
    /// The gateway's own authorization server, if it is enabled.
    pub server: Option<Arc<Authorization>>,
}

impl SignInPages {
    /// Returns the users that are signed in in this browser.
    pub(super) fn visitors(&self, request: &RoutedRequest) -> Vec<BrowserUser> {
        self.server.as_ref().map(|server| server.visitors(&authorization::cookies(request))).unwrap_or_default()
    }

    /// Classifies the person in front of this browser with regard to the holder.
    fn opener(&self, request: &RoutedRequest, holder: &TokenHolder) -> Opener {
        let config = self.served.reloader.current();
        let identity = request.caller.identity();
        let subject = holder.subject.as_str();
        let govern = &self.served.app().govern;
        let may_act = govern.refusal_of_caller(&request.caller).is_none();
        let mut visitors = self.visitors(request);
        visitors.retain(|one| govern.permissions.stops_principal(&one.principal).is_none());
        let proved = (identity.proof != Proof::Unproved && may_act).then(|| identity.principal.as_str());
        let local_user = subject.strip_prefix(&format!("{LOCAL_USERS}:"));
        judge(&Evidence {
            subject,
            proved,
            is_admin: identity.has_role(ADMIN) && may_act,
            has_visitors: !visitors.is_empty(),
            visitor_is_holder: visitors
                .iter()
                .any(|one| is_holder(&one.principal, one.standing.has_role(ADMIN), subject)),
            is_local: identity.address.is_some_and(|address| address.ip().to_canonical().is_loopback()),
            is_required: config.auth.required,
            has_server: self.server.is_some(),
            can_sign_in: local_user
                .is_some_and(|name| self.server.as_ref().is_some_and(|server| server.has_user(name))),
            has_certificate: subject.starts_with("cert:")
                || config.auth.certificates.iter().any(|rule| rule.principal == subject),
        })
    }
}

/// Audit records of sign-ins at backends. They contain no tickets and no codes.
impl SignInPages {
    /// Returns the principals that the person in front of this browser has proved to be.
    fn proved(&self, request: &RoutedRequest) -> Vec<String> {
        let identity = request.caller.identity();
        let caller = (identity.proof != Proof::Unproved).then(|| identity.principal.as_str().to_owned());
        caller.into_iter().chain(self.visitors(request).into_iter().map(|one| one.principal)).collect()
    }

    /// Refuses a person who may not act for the holder. For a shared token, names the command that needs no browser of
    /// an administrator.
    fn refuse_other(&self, request: &RoutedRequest, holder: Option<&TokenHolder>) -> RouteFault {
        let shared = holder.filter(|holder| holder.subject == SHARED_SUBJECT).map(|holder| {
            let backend = &holder.backend;
            format!("only an administrator signs in for all callers, here or by `signalbox login {backend}`")
        });
        self.refuse(request, holder, shared.as_deref().unwrap_or(OF_ANOTHER))
    }

    /// Refuses a person and records the refusal.
    fn refuse(&self, request: &RoutedRequest, holder: Option<&TokenHolder>, why: &str) -> RouteFault {
        self.record(request, holder, StatusCode::FORBIDDEN.as_u16(), why);
        RouteFault::new(StatusCode::FORBIDDEN, why)
    }

    /// Records a link that belongs to no sign-in, and otherwise a page that refuses to continue.
    fn record_link(&self, request: &RoutedRequest, holder: Option<&TokenHolder>, page: &BrowserResponse) {
        match (holder, page) {
            (None, BrowserResponse::Text { status, .. }) => {
                let fault = stray_link(request.method.as_str());
                self.served.app().gateway.refused(&request.caller, Some(*status), &fault, None);
            }
            _ => self.record_refusal(request, holder, page),
        }
    }

    /// Records a page that refuses to continue.
    fn record_refusal(&self, request: &RoutedRequest, holder: Option<&TokenHolder>, page: &BrowserResponse) {
        if let BrowserResponse::Text { status, text } = page {
            self.record(request, holder, *status, text);
        }
    }

    /// Records a refusal. Any visitor can cause one, so it is rate-limited like other refusals.
    fn record(&self, request: &RoutedRequest, holder: Option<&TokenHolder>, status: u16, why: &str) {
        let of = holder.map(|holder| format!(" ({} at `{}`", holder.subject, holder.backend));
        let by = self.proved(request).join(", ");
        let named = match (of, by.is_empty()) {
            (None, _) => String::new(),
            (Some(of), true) => format!("{of})"),
            (Some(of), false) => format!("{of}; opened by {by})"),
        };
        let kind = if status == 403 { FaultKind::Denied } else { FaultKind::InvalidRequest };
        let fault = Fault::new(kind, format!("{LOGIN}: {why}{named}"));
        self.served.app().gateway.refused(&request.caller, Some(status), &fault, None);
    }

    /// Records that a person has lent the holder an account at a backend.
    fn record_end(&self, request: &RoutedRequest, holder: &TokenHolder) -> Option<IntentWrite> {
        let proved = self.proved(request);
        let who = if holder.subject == SHARED_SUBJECT { proved.first() } else { Some(&holder.subject) };
        let after = json!({"user": holder.subject, "proved": proved});
        let (caller, origin) = (&request.caller, AdminOrigin::Api);
        let action = AuditedAction { name: LOGIN, target: &holder.backend };
        let who = who.map(String::as_str);
        self.served.administer_as(who, caller, origin, action, Some(&after), AdminOutcome::Done)
    }
}

/// Evidence about a browser that opens a link or returns from the authorization server of a backend.
#[derive(Copy, Clone, Debug)]
struct Evidence<'a> {
    /// Principal that the token is for.
    subject: &'a str,
    /// Principal proved by the request itself, by a certificate or a header.
    proved: Option<&'a str>,
    /// True if `proved` is an administrator.
    is_admin: bool,
    /// True if a user is signed in in this browser.
    has_visitors: bool,
    visitor_is_holder: bool,
    /// True if the browser is on this machine, or behind a proxy on it.
    is_local: bool,
    /// True if callers must authenticate.
    is_required: bool,
    /// True if people can sign in at the gateway itself.
    has_server: bool,
    /// True if the holder can sign in at the gateway.
    can_sign_in: bool,
    /// True if the holder is authenticated by a certificate.
    has_certificate: bool,
}

/// Person in front of a browser, as far as a sign-in is concerned.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Opener {
    /// The holder, with a proof of identity.
    Holder,
    /// A person who cannot prove to be the holder and must confirm.
    Unproved,
    /// A person who must sign in as the holder, and may be signed in as another user.
    MustSignIn { is_other: bool },
    /// A principal other than the holder.
    Other,
}

fn judge(evidence: &Evidence<'_>) -> Opener {
    let is_shared = evidence.subject == SHARED_SUBJECT;
    let must_sign_in = Opener::MustSignIn { is_other: evidence.has_visitors };
    let has_proved = evidence.proved.is_some_and(|proved| is_holder(proved, evidence.is_admin, evidence.subject));
    if evidence.visitor_is_holder || has_proved {
        return Opener::Holder;
    }
    if evidence.can_sign_in || (is_shared && evidence.has_server && evidence.is_required) {
        return must_sign_in;
    }
    // A proof of another identity is worse than none.
    if evidence.proved.is_some() || evidence.has_visitors || evidence.has_certificate {
        return Opener::Other;
    }
    // Unproved callers are those of this machine. Behind a proxy every client seems to be local.
    let is_machine = evidence.subject == "anonymous" || evidence.subject.starts_with("local:");
    let may_be_local = is_machine || (is_shared && !evidence.is_required);
    match (may_be_local, is_shared) {
        (true, _) if evidence.is_local => Opener::Unproved,
        (true, _) | (false, true) => Opener::Other,
        (false, false) => Opener::Unproved,
    }
}

/// Returns true if a token is this principal's own, or is shared by all callers and the principal is an administrator.
fn is_holder(principal: &str, is_admin: bool, subject: &str) -> bool {
    principal == subject || (subject == SHARED_SUBJECT && is_admin)
}

/// Shows the page of a ticket, or redirects its holder to the authorization server.
pub(super) async fn connect(pages: Arc<SignInPages>, request: RoutedRequest) -> HandlerResult {
    let oauth = &pages.served.app().oauth;
    let ticket = request.segment("ticket");
    let holder = oauth.holder(ticket, Place::Listener);
    let opener = holder.as_ref().map(|holder| pages.opener(&request, holder));
    match (opener, &pages.server) {
        (Some(Opener::MustSignIn { is_other }), Some(server)) => {
            let reply = server.visit(&request.path, is_other, authorization::address(&request));
            if is_other {
                pages.record(&request, holder.as_ref(), StatusCode::FORBIDDEN.as_u16(), OF_ANOTHER);
                return Ok(authorization::answer(reply));
            }
            Ok(authorization::recorded(&pages.served, &request.caller, authorization::BEGIN, reply))
        }
        (Some(Opener::Other | Opener::MustSignIn { .. }), _) => Err(pages.refuse_other(&request, holder.as_ref())),
        (opener, _) => {
            // A visitor may not know that all callers would get the account, so even an administrator must confirm.
            let is_own = holder.as_ref().is_some_and(|holder| holder.subject != SHARED_SUBJECT);
            let is_holder = is_own && opener == Some(Opener::Holder);
            let page = oauth.connect(ticket, Place::Listener, is_holder);
            pages.record_link(&request, holder.as_ref(), &page);
            Ok(render(&page))
        }
    }
}

/// Redirects a person who has confirmed to the authorization server.
pub(super) async fn confirm(pages: Arc<SignInPages>, request: RoutedRequest) -> HandlerResult {
    let oauth = &pages.served.app().oauth;
    let ticket = request.segment("ticket");
    let holder = oauth.holder(ticket, Place::Listener);
    match holder.as_ref().map(|holder| pages.opener(&request, holder)) {
        Some(Opener::Other | Opener::MustSignIn { .. }) => Err(pages.refuse_other(&request, holder.as_ref())),
        Some(Opener::Holder | Opener::Unproved) | None => {
            let page = oauth.confirm(ticket, Place::Listener, &authorization::cookies(&request));
            pages.record_link(&request, holder.as_ref(), &page);
            Ok(render(&page))
        }
    }
}

/// Handles the answer of the authorization server, from the person and browser that were sent there: a code brought by
/// another person would be for that person's account.
pub(super) async fn callback(pages: Arc<SignInPages>, request: RoutedRequest) -> HandlerResult {
    let oauth = &pages.served.app().oauth;
    let holder = oauth.returning(request.query.get("state").unwrap_or_default(), Place::Listener);
    let opener = holder.as_ref().map(|holder| pages.opener(&request, holder));
    if matches!(opener, Some(Opener::Other | Opener::MustSignIn { .. })) {
        return Err(pages.refuse(&request, holder.as_ref(), "this answer belongs to another user's sign-in"));
    }
    let pairs = request.query.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let page = oauth.callback(pairs, Place::Listener, &authorization::cookies(&request)).await;
    let written = match (&page, &holder) {
        (BrowserResponse::Text { status: 200, .. }, Some(holder)) => pages.record_end(&request, holder),
        _ => {
            pages.record_refusal(&request, holder.as_ref(), &page);
            None
        }
    };
    Ok(render(&page).once_recorded(written))
}

fn render(page: &BrowserResponse) -> RoutedAnswer {
    let text = "text/plain; charset=utf-8";
    let (mut answer, cookie) = match page {
        BrowserResponse::Redirect { url, cookie } => {
            let mut answer = RoutedAnswer::whole(StatusCode::SEE_OTHER, text, "");
            if let Ok(url) = HeaderValue::from_str(url) {
                answer.headers.insert(LOCATION, url);
            }
            (answer, cookie.as_ref())
        }
        BrowserResponse::Ask { html, cookie } => {
            (RoutedAnswer::whole(StatusCode::OK, "text/html; charset=utf-8", html.clone()), Some(cookie))
        }
        BrowserResponse::Text { status, text: sentence } => {
            let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::BAD_REQUEST);
            (RoutedAnswer::whole(status, text, sentence.clone()), None)
        }
    };
    if let Some(cookie) = cookie.and_then(|cookie| HeaderValue::from_str(cookie).ok()) {
        answer.headers.insert(SET_COOKIE, cookie);
    }
    for (name, value) in page.guards() {
        if let Ok(value) = HeaderValue::from_str(&value) {
            answer.headers.insert(HeaderName::from_static(name), value);
        }
    }
    answer
}

#[cfg(test)]
mod tests;
