//! Stops requests that their callers may not make, and has people asked about those that need their consent.

use super::approvals::Bound;
use super::{Access, Denial, PermissionSet, Permissions};
use crate::policy::{Circumstances, Grounds};
use signalbox_engine::catalog::{EntryRef, ListKind, Visibility as _};
use signalbox_engine::chain::{
    Case, Hold, HoldAnswer, HoldQuestion, Interceptor, Judgement, Phase, Resumed, Ruling, Verdict,
};
use signalbox_engine::{Fault, FaultKind};
use signalbox_wire::{json, method};
use std::sync::Arc;

/// The interceptor. It is asked again about a request that others changed after it.
#[derive(Clone, Debug)]
pub struct CallCheck(Arc<Permissions>);

impl CallCheck {
    /// Asks these permissions.
    #[must_use]
    pub fn new(permissions: &Arc<Permissions>) -> Self {
        Self(Arc::clone(permissions))
    }

    fn decide(&self, case: &Case<'_>, entry: &EntryRef<'_>, resumed: Option<Resumed<'_>>) -> Judgement {
        let set = self.0.set.load();
        let arguments = case.message.param("arguments").map(|span| span.of(case.message.bytes()));
        let address = case.caller.identity().address.map(|address| address.ip());
        let around = Circumstances { unix_ms: case.unix_ms, address };
        let access = self.0.access(case.caller, entry, arguments, &around);
        if set.shadow && access != Access::Closed {
            return shadowed(&access);
        }
        match access {
            Access::Usable(None) => Judgement::pass(),
            Access::Usable(Some(policy)) => {
                let ruling = Ruling { rule: Some(policy), verdict: "allow", ..Ruling::default() };
                Judgement { verdict: Verdict::Pass, rulings: ruling.into(), effects: Vec::new() }
            }
            Access::AfterAsking(grounds) => self.ask(case, &set, entry, arguments, grounds, resumed),
            Access::Denied(denial) => denied(&denial, denial_fault(&denial)),
            Access::Hidden(denial) if set.reveal => denied(&denial, denial_fault(&denial)),
            Access::Hidden(denial) => denied(&denial, Fault::unknown(entry.kind, asked(case, entry))),
            Access::Closed => {
                let grounds = Grounds { policy: None, reason: "the backend is closed to the caller".to_owned() };
                denied(&grounds.into(), Fault::unknown(entry.kind, asked(case, entry)))
            }
        }
    }

    /// Has somebody asked, or goes on with what they said. An approval is bound to everything that was asked about.
    fn ask(
        &self,
        case: &Case<'_>,
        set: &PermissionSet,
        entry: &EntryRef<'_>,
        arguments: Option<&[u8]>,
        grounds: Grounds,
        resumed: Option<Resumed<'_>>,
    ) -> Judgement {
        let Some(exchange) = case.exchange else { return denied(&grounds.into(), nobody_to_ask()) };
        let version = self.0.version.load(std::sync::atomic::Ordering::Relaxed).to_be_bytes();
        let principal = case.caller.principal().as_str().as_bytes();
        let bound = Bound::to(&[
            &version,
            principal,
            entry.backend.as_bytes(),
            entry.name.as_bytes(),
            entry.definition.unwrap_or_default(),
            arguments.unwrap_or_default(),
        ]);
        let approvals = &self.0.approvals;
        match resumed.map(|resumed| resumed.answer) {
            None if approvals.covers(exchange.operation, bound) => Judgement::pass(),
            None if !case.can_wait || !approvals.ask(exchange.operation, bound, case.now) => {
                denied(&grounds.into(), nobody_to_ask())
            }
            None => {
                let reason: Arc<str> = grounds.reason.as_str().into();
                let question = HoldQuestion::Person { reason, within: set.ask_timeout };
                let ruling =
                    Ruling { rule: grounds.policy, verdict: "hold", detail: grounds.reason, ..Ruling::default() };
                let verdict = Verdict::Hold(Hold { question, cursor: 0, message: None });
                Judgement { verdict, rulings: ruling.into(), effects: Vec::new() }
            }
            Some(answer) => {
                let verdict = self.answered(answer, || approvals.grant(exchange.operation, bound));
                let (by, detail) = said(answer, &verdict);
                let ruling = Ruling {
                    rule: grounds.policy,
                    verdict: if matches!(verdict, Verdict::Pass) { "approved" } else { "deny" },
                    detail,
                    inputs: by.map(|by| ("person", by)).into_iter().collect(),
                    ..Ruling::default()
                };
                if !matches!(verdict, Verdict::Pass) {
                    approvals.forget(exchange.operation);
                }
                Judgement { verdict, rulings: ruling.into(), effects: Vec::new() }
            }
        }
    }

    fn answered(&self, answer: &HoldAnswer, grant: impl FnOnce() -> bool) -> Verdict {
        let refuse = |kind, text: &str| Verdict::Refuse(Fault::new(kind, text));
        match answer {
            HoldAnswer::GoOn { .. } if grant() => Verdict::Pass,
            HoldAnswer::GoOn { .. } | HoldAnswer::Edited { .. } => {
                refuse(FaultKind::Denied, "the call, its tool or the policy changed after somebody was asked")
            }
            HoldAnswer::Refused { reason, .. } if reason.is_empty() => refuse(FaultKind::Denied, "somebody refused it"),
            HoldAnswer::Refused { reason, .. } => refuse(FaultKind::Denied, &format!("somebody refused it: {reason}")),
            HoldAnswer::Result { result, .. } => Verdict::Reply(result.clone()),
            HoldAnswer::Expired => refuse(FaultKind::HoldExpired, "nobody decided about it in time"),
            HoldAnswer::Webhook { .. } | HoldAnswer::Failed(_) => Verdict::Refuse(nobody_to_ask()),
        }
    }
}

/// Who decided, and in which words it is recorded.
fn said(answer: &HoldAnswer, verdict: &Verdict) -> (Option<String>, String) {
    let by = match answer {
        HoldAnswer::GoOn { by }
        | HoldAnswer::Edited { by, .. }
        | HoldAnswer::Result { by, .. }
        | HoldAnswer::Refused { by, .. } => by.clone(),
        _ => None,
    };
    let detail = match verdict {
        Verdict::Refuse(fault) => fault.message.clone(),
        _ => String::new(),
    };
    (by, detail)
}

fn nobody_to_ask() -> Fault {
    Fault::new(FaultKind::Denied, "this needs somebody's consent, and nobody can be asked about it here")
}

/// The entry that a request is about. Requests that name none, such as those about tasks, have no entry.
pub(crate) fn entry_of<'a>(case: &Case<'a>) -> Option<EntryRef<'a>> {
    let exchange = case.exchange?;
    let kind = match &*exchange.method {
        method::TOOLS_CALL => ListKind::Tools,
        method::PROMPTS_GET => ListKind::Prompts,
        method::RESOURCES_READ | method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE => ListKind::Resources,
        method::COMPLETION_COMPLETE => {
            let reference = case.message.param("ref")?.of(case.message.bytes());
            if json::member(reference, "name").is_some() { ListKind::Prompts } else { ListKind::Resources }
        }
        _ => return None,
    };
    let name = exchange.own_name.as_deref()?;
    Some(EntryRef { kind, backend: case.backend?, name, definition: case.definition.map(|bytes| &**bytes) })
}

/// The name that the client used.
fn asked<'a>(case: &Case<'a>, entry: &EntryRef<'a>) -> &'a str {
    case.exchange.and_then(|exchange| exchange.subject.as_deref()).unwrap_or(entry.name)
}

/// What would have been decided, for the record.
fn shadowed(access: &Access) -> Judgement {
    let (grounds, verdict) = match access {
        Access::Denied(denial) | Access::Hidden(denial) => (&denial.grounds, "would_deny"),
        Access::AfterAsking(grounds) => (grounds, "would_ask"),
        Access::Usable(_) | Access::Closed => return Judgement::pass(),
    };
    let ruling = Ruling { rule: grounds.policy.clone(), verdict, detail: grounds.reason.clone(), ..Ruling::default() };
    Judgement { verdict: Verdict::Pass, rulings: ruling.into(), effects: Vec::new() }
}

fn denied(denial: &Denial, fault: Fault) -> Judgement {
    let Grounds { policy, reason } = denial.grounds.clone();
    let ruling = Ruling { rule: policy, verdict: "deny", detail: reason, ..Ruling::default() };
    Judgement { verdict: Verdict::Refuse(fault), rulings: ruling.into(), effects: Vec::new() }
}

fn denial_fault(denial: &Denial) -> Fault {
    let fault = Fault::new(FaultKind::Denied, denial.grounds.reason.clone());
    let fault = match &denial.permission {
        Some(permission) => fault.with_str("permission", permission),
        None => fault,
    };
    match &denial.grounds.policy {
        Some(policy) => fault.with_str("policy", policy),
        None => fault,
    }
}

impl Interceptor for CallCheck {
    fn name(&self) -> &'static str {
        "permissions"
    }

    fn judge(&self, case: &Case<'_>, resumed: Option<Resumed<'_>>) -> Judgement {
        match entry_of(case) {
            Some(entry) => self.decide(case, &entry, resumed),
            None => Judgement::pass(),
        }
    }

    fn is_idle(&self) -> bool {
        self.0.is_open()
    }

    fn looks_at(&self, phase: Phase) -> bool {
        phase == Phase::Request && !self.is_idle()
    }

    fn judges_changes(&self) -> bool {
        true
    }
}
