//! External decision point: a service that decides about calls, over the AuthZEN or the Open Policy Agent API.
//!
//! ```text
//! request ─► cached? ── yes ─► as before
//!              │ no
//!              └─► Hold(Webhook) ─► answer ─► allow · deny · no answer: what `when_down` says
//! ```
//!
//! It decides about uses of entries, not about lists, and only after roles and policies have allowed the use. A
//! decision is cached for `cache`, keyed by caller, rights, address, entry, definition and arguments.

use crate::permissions::{ApprovalDigest, ApprovalUse, Approvals, Permissions, entry_of};
use bytes::Bytes;
use serde_json::{Value, json};
use signalbox_engine::caller::Identity;
use signalbox_engine::catalog::{EntryRef, ListKind};
use signalbox_engine::chain::{
    Case, Hold, HoldAnswer, HoldQuestion, HoldResponse, Interceptor, Judgement, Phase, Ruling, Verdict,
};
use signalbox_engine::chain::{EntryNames, EntryPattern};
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::{Fault, FaultKind};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Maximum number of cached decisions.
pub const MAX_KEPT: usize = 16_384;

/// API of the service.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum PointApi {
    /// AuthZEN Authorization API: sends `subject`, `action`, `resource` and `context`; reads `decision`.
    AuthZen,
    /// Data API of the Open Policy Agent: sends the same under `input`; reads `result`, a boolean or an object with
    /// `allow`.
    Opa,
}

/// Configuration of the decision point.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PointRules {
    /// Address of the service.
    pub url: Arc<str>,
    pub api: PointApi,
    /// Timeout of a request.
    pub timeout: Duration,
    /// Time a decision is cached; `None` disables the cache.
    pub cache: Option<Duration>,
    /// True if calls proceed while the service does not answer.
    pub allow_when_down: bool,
    /// Entries that the service decides about.
    pub entries: Vec<EntryPattern>,
}

#[derive(Debug, Default)]
struct DecisionState {
    rules: Option<Arc<PointRules>>,
    decisions: HashMap<ApprovalDigest, (bool, String, Instant)>,
}

/// Interceptor that consults an external decision point.
#[derive(Debug, Default)]
pub struct DecisionPoint {
    state: Mutex<DecisionState>,
    approvals: Approvals,
    on: AtomicBool,
    /// Source of break-glass grants. Callers that have one skip the decision point.
    permissions: Option<Arc<Permissions>>,
}

impl DecisionPoint {
    /// Creates the interceptor with this service, if any. Callers with a break-glass grant in `permissions` skip it.
    #[must_use]
    pub fn new(rules: Option<PointRules>, permissions: Option<&Arc<Permissions>>) -> Self {
        let this = Self { permissions: permissions.cloned(), ..Self::default() };
        this.replace(rules);
        this
    }

    /// Replaces the service. Clears the cached decisions unless the configuration is unchanged.
    pub fn replace(&self, rules: Option<PointRules>) {
        self.on.store(rules.is_some(), Ordering::Relaxed);
        let mut state = self.state.lock().unpoisoned();
        if state.rules.as_deref() != rules.as_ref() {
            *state = DecisionState { rules: rules.map(Arc::new), decisions: HashMap::new() };
        }
    }

    fn decide(
        &self,
        case: &Case<'_>,
        entry: &EntryRef<'_>,
        rules: &PointRules,
        resumed: Option<HoldResponse<'_>>,
    ) -> Judgement {
        let Some(exchange) = case.exchange else { return Judgement::pass() };
        let arguments = case.message.param("arguments").map(|span| span.of(case.message.bytes())).unwrap_or_default();
        let bound = ApprovalDigest::to(&[
            case.caller.principal().as_str().as_bytes(),
            rights(case.caller.identity()).as_bytes(),
            case.acts_for.as_str().as_bytes(),
            entry.backend.as_bytes(),
            entry.name.as_bytes(),
            entry.definition.unwrap_or_default(),
            arguments,
        ]);
        let used = ApprovalUse { call: exchange.operation, exchange: exchange.id, round: case.round };
        if let Some(resumed) = resumed {
            return self.resume(rules, used, bound, resumed.answer, case);
        }
        if self.approvals.covers(used, bound) {
            return Judgement::pass();
        }
        let known = self.state.lock().unpoisoned().decisions.get(&bound).cloned();
        if let Some((allowed, reason, _)) = known.filter(|(.., until)| *until > case.now) {
            return if allowed { Judgement::pass() } else { denied(&reason, "kept") };
        }
        if !case.can_wait {
            return self.down(rules, "it cannot be asked in the middle of a call");
        }
        let asked = self.approvals.ask(used.call, case.caller.principal(), bound, case.now, rules.timeout * 2);
        if let Err(full) = asked {
            return overloaded(&full.to_string());
        }
        let body = Bytes::from(question(case, entry, arguments, rules.api).to_string());
        let question = HoldQuestion::Webhook { url: Arc::clone(&rules.url), body, within: rules.timeout };
        Verdict::Hold(Hold { question, cursor: 0, message: None }).into()
    }

    fn resume(
        &self,
        rules: &PointRules,
        used: ApprovalUse,
        bound: ApprovalDigest,
        answer: &HoldAnswer,
        case: &Case<'_>,
    ) -> Judgement {
        let now = case.now;
        if let HoldAnswer::Overloaded(why) = answer {
            self.approvals.withdraw(used.call);
            return overloaded(why);
        }
        let said = match answer {
            HoldAnswer::Webhook { status: 200, body } => decision(body, rules.api).ok_or("its answer has no decision"),
            HoldAnswer::Webhook { .. } => Err("it answered with an error"),
            HoldAnswer::Expired => Err("it did not answer in time"),
            _ => Err("it cannot be reached"),
        };
        let (allowed, reason) = match said {
            Ok(said) => said,
            Err(why) => {
                self.approvals.withdraw(used.call);
                let judgement = self.down(rules, why);
                if matches!(judgement.verdict, Verdict::Pass) {
                    // The chain checks the request once more when it ends.
                    let asked = self.approvals.ask(used.call, case.caller.principal(), bound, now, rules.timeout);
                    if asked.is_ok() {
                        self.approvals.grant(used, bound, now);
                    }
                }
                return judgement;
            }
        };
        if let Some(cache) = rules.cache {
            self.cache_decision(bound, allowed, &reason, now, now + cache);
        }
        if !allowed {
            self.approvals.withdraw(used.call);
            return denied(&reason, "decision point");
        }
        self.approvals.grant(used, bound, now);
        let ruling = Ruling { verdict: "allow", inputs: vec![("webhook", reason)], ..Ruling::default() };
        Judgement { verdict: Verdict::Pass, rulings: ruling.into(), effects: Vec::new() }
    }

    fn cache_decision(&self, bound: ApprovalDigest, allowed: bool, reason: &str, now: Instant, until: Instant) {
        let mut state = self.state.lock().unpoisoned();
        if state.decisions.len() >= MAX_KEPT {
            state.decisions.retain(|_, (.., until)| *until > now);
        }
        if state.decisions.len() >= MAX_KEPT {
            state.decisions.clear();
        }
        state.decisions.insert(bound, (allowed, reason.to_owned(), until));
    }

    /// Returns the verdict for a service that does not answer.
    fn down(&self, rules: &PointRules, why: &str) -> Judgement {
        if !rules.allow_when_down {
            let text = format!("the decision point does not decide: {why}");
            let rulings = Ruling::of("deny", text.clone()).into();
            let verdict = Verdict::Refuse(Fault::new(FaultKind::Denied, text));
            return Judgement { verdict, rulings, effects: Vec::new() };
        }
        let rulings = Ruling::of("allow", format!("without the decision point: {why}")).into();
        Judgement { verdict: Verdict::Pass, rulings, effects: Vec::new() }
    }
}

/// Describes the caller's rights beyond its principal, as part of the cache key: another credential may have other
/// rights, and the decision may depend on the address.
fn rights(identity: &Identity) -> String {
    let (trust, address) = (identity.trust().word(), identity.address.map(|address| address.ip()));
    identity.standing.as_ref().map_or_else(
        || format!("{trust} {address:?}"),
        |standing| format!("{trust} {address:?} {:?} {:?} {:?}", standing.roles, standing.groups, standing.scopes),
    )
}

/// Refuses a call when no further request can be queued. It never lets the call pass, even with `allow_when_down`: a
/// caller must not bypass the decision by flooding the queue.
fn overloaded(why: &str) -> Judgement {
    let text = format!("the decision point cannot be asked now: {why}");
    let rulings = Ruling::of("deny", text.clone()).into();
    Judgement { verdict: Verdict::Refuse(Fault::new(FaultKind::Overloaded, text)), rulings, effects: Vec::new() }
}

fn denied(reason: &str, by: &'static str) -> Judgement {
    // The service was sent the arguments, so its reason may quote them.
    let quotes = !reason.is_empty();
    let told = if reason.is_empty() { "the decision point denies it" } else { reason };
    let ruling =
        Ruling { rule: Some(by.into()), verdict: "deny", detail: told.to_owned(), quotes, ..Ruling::default() };
    let fault = Fault::new(FaultKind::Denied, told).with_str("policy", "decision point");
    Judgement { verdict: Verdict::Refuse(fault), rulings: ruling.into(), effects: Vec::new() }
}

/// Builds the body of the request to the service.
fn question(case: &Case<'_>, entry: &EntryRef<'_>, arguments: &[u8], api: PointApi) -> Value {
    let identity = case.caller.identity();
    let (kind, action) = match entry.kind {
        ListKind::Tools => ("tool", "call"),
        ListKind::Prompts => ("prompt", "get"),
        ListKind::Resources | ListKind::Templates => ("resource", "read"),
    };
    let standing = identity.standing.as_deref();
    let words = |words: Option<&[Box<str>]>| -> Vec<String> {
        words.unwrap_or_default().iter().map(ToString::to_string).collect()
    };
    let asked = json!({
        "subject": {
            "type": "user",
            "id": identity.principal.as_str(),
            "properties": {
                "roles": words(standing.map(|standing| &standing.roles[..])),
                "groups": words(standing.map(|standing| &standing.groups[..])),
                "trust": identity.trust().word(),
            },
        },
        "action": {"name": action},
        "resource": {
            "type": kind,
            "id": format!("{}/{}", entry.backend, entry.name),
            "properties": {"backend": entry.backend, "name": entry.name},
        },
        "context": {
            "arguments": serde_json::from_slice::<Value>(arguments).unwrap_or_else(|_| json!({})),
            "time": signalbox_wire::timestamp::rfc3339_millis(case.unix_ms),
            "address": identity.address.map(|address| address.ip().to_string()),
        },
    });
    match api {
        PointApi::AuthZen => asked,
        PointApi::Opa => json!({"input": asked}),
    }
}

/// Parses the decision and its reason from a response.
fn decision(body: &[u8], api: PointApi) -> Option<(bool, String)> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    let (allowed, about) = match api {
        PointApi::AuthZen => (answer["decision"].as_bool()?, &answer["context"]),
        PointApi::Opa => {
            let result = &answer["result"];
            (result.as_bool().or_else(|| result["allow"].as_bool())?, result)
        }
    };
    let reason = ["reason", "reason_user", "message"].iter().find_map(|key| about[*key].as_str());
    Some((allowed, reason.unwrap_or_default().chars().take(500).collect()))
}

impl Interceptor for DecisionPoint {
    fn name(&self) -> &'static str {
        "decision_point"
    }

    fn judge(&self, case: &Case<'_>, resumed: Option<HoldResponse<'_>>) -> Judgement {
        let Some(rules) = self.state.lock().unpoisoned().rules.clone() else { return Judgement::pass() };
        if case.phase != Phase::Request {
            return Judgement::pass();
        }
        let principal = case.caller.principal().as_str();
        if self.permissions.as_ref().is_some_and(|permissions| permissions.breaks_glass(principal, case.unix_ms)) {
            return Judgement::pass();
        }
        let is_meant = |entry: &EntryRef<'_>| {
            let names = EntryNames::of(entry);
            rules.entries.iter().any(|pattern| pattern.touches(&names))
        };
        match entry_of(case).filter(is_meant) {
            Some(entry) => self.decide(case, &entry, &rules, resumed),
            None => Judgement::pass(),
        }
    }

    fn is_idle(&self) -> bool {
        !self.on.load(Ordering::Relaxed)
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
    use signalbox_engine::{Caller, ExchangeId};
    use signalbox_wire::Envelope;

    /// Proves NO-17.
    #[test]
    fn decisions_of_both_apis_are_read_and_others_are_none() {
        let zen = |body: &str| decision(body.as_bytes(), PointApi::AuthZen);
        assert_eq!(zen(r#"{"decision":true}"#), Some((true, String::new())));
        assert_eq!(zen(r#"{"decision":false,"context":{"reason":"no"}}"#), Some((false, "no".to_owned())));
        for none in ["", "{}", r#"{"decision":"yes"}"#, r#"{"decision":1}"#, "[true]"] {
            assert_eq!(zen(none), None, "{none}");
        }
        let opa = |body: &str| decision(body.as_bytes(), PointApi::Opa);
        assert_eq!(opa(r#"{"result":true}"#), Some((true, String::new())));
        assert_eq!(opa(r#"{"result":{"allow":false,"reason":"late"}}"#), Some((false, "late".to_owned())));
        assert_eq!(opa("{}"), None, "an undefined rule decides nothing");
    }

    /// A decision is kept for the address that the service was told, whatever the port.
    #[test]
    fn decisions_are_kept_for_one_address() {
        let from = |address: &str| {
            let (address, unproved) = (address.parse().unwrap(), Caller::anonymous("http"));
            rights(&Identity { address: Some(address), ..unproved.identity().clone() })
        };
        assert_eq!(from("192.0.2.1:4000"), from("192.0.2.1:4001"));
        assert_ne!(from("192.0.2.1:4000"), from("192.0.2.2:4000"));
        assert_ne!(from("192.0.2.1:4000"), rights(Caller::anonymous("http").identity()));
    }

    fn rules(url: &str) -> PointRules {
        PointRules {
            url: url.into(),
            api: PointApi::AuthZen,
            timeout: Duration::from_secs(1),
            cache: Some(Duration::from_secs(60)),
            allow_when_down: false,
            entries: vec![EntryPattern::new("*")],
        }
    }

    /// A caller must not get around the decision by asking for many.
    #[test]
    fn a_call_for_which_there_is_no_room_to_ask_is_refused_even_if_calls_pass_while_the_service_is_down() {
        let rules = PointRules { allow_when_down: true, ..rules("http://a") };
        let point = DecisionPoint::new(Some(rules.clone()), None);
        let message = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}"#;
        let message = Envelope::parse(Bytes::from_static(message.as_bytes())).unwrap();
        let caller = Caller::local("ada", "test");
        let case = Case {
            phase: Phase::Request,
            message: &message,
            exchange: None,
            caller: &caller,
            acts_for: caller.principal(),
            session: None,
            session_started: Instant::now(),
            revision: None,
            backend: None,
            definition: None,
            attempt: 1,
            round: 1,
            can_wait: true,
            by_task: false,
            task_tool: None,
            now: Instant::now(),
            unix_ms: 0,
        };
        let used = ApprovalUse { call: ExchangeId(1), exchange: ExchangeId(1), round: 1 };
        let judge = |answer| point.resume(&rules, used, ApprovalDigest::to(&[b"x"]), &answer, &case).verdict;
        assert!(matches!(judge(HoldAnswer::Failed("it is gone".to_owned())), Verdict::Pass));
        let refused = judge(HoldAnswer::Overloaded("too many".to_owned()));
        assert!(matches!(refused, Verdict::Refuse(fault) if fault.kind == FaultKind::Overloaded));
    }

    #[test]
    fn another_service_does_not_inherit_what_was_decided() {
        let point = DecisionPoint::new(Some(rules("http://a")), None);
        let now = Instant::now();
        point.cache_decision(ApprovalDigest::to(&[b"x"]), true, "", now, now + Duration::from_secs(60));
        point.replace(Some(rules("http://a")));
        assert_eq!(point.state.lock().unwrap().decisions.len(), 1);
        point.replace(Some(rules("http://b")));
        assert!(point.state.lock().unwrap().decisions.is_empty() && !point.is_idle());
        point.replace(None);
        assert!(point.is_idle());
    }
}
