//! Checks that a credential limited by scopes has those that a tool, prompt or resource requires.

use signalbox_engine::catalog::EntryRef;
use signalbox_engine::chain::{
    Case, EntryNames, EntryPattern, HoldResponse, Interceptor, Judgement, Phase, Ruling, Verdict,
};
use signalbox_engine::standing::Standing;
use signalbox_engine::{Caller, Fault, FaultKind};

/// Scope with the entries that require it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct ScopeRule {
    scope: Box<str>,
    patterns: Vec<EntryPattern>,
}

/// Interceptor that enforces scopes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ScopeCheck {
    /// Scopes that every request needs.
    required: Vec<Box<str>>,
    rules: Vec<ScopeRule>,
}

impl ScopeCheck {
    /// Creates the check. Every request needs the `required` scopes, and each of `scopes` where one of its patterns
    /// `BACKEND` or `BACKEND/NAME` matches.
    #[must_use]
    pub fn new(required: &[String], scopes: &[(String, Vec<String>)]) -> Self {
        let rule = |(scope, patterns): &(String, Vec<String>)| ScopeRule {
            scope: scope.as_str().into(),
            patterns: patterns.iter().map(|text| EntryPattern::new(text)).collect(),
        };
        Self {
            required: required.iter().map(|scope| scope.as_str().into()).collect(),
            rules: scopes.iter().map(rule).collect(),
        }
    }

    /// Returns all scopes that this request needs.
    fn needed(&self, case: &Case<'_>) -> Vec<Box<str>> {
        let mut needed = self.required.clone();
        let names = case.exchange.and_then(|exchange| exchange.subject_names());
        let is_meant = |pattern: &EntryPattern| pattern.fits(case, names.as_ref());
        let meant = self.rules.iter().filter(|rule| rule.patterns.iter().any(is_meant));
        needed.extend(meant.map(|rule| rule.scope.clone()));
        needed
    }
}

impl ScopeCheck {
    /// Returns the fault if the caller's credential lacks a scope that this entry requires.
    #[must_use]
    pub fn refusal(&self, caller: &Caller, entry: &EntryRef<'_>) -> Option<Fault> {
        let standing = caller.identity().standing.as_ref().filter(|standing| standing.scopes.is_some())?;
        let names = EntryNames::of(entry);
        let mut needed = self.required.clone();
        let meant = self.rules.iter().filter(|rule| rule.patterns.iter().any(|pattern| pattern.touches(&names)));
        needed.extend(meant.map(|rule| rule.scope.clone()));
        lacking(standing, &needed)
    }

    /// Returns the fault if the caller's credential lacks a scope that every request requires.
    #[must_use]
    pub fn refusal_of_all(&self, caller: &Caller) -> Option<Fault> {
        let standing = caller.identity().standing.as_ref().filter(|standing| standing.scopes.is_some())?;
        lacking(standing, &self.required)
    }
}

/// Returns the fault if a credential lacks any of the needed scopes.
fn lacking(standing: &Standing, needed: &[Box<str>]) -> Option<Fault> {
    let lacking = standing.lacks(needed);
    let text = format!("the credential lacks the scope {}", lacking.join(" "));
    let fault = || Fault::new(FaultKind::InsufficientScope, text).with_str("scope", &needed.join(" "));
    (!lacking.is_empty()).then(fault)
}

impl Interceptor for ScopeCheck {
    fn name(&self) -> &'static str {
        "scopes"
    }

    fn judge(&self, case: &Case<'_>, _: Option<HoldResponse<'_>>) -> Judgement {
        let Some(fault) = self.would_refuse(case) else { return Judgement::pass() };
        let rulings = Ruling::of("refuse", fault.message.clone()).into();
        Judgement { verdict: Verdict::Refuse(fault), rulings, effects: Vec::new() }
    }

    fn is_idle(&self) -> bool {
        self.required.is_empty() && self.rules.is_empty()
    }

    fn looks_at(&self, phase: Phase) -> bool {
        matches!(phase, Phase::Request | Phase::ToGateway) && !self.is_idle()
    }

    fn judges_changes(&self) -> bool {
        true
    }

    fn would_refuse(&self, case: &Case<'_>) -> Option<Fault> {
        let standing = case.caller.identity().standing.as_ref().filter(|standing| standing.scopes.is_some())?;
        lacking(standing, &self.needed(case))
    }
}
