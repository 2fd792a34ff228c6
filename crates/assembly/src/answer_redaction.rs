//! Takes out of answers what constraints say, just before callers get them. It is the redaction of tapes, on messages that leave.

use arc_swap::ArcSwap;
use signalbox_config::Config;
use signalbox_engine::catalog::EntryRef;
use signalbox_engine::chain::{Case, Interceptor, Judgement, Phase, Resumed, Ruling, SubjectPattern, Verdict};
use signalbox_engine::dialect::validation::{AccessConstraint, ConstraintKind};
use signalbox_engine::{Caller, Fault, FaultKind};
use signalbox_govern::Permissions;
use signalbox_govern::constraints::{PathConstraint, Scope};
use signalbox_govern::path_bounds::Folders;
use signalbox_govern::permissions::entry_of;
use signalbox_tape::redact::{Redacted, Redactor};
use signalbox_wire::Envelope;
use std::sync::Arc;

type Rules = Vec<(Scope, Redactor)>;

/// The interceptor.
pub(crate) struct AnswerRedaction {
    rules: ArcSwap<Rules>,
    permissions: Arc<Permissions>,
}

impl AnswerRedaction {
    /// As this configuration says.
    pub(crate) fn new(config: &Config, permissions: &Arc<Permissions>) -> Self {
        Self { rules: ArcSwap::from_pointee(rules(config)), permissions: Arc::clone(permissions) }
    }

    /// The constraints on results of this tool.
    pub(crate) fn on_call(&self, caller: &Caller, entry: &EntryRef<'_>) -> Vec<AccessConstraint> {
        let rules = self.rules.load();
        let held = rules.iter().filter(|(scope, _)| scope.holds_for(&self.permissions, caller, entry));
        held.map(|(scope, _)| AccessConstraint {
            kind: ConstraintKind::Redaction,
            policy: Some(scope.policy()),
            detail: "parts are taken out of the result".to_owned(),
        })
        .collect()
    }

    /// Follows another configuration.
    pub(crate) fn follow(&self, config: &Config) {
        self.rules.store(Arc::new(rules(config)));
    }
}

/// The constraints on paths of a configuration.
pub(crate) fn path_constraints(config: &Config) -> Vec<PathConstraint> {
    let all = config.permissions.constraints.iter().filter(|rule| !rule.folders.is_empty());
    let constraint = |rule: &signalbox_config::ConstraintRule| PathConstraint {
        scope: scope(rule),
        arguments: rule.path_arguments.iter().map(|name| name.as_str().into()).collect(),
        // Those that were checked are paths; none would hold no path at all.
        folders: Folders::new(&rule.folders).unwrap_or_default(),
        shown: rule.folders.iter().map(|folder| format!("`{folder}`")).collect::<Vec<_>>().join(" or ").into(),
    };
    all.map(constraint).collect()
}

fn scope(rule: &signalbox_config::ConstraintRule) -> Scope {
    Scope {
        name: rule.pattern.as_str().into(),
        tools: SubjectPattern::new(&rule.pattern),
        roles: rule.roles.iter().map(|role| role.as_str().into()).collect(),
    }
}

fn rules(config: &Config) -> Rules {
    let all = config.permissions.constraints.iter().filter(|rule| !rule.redaction.is_none());
    // Nothing is hashed, so that the key means nothing.
    all.filter_map(|rule| Some((scope(rule), Redactor::new(&rule.redaction, [0; 32]).ok()?))).collect()
}

impl Interceptor for AnswerRedaction {
    fn name(&self) -> &'static str {
        "answer redaction"
    }

    fn judge(&self, case: &Case<'_>, _: Option<Resumed<'_>>) -> Judgement {
        let entry = entry_of(case).filter(|_| case.phase == Phase::Response);
        let Some(entry) = entry else { return Judgement::pass() };
        let (mut message, mut names) = (case.message.bytes().clone(), Vec::new());
        for (scope, redactor) in self.rules.load().iter() {
            if !scope.holds_for(&self.permissions, case.caller, &entry) {
                continue;
            }
            match redactor.message(&message, None) {
                Redacted::Same => continue,
                Redacted::Changed(bytes) => message = bytes,
                Redacted::Withheld => return withheld(),
            }
            names.push(Arc::new(Ruling {
                rule: Some(scope.policy()),
                verdict: "modify",
                detail: "something was taken out of the answer".to_owned(),
                ..Ruling::default()
            }));
        }
        if names.is_empty() {
            return Judgement::pass();
        }
        match Envelope::parse(message) {
            Ok(message) => Judgement { verdict: Verdict::Modify(message), rulings: names.into(), effects: Vec::new() },
            Err(_) => withheld(),
        }
    }

    fn judges_replies(&self) -> bool {
        true
    }

    fn is_idle(&self) -> bool {
        self.rules.load().is_empty()
    }

    fn looks_at(&self, phase: Phase) -> bool {
        phase == Phase::Response && !self.is_idle()
    }
}

fn withheld() -> Judgement {
    Verdict::Refuse(Fault::new(FaultKind::Denied, "the answer cannot be shown without what has to be taken out of it"))
        .into()
}
