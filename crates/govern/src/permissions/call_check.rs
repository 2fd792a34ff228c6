//! Refuses requests that their callers may not make, and requests approval for those that need it.

use super::approvals::{ApprovalDigest, ApprovalUse, GrantOutcome};
use super::{Access, BREAK_GLASS, Denial, PermissionSet, Permissions};
use crate::policy::{AskOf, Asking, Circumstances, Grounds};
use signalbox_engine::catalog::{EntryRef, ListKind, Visibility as _};
use signalbox_engine::chain::consent;
use signalbox_engine::chain::{
    Case, Consent, ConsentOf, Effect, Hold, HoldAnswer, HoldQuestion, HoldResponse, Interceptor, Judgement, Phase,
    Ruling, Verdict,
};
use signalbox_engine::log_level::LogLevel;
use signalbox_engine::{Exchange, Fault, FaultKind};
use signalbox_wire::completion_ref::{self, ReferenceKind};
use signalbox_wire::{method, printable};
use std::sync::Arc;

/// Maximum number of characters of a name in the log.
const MAX_SHOWN: usize = 200;

/// Interceptor that enforces permissions. It also judges requests that a later interceptor has changed.
#[derive(Clone)]
pub struct CallCheck {
    permissions: Arc<Permissions>,
    /// Judge a call before somebody is asked to approve it.
    before_asking: Vec<Arc<dyn Interceptor>>,
}

impl CallCheck {
    /// Creates the interceptor for these permissions.
    #[must_use]
    pub fn new(permissions: &Arc<Permissions>) -> Self {
        Self { permissions: Arc::clone(permissions), before_asking: Vec::new() }
    }

    /// Asks for approval only of calls that these interceptors would not refuse.
    #[must_use]
    pub fn asking_after(self, checks: impl Into<Vec<Arc<dyn Interceptor>>>) -> Self {
        Self { before_asking: checks.into(), ..self }
    }

    fn decide(&self, case: &Case<'_>, entry: &EntryRef<'_>, resumed: Option<HoldResponse<'_>>) -> Judgement {
        let set = self.permissions.set.load();
        let arguments = case.message.param("arguments").map(|span| span.of(case.message.bytes()));
        let address = case.caller.identity().address.map(|address| address.ip());
        let around = Circumstances { unix_ms: case.unix_ms, address };
        let access = self.permissions.access(case.caller, entry, arguments, &around);
        if set.shadow && access != Access::Closed {
            return shadowed(&access);
        }
        let answer = resumed.map(|resumed| resumed.answer.clone());
        let answer = answer.or_else(|| consent::returned(case.message, case.caller.principal().as_str()));
        match access {
            // A decision that was requested counts, even if the rules no longer ask for one.
            Access::Usable(policy) if answer.is_some() => {
                let asking = Asking { grounds: Grounds { policy, reason: String::new() }, of: AskOf::Configured };
                self.ask(case, &set, entry, arguments, asking, answer)
            }
            Access::Usable(None) => Judgement::pass(),
            Access::Usable(Some(policy)) => allowed(case, entry, policy),
            Access::AfterAsking(asking) => self.ask(case, &set, entry, arguments, asking, answer),
            Access::Denied(denial) => denied(&denial, denial_fault(&denial)),
            Access::Hidden(denial) if set.reveal => denied(&denial, denial_fault(&denial)),
            Access::Hidden(denial) => denied(&denial, unknown(case, entry)),
            Access::Closed => {
                let grounds = Grounds { policy: None, reason: "the backend is closed to the caller".to_owned() };
                denied(&grounds.into(), unknown(case, entry))
            }
        }
    }

    /// Requests approval, or continues with the answer to a request. An approval is bound to everything it was
    /// requested for.
    fn ask(
        &self,
        case: &Case<'_>,
        set: &PermissionSet,
        entry: &EntryRef<'_>,
        arguments: Option<&[u8]>,
        Asking { grounds, of }: Asking,
        answer: Option<HoldAnswer>,
    ) -> Judgement {
        let Some(exchange) = case.exchange else { return denied(&grounds.into(), no_approver()) };
        let version = self.permissions.rules_version.load(std::sync::atomic::Ordering::Relaxed).to_be_bytes();
        let bound = ApprovalDigest::to(&[
            &version,
            case.caller.principal().as_str().as_bytes(),
            case.acts_for.as_str().as_bytes(),
            entry.backend.as_bytes(),
            entry.name.as_bytes(),
            entry.definition.unwrap_or_default(),
            arguments.unwrap_or_default(),
        ]);
        let used = ApprovalUse { call: exchange.operation, exchange: exchange.id, round: case.round };
        let (approvals, of) = (&self.permissions.approvals, set.consent_of(of));
        if approvals.covers(used, bound) {
            return Judgement::pass();
        }
        let Some(answer) = answer else {
            if !case.can_wait {
                return denied(&grounds.into(), no_approver());
            }
            if let Some(fault) = self.before_asking.iter().find_map(|check| check.would_refuse(case)) {
                let ruling = Ruling { quotes: true, ..Ruling::of("refuse", fault.message.clone()) };
                return Judgement { verdict: Verdict::Refuse(fault), rulings: ruling.into(), effects: Vec::new() };
            }
            let asked = approvals.ask(used.call, case.caller.principal(), bound, case.now, set.ask_timeout);
            if let Err(full) = asked {
                return denied(&grounds.into(), too_many(&full));
            }
            let (reason, policy) = (grounds.reason.as_str().into(), grounds.policy.clone());
            let consent = Consent { reason, policy, within: set.ask_timeout, of };
            let ruling = Ruling { rule: grounds.policy, verdict: "hold", detail: grounds.reason, ..Ruling::default() };
            let question = HoldQuestion::Consent(Arc::new(consent));
            let verdict = Verdict::Hold(Hold { question, cursor: 0, message: None });
            return Judgement { verdict, rulings: ruling.into(), effects: Vec::new() };
        };
        let verdict = approval_verdict(&answer, of, || approvals.grant(used, bound, case.now));
        let (by, detail) = decision_record(&answer, &verdict);
        let passes = matches!(verdict, Verdict::Pass);
        let ruling = Ruling {
            rule: grounds.policy,
            verdict: match verdict {
                Verdict::Pass => "approved",
                Verdict::Reply(_) => "answered",
                _ => "deny",
            },
            detail,
            inputs: by.map(|by| ("person", by)).into_iter().collect(),
            ..Ruling::default()
        };
        if !passes {
            approvals.withdraw(used.call);
        }
        Judgement { verdict, rulings: ruling.into(), effects: Vec::new() }
    }
}

/// Returns the verdict on a call whose approval was requested.
fn approval_verdict(answer: &HoldAnswer, of: ConsentOf, grant: impl FnOnce() -> GrantOutcome) -> Verdict {
    let refuse = |kind, text: &str| Verdict::Refuse(Fault::new(kind, text));
    match answer {
        HoldAnswer::GoOn { .. } => match grant() {
            GrantOutcome::Yes => Verdict::Pass,
            GrantOutcome::Changed => refuse(FaultKind::Denied, CHANGED),
            GrantOutcome::Expired => refuse(FaultKind::HoldExpired, EXPIRED),
            GrantOutcome::Used => refuse(FaultKind::Denied, "the consent was for one call, which was made"),
        },
        HoldAnswer::Edited { .. } => refuse(FaultKind::Denied, CHANGED),
        // No person decided: the gateway is shutting down.
        HoldAnswer::Refused { by: None, reason } if !reason.is_empty() => refuse(FaultKind::Draining, reason),
        HoldAnswer::Refused { reason, .. } if reason.is_empty() => refuse(FaultKind::Denied, "consent was refused"),
        HoldAnswer::Refused { reason, .. } => refuse(FaultKind::Denied, &format!("consent was refused: {reason}")),
        HoldAnswer::Result { result, .. } => Verdict::Reply(result.clone()),
        HoldAnswer::Expired => refuse(FaultKind::HoldExpired, EXPIRED),
        HoldAnswer::Failed(why) if of == ConsentOf::Caller => {
            let text = format!(
                "this needs the caller's consent, and its client cannot be asked: {why}. A caller with the role `approver` \
                 can grant it for a while (`signalbox grant add`)"
            );
            refuse(FaultKind::Denied, &text)
        }
        HoldAnswer::Failed(why) | HoldAnswer::Overloaded(why) => Verdict::Refuse(too_many(why)),
        HoldAnswer::Webhook { .. } => Verdict::Refuse(no_approver()),
    }
}

const CHANGED: &str = "the call, its tool or the policy changed after consent was asked for";
const EXPIRED: &str = "it was not decided in time";

/// Returns the decider and the detail to record.
fn decision_record(answer: &HoldAnswer, verdict: &Verdict) -> (Option<String>, String) {
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

/// Creates the fault for a call whose approval cannot be requested, because too many are pending.
fn too_many(why: &dyn std::fmt::Display) -> Fault {
    Fault::new(FaultKind::Overloaded, format!("this needs consent, and no approver can be asked now: {why}"))
}

fn no_approver() -> Fault {
    Fault::new(FaultKind::Denied, "this needs consent, and no approver can be asked about it here")
}

/// Returns the entry that a request uses. Requests that name none, such as those about tasks, have no entry.
#[must_use]
pub fn entry_of<'a>(case: &Case<'a>) -> Option<EntryRef<'a>> {
    let exchange = case.exchange?;
    let kind = match &*exchange.method {
        method::TOOLS_CALL => ListKind::Tools,
        method::PROMPTS_GET => ListKind::Prompts,
        method::RESOURCES_READ | method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE => ListKind::Resources,
        method::COMPLETION_COMPLETE => {
            let reference = case.message.param("ref")?.of(case.message.bytes());
            match completion_ref::read(reference).ok()?.0 {
                ReferenceKind::Prompt => ListKind::Prompts,
                ReferenceKind::Resource => ListKind::Resources,
            }
        }
        // Only the backend knows what an extension method does, so it needs the permissions of a tool of its name.
        _ if exchange.is_foreign() => ListKind::Tools,
        _ => return None,
    };
    let name = exchange.own_name.as_deref()?;
    Some(EntryRef { kind, backend: case.backend?, name, definition: case.definition.map(|bytes| &**bytes) })
}

/// Returns the tool that a request calls. An extension method counts as a tool of its name.
#[must_use]
pub(crate) fn called_tool<'a>(case: &Case<'a>) -> Option<EntryRef<'a>> {
    entry_of(case).filter(|entry| entry.kind == ListKind::Tools)
}

/// Returns the fault for an unknown entry, under the name that the client used.
fn unknown(case: &Case<'_>, entry: &EntryRef<'_>) -> Fault {
    if case.exchange.is_some_and(Exchange::is_foreign) {
        return Fault::no_method(entry.name);
    }
    let asked = case.exchange.and_then(|exchange| exchange.subject.as_deref());
    Fault::unknown(entry.kind, asked.unwrap_or(entry.name))
}

/// Allows a call on the ground of this role, policy or grant. Logs a warning for a break-glass grant.
fn allowed(case: &Case<'_>, entry: &EntryRef<'_>, policy: Arc<str>) -> Judgement {
    let mut effects = Vec::new();
    let mut verdict = "allow";
    if policy.starts_with(BREAK_GLASS) {
        verdict = "break_glass";
        let who = printable::beginning(case.caller.principal().as_str(), MAX_SHOWN);
        let what = printable::beginning(&format!("{}/{}", entry.backend, entry.name), MAX_SHOWN);
        let text = format!("{who} uses {what} behind broken glass ({policy})");
        effects.push(Effect::Log { level: LogLevel::Warning, text });
        effects.push(Effect::Count { names: Arc::new([Arc::from("break_glass")]) });
    }
    let ruling = Ruling { rule: Some(policy), verdict, ..Ruling::default() };
    Judgement { verdict: Verdict::Pass, rulings: ruling.into(), effects }
}

/// Records what would have been decided without shadow mode.
fn shadowed(access: &Access) -> Judgement {
    let (grounds, verdict) = match access {
        Access::Denied(denial) | Access::Hidden(denial) => (&denial.grounds, "would_deny"),
        Access::AfterAsking(asking) => (&asking.grounds, "would_ask"),
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

pub(super) fn denial_fault(denial: &Denial) -> Fault {
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

    fn judge(&self, case: &Case<'_>, resumed: Option<HoldResponse<'_>>) -> Judgement {
        // The chain shows an interceptor every phase that any of them looks at.
        match entry_of(case).filter(|_| case.phase == Phase::Request) {
            Some(entry) => self.decide(case, &entry, resumed),
            None => Judgement::pass(),
        }
    }

    fn is_idle(&self) -> bool {
        self.permissions.is_open()
    }

    fn looks_at(&self, phase: Phase) -> bool {
        phase == Phase::Request && !self.is_idle()
    }

    fn judges_changes(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call that is held when the gateway ends was refused by no person.
    #[test]
    fn a_refusal_names_a_person_only_if_one_decided() {
        let told = |by: Option<&str>| {
            let answer = HoldAnswer::Refused { by: by.map(str::to_owned), reason: "not now".to_owned() };
            match approval_verdict(&answer, ConsentOf::Caller, || GrantOutcome::Expired) {
                Verdict::Refuse(fault) => (fault.kind, fault.message),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(told(Some("ada")), (FaultKind::Denied, "consent was refused: not now".to_owned()));
        assert_eq!(told(None), (FaultKind::Draining, "not now".to_owned()));
    }
}
