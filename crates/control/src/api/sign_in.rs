//! The pages of sign-ins at backends, where browsers reach the gateway's own listener (`auth.outbound.public_url`).

use super::routes::ADMIN;
use super::{Served, authorization};
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, StatusCode};
use signalbox_assembly::authorization::{Authorization, Visitor};
use signalbox_engine::Proof;
use signalbox_oauth::oauth_credentials::EVERYBODY;
use signalbox_oauth::oauth_desk::Page;
use signalbox_oauth::sign_in::Holder;
use signalbox_transport::router::{Answered, Problem, RoutedAnswer, RoutedRequest};
use std::sync::Arc;

/// The pages, and where the people in front of browsers can prove who they are.
pub(super) struct SignInPages {
    /// The process.
    pub served: Arc<Served>,
    /// The gateway's own authorization server, if it is on.
    pub server: Option<Arc<Authorization>>,
}

impl SignInPages {
    /// Who has signed in in this browser.
    pub(super) fn visitors(&self, request: &RoutedRequest) -> Vec<Visitor> {
        self.server.as_ref().map(|server| server.visitors(&authorization::cookies(request))).unwrap_or_default()
    }

    /// True for a browser that has to prove who it is, and has not.
    fn must_prove(&self, request: &RoutedRequest) -> bool {
        let required = self.served.reloader.current().auth.required;
        self.server.is_some() && required && request.caller.identity().proof == Proof::Unproved
    }
}

/// Sends whoever opens the address of a ticket on to the authorization server. The address is for the caller that it was made for, or, while
/// callers do not say who they are, for the machine that the gateway runs on.
pub(super) async fn connect(pages: Arc<SignInPages>, request: RoutedRequest) -> Answered {
    let desk = &pages.served.app().desk;
    if desk.outbound.public_url.is_none() {
        return Err(Problem::NothingHere);
    }
    let ticket = request.segment("ticket");
    match desk.holder(ticket) {
        Some(holder) if pages.must_prove(&request) => {
            let visitors = pages.visitors(&request);
            match &pages.server {
                Some(server) if !visitors.iter().any(|one| is_holder(one, &holder)) => {
                    let address = authorization::address(&request);
                    Ok(authorization::answer(server.visit(&request.path, !visitors.is_empty(), address)))
                }
                _ => Ok(render(&desk.connect(ticket))),
            }
        }
        Some(holder) if !may_open(&request, &holder) => {
            Err(Problem::new(StatusCode::FORBIDDEN, "this address was made for somebody else"))
        }
        _ => Ok(render(&desk.connect(ticket))),
    }
}

/// Takes the answer of the authorization server, from whoever was sent there: a code that somebody else brings would be for somebody
/// else's account.
pub(super) async fn callback(pages: Arc<SignInPages>, request: RoutedRequest) -> Answered {
    let desk = &pages.served.app().desk;
    if desk.outbound.public_url.is_none() {
        return Err(Problem::NothingHere);
    }
    if pages.must_prove(&request) {
        let holder = desk.returning(request.query.get("state").unwrap_or_default());
        if !holder.is_some_and(|holder| pages.visitors(&request).iter().any(|one| is_holder(one, &holder))) {
            return Err(Problem::new(StatusCode::FORBIDDEN, "this answer belongs to somebody else's sign-in"));
        }
    }
    let pairs = request.query.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Ok(render(&desk.callback(pairs).await))
}

/// Whether the token is the visitor's own, or one of all callers and the visitor an administrator.
fn is_holder(visitor: &Visitor, holder: &Holder) -> bool {
    visitor.principal == holder.subject || (holder.subject == EVERYBODY && visitor.standing.has_role(ADMIN))
}

/// A browser behind a proxy on this machine comes from loopback too, so that is enough only for holders who have proved nothing that a
/// browser could prove as well: unproved callers, the owner of a pipe, and a token that all callers share, for which an administrator may sign in too.
fn may_open(request: &RoutedRequest, holder: &Holder) -> bool {
    let identity = request.caller.identity();
    if holder.subject == EVERYBODY && identity.has_role(ADMIN) {
        return true;
    }
    let is_local = matches!(holder.subject.as_str(), "anonymous" | EVERYBODY) || holder.subject.starts_with("local:");
    let from_here = || identity.address.is_some_and(|address| address.ip().to_canonical().is_loopback());
    let same = || identity.proof != Proof::Unproved && identity.principal.as_str() == holder.subject;
    same() || (is_local && from_here())
}

fn render(page: &Page) -> RoutedAnswer {
    let text = "text/plain; charset=utf-8";
    let mut answer = match page {
        Page::Redirect(url) => {
            let mut answer = RoutedAnswer::whole(StatusCode::FOUND, text, "");
            if let Ok(url) = HeaderValue::from_str(url) {
                answer.headers.insert(LOCATION, url);
            }
            answer
        }
        Page::Text { status, text: sentence } => {
            let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::BAD_REQUEST);
            RoutedAnswer::whole(status, text, sentence.clone())
        }
    };
    // No script, no frame, no trace of the query in other places.
    let policy = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    answer.headers.insert(CONTENT_SECURITY_POLICY, policy);
    answer.headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    answer.headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer.headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}
