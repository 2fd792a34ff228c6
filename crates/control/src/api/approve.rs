//! `/approve/LINK`: page on which an approver decides about a call that waits for consent.
//!
//! ```text
//! GET           shows the call to anyone with the link; decides nothing
//! GET …/sign-in starts a sign-in at the gateway's own authorization server
//! POST          decides; needs the role `approver` or `admin`, proved by a credential in the header, or by a
//!               sign-in and the token of the form that was shown to that person
//! ```
//!
//! Foreign links, links of decided calls and expired links get the same response.

use super::administration::AuditedAction;
use super::authorization::{self, body};
use super::routes::{ADMIN, APPROVER};
use super::sign_in::SignInPages;
use super::{grants, holds};
use http::header::AUTHORIZATION;
use serde_json::json;
use signalbox_assembly::approval_notifier::{APPROVE, ShownCall};
use signalbox_audit::{AdminOrigin, AdminOutcome};
use signalbox_engine::audit::IntentWrite;
use signalbox_engine::chain::HoldAnswer;
use signalbox_engine::fault::{Fault, FaultKind};
use signalbox_engine::{Caller, Proof};
use signalbox_oauth_client::form;
use signalbox_oauth_server::pages::{escaped, page};
use signalbox_runtime::HeldMessage;
use signalbox_transport::router::{HandlerResult, RouteFault, RoutedAnswer, RoutedRequest};
use std::sync::Arc;

/// Maximum size of a form in bytes.
pub(super) const MAX_FORM: usize = 4 * 1024;
const FORM: &str = "application/x-www-form-urlencoded";
const GONE_STATUS: u16 = 404;
const GONE: &str = "This link is not valid, or no longer: the call was decided, or its time ran out.";
const NEEDS_APPROVER: &str = "Sign in as a user with the role approver to decide.";

pub(super) async fn show(pages: Arc<SignInPages>, request: RoutedRequest) -> HandlerResult {
    let Some(held) = held(&pages, &request) else { return Ok(nothing_to_decide()) };
    let decider = deciders(&pages, &request).into_iter().next();
    let approvals = &pages.served.app().govern.approvals;
    let form = match &decider {
        Some(who) if !holds::may_decide(&pages.served, who, &held) => {
            "<p class=\"bad\">This is your own call. Another person has to decide about it.</p>".to_owned()
        }
        Some(who) => deciding_form(who, &approvals.links.form_token(held.id, who)),
        None => signing_in(&pages, &request, held.id),
    };
    Ok(answer(200, "Let it run?", &format!("{}{form}", described(&approvals.shown(&held)))))
}

pub(super) async fn sign_in(pages: Arc<SignInPages>, request: RoutedRequest) -> HandlerResult {
    let Some(server) = &pages.server else { return Err(RouteFault::NothingHere) };
    if held(&pages, &request).is_none() {
        return Ok(nothing_to_decide());
    }
    let path = format!("{APPROVE}/{}", request.segment("link"));
    let is_other = !pages.visitors(&request).is_empty();
    let reply = server.visit(&path, is_other, authorization::address(&request));
    Ok(authorization::recorded(&pages.served, &request.caller, authorization::BEGIN, reply))
}

pub(super) async fn decide(pages: Arc<SignInPages>, request: RoutedRequest) -> HandlerResult {
    let Some(held) = held(&pages, &request) else { return Ok(nothing_to_decide()) };
    let deciders = deciders(&pages, &request);
    // A browser sends cookies and certificates with every form, even a forged one, but not a token in the header.
    let bearer = request.headers.get(AUTHORIZATION).is_some_and(|value| value.as_bytes().starts_with(b"Bearer "));
    let in_header = bearer.then(|| request.caller.principal().as_str().to_owned());
    let caller = request.caller.clone();
    let text = body(request, FORM).await?;
    let Some(pairs) = form::read(&text) else { return Err(super::bad("the form cannot be read")) };
    let given = |name: &str| pairs.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str());
    let links = &pages.served.app().govern.approvals.links;
    let proved = |who: &&String| in_header.as_ref() == Some(*who) || links.is_form_token(held.id, who, given("token"));
    let tell = |who: Option<&str>, outcome| tell(&pages, &caller, who, &held, given("answer"), outcome);
    let Some(who) = deciders.iter().find(proved) else {
        let told = tell(None, AdminOutcome::Denied(NEEDS_APPROVER));
        return Ok(answer(403, "Not you", &heading(NEEDS_APPROVER)).once_recorded(told));
    };
    if !holds::may_decide(&pages.served, who, &held) {
        let told = tell(Some(who), AdminOutcome::Denied(holds::OWN_CALL));
        return Ok(answer(403, "Not you", &heading(holds::OWN_CALL)).once_recorded(told));
    }
    let by = Some(who.clone());
    let (decided, grant, word) = match given("answer") {
        "approve" => (HoldAnswer::GoOn { by }, None, "The call runs."),
        "hour" => {
            let grant = grants::of_hold(&held, "1h", who)?;
            (HoldAnswer::GoOn { by }, Some(grant), "The call runs, and so do others like it for one hour.")
        }
        "refuse" => (HoldAnswer::Refused { by, reason: String::new() }, None, "The call was refused."),
        _ => return Err(super::bad("`answer` must be approve, hour or refuse")),
    };
    match pages.served.app().gateway.holds.settle(held.id, decided) {
        Ok(_) => {
            let granted = match grant {
                Some(grant) => grants::put_of_hold(&pages.served, grant, Some(who.as_str()), &caller)?,
                None => None,
            };
            let told = tell(Some(who), AdminOutcome::Done);
            tracing::info!(hold = held.id, by = who, "decided about a call by its link: {word}");
            Ok(answer(200, "Done", &heading(word)).once_recorded(granted).once_recorded(told))
        }
        Err(_) => Ok(nothing_to_decide()),
    }
}

/// Audits a decision or an attempt at one. A browser's identity is its sign-in, not the caller of the request.
fn tell(
    pages: &SignInPages,
    caller: &Caller,
    who: Option<&str>,
    held: &HeldMessage,
    decided: &str,
    outcome: AdminOutcome<'_>,
) -> Option<IntentWrite> {
    let action = match decided {
        "refuse" => "hold.refuse",
        _ => "hold.release",
    };
    let call = &held.held;
    let after = json!({
        "method": call.method,
        "subject": call.subject,
        "backend": call.backend.as_deref(),
        "principal": call.caller.principal().as_str(),
        "by": who,
        "answer": decided,
    });
    let target = format!("{APPROVE}: hold {}", held.id);
    let action = AuditedAction { name: action, target: &target };
    pages.served.administer_as(who, caller, AdminOrigin::Api, action, Some(&after), outcome)
}

/// Returns the waiting call of a link. Records the use of a link without such a call.
fn held(pages: &SignInPages, request: &RoutedRequest) -> Option<HeldMessage> {
    let app = pages.served.app();
    let hold = app.govern.approvals.links.hold(request.segment("link"));
    let held = hold.and_then(|id| app.gateway.holds.get(id).ok()).filter(|held| held.consent.is_some());
    if held.is_none() {
        let method = &request.method;
        let fault = match hold {
            Some(id) => {
                let text = format!("{method} {APPROVE}: the link of hold {id}, which no longer waits for anybody");
                Fault::new(FaultKind::InvalidRequest, text)
            }
            // The link is the credential. It stays out of the record: a mistyped one is almost valid.
            None => {
                Fault::new(FaultKind::Unauthenticated, format!("{method} {APPROVE}: the link is none of this gateway"))
                    .with_str("error", "invalid_link")
            }
        };
        app.gateway.refused(&request.caller, Some(GONE_STATUS), &fault, None);
    }
    held
}

/// Returns the principals that have proved in this request that they may decide.
fn deciders(pages: &SignInPages, request: &RoutedRequest) -> Vec<String> {
    let caller = request.caller.identity();
    let may_act = pages.served.app().govern.refusal_of_caller(&request.caller).is_none();
    let by_header =
        may_act && caller.proof != Proof::Unproved && [APPROVER, ADMIN].iter().any(|role| caller.has_role(role));
    let mut all: Vec<String> = by_header.then(|| caller.principal.as_str().to_owned()).into_iter().collect();
    let visitors = pages.visitors(request).into_iter();
    all.extend(
        visitors
            .filter(|one| [APPROVER, ADMIN].iter().any(|role| one.standing.has_role(role)))
            .map(|one| one.principal),
    );
    let govern = &pages.served.app().govern;
    all.retain(|principal| govern.permissions.stops_principal(principal).is_none());
    all
}

fn deciding_form(who: &str, token: &str) -> String {
    format!(
        "<p>You decide as <b>{}</b>.</p><form method=\"post\"><input type=\"hidden\" name=\"token\" value=\"{}\">\
         <button name=\"answer\" value=\"approve\">Let it run</button>\
         <button name=\"answer\" value=\"hour\">Let it run, and others like it for one hour</button>\
         <button name=\"answer\" value=\"refuse\">Refuse</button></form>",
        escaped(who),
        escaped(token)
    )
}

/// Tells a visitor without a proof of identity how to decide.
fn signing_in(pages: &SignInPages, request: &RoutedRequest, hold: u64) -> String {
    match &pages.server {
        Some(_) => format!("<p><a href=\"{}/sign-in\">Sign in to decide</a></p>", escaped(&request.path)),
        None => format!(
            "<p>To decide, run <code>signalbox hold release {hold}</code> or <code>signalbox hold refuse {hold}</code>, or send \
             <code>answer=approve</code> or <code>answer=refuse</code> here with the API key of an approver.</p>"
        ),
    }
}

fn described(call: &ShownCall) -> String {
    let rows = [
        ("Who", &call.principal),
        ("wants to use", &call.subject),
        ("with", &call.arguments),
        ("Why you are asked", &call.reason),
        ("Policy", &call.policy),
        ("Until", &call.expires),
    ];
    let shown = rows.iter().filter(|(_, value)| !value.is_empty());
    let shown: String = shown.map(|(name, value)| format!("<dt>{name}</dt><dd>{}</dd>", escaped(value))).collect();
    format!("<h1>Let it run?</h1><dl>{shown}</dl>")
}

fn heading(text: &str) -> String {
    format!("<h1>{}</h1>", escaped(text))
}

fn nothing_to_decide() -> RoutedAnswer {
    answer(GONE_STATUS, "Nothing to decide", &heading(GONE))
}

fn answer(status: u16, title: &str, body: &str) -> RoutedAnswer {
    authorization::answer(page(status, title, body, "'self'"))
}
