//! Redacts answers, notifications and questions by the configured constraints, just before they leave for the caller.
//! It uses the redaction of tapes.

mod question_url;
#[cfg(test)]
mod tests;
mod tool_error;

use arc_swap::ArcSwap;
use bytes::Bytes;
use signalbox_config::Config;
use signalbox_engine::catalog::{EntryRef, ListKind};
use signalbox_engine::chain::{Case, EntryPattern, HoldResponse, Interceptor, Judgement, Phase, Ruling, Verdict};
use signalbox_engine::dialect::validation::{AccessConstraint, ConstraintKind};
use signalbox_engine::fault::ErrorDetail;
use signalbox_engine::{Caller, Fault, FaultKind};
use signalbox_govern::Permissions;
use signalbox_govern::constraints::{PathConstraint, Scope};
use signalbox_govern::path_bounds::Folders;
use signalbox_govern::permissions::entry_of;
use signalbox_tape::redact::{Redaction, Redactor};
use signalbox_wire::{Envelope, method};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

type Rules = Vec<Rule>;

/// Redaction for the answers of the tools in one scope.
struct Rule {
    scope: Scope,
    redactor: Redactor,
    /// Normalised names of members to redact, compared with the parameters of URLs.
    names: Vec<Box<str>>,
}

impl Rule {
    fn new(rule: &signalbox_config::ConstraintRule, key: [u8; 32]) -> Option<Self> {
        let redactor = Redactor::new(&rule.redaction, key).ok()?;
        let names = rule.redaction.keys.iter().map(|key| question_url::plain(&key.name)).collect();
        Some(Self { scope: scope(rule), redactor, names })
    }

    fn redact(&self, message: &Bytes) -> Redaction {
        let redacted = self.redactor.message(message, None);
        let rest = match &redacted {
            Redaction::Same => message,
            Redaction::Changed(bytes) => bytes,
            Redaction::Withheld => return Redaction::Withheld,
        };
        question_url::redact(rest, &self.names).map_or(redacted, Redaction::Changed)
    }
}

/// Possible origins of a message.
enum Source<'a> {
    Entry(EntryRef<'a>),
    /// Any tool of the named backend.
    Backend(&'a str),
    Anything,
}

impl<'a> Source<'a> {
    /// Returns the possible origins of a message, or `None` if no tool can have sent it.
    fn of(case: &Case<'a>) -> Option<Self> {
        if let Some(entry) = entry_of(case) {
            return Some(Self::Entry(entry));
        }
        let is_about_tasks = is_about_tasks(case);
        if let (true, Some(name), Some(backend)) = (is_about_tasks, case.task_tool, case.backend) {
            return Some(Self::Entry(EntryRef { kind: ListKind::Tools, backend, name, definition: None }));
        }
        match case.backend {
            // `tasks/list` of the gateway merges tasks of several backends.
            None => is_about_tasks.then_some(Self::Anything),
            // Servers need not name the call that a log message or a question belongs to, so it may come from any of
            // their tools. The same holds for a task whose call is no longer known.
            Some(backend) => (is_about_tasks || case.phase != Phase::Response).then_some(Self::Backend(backend)),
        }
    }
}

fn is_about_tasks(case: &Case<'_>) -> bool {
    case.by_task || case.exchange.is_some_and(|exchange| exchange.method.starts_with("tasks/"))
}

/// Returns true for answers of tools, and for what is said of their tasks.
fn may_be_tool_error(case: &Case<'_>) -> bool {
    match case.phase {
        Phase::Response => is_about_tasks(case) || entry_of(case).is_some_and(|entry| entry.kind == ListKind::Tools),
        Phase::FromBackend => matches!(case.message.method(), Some(method::TASKS_STATUS | method::TASKS_CHANGED)),
        _ => false,
    }
}

/// Interceptor that redacts answers.
pub(crate) struct AnswerRedaction {
    rules: ArcSwap<Rules>,
    /// True if the detail of tool errors depends on the caller's trust level.
    errors_by_trust: AtomicBool,
    permissions: Arc<Permissions>,
    /// Key for the hashes that stand for names of members. It must be secret, or callers could guess a short name.
    key: [u8; 32],
}

impl AnswerRedaction {
    /// Returns the interceptor with the rules of this configuration. Equal names of members have equal hashes as long
    /// as the interceptor exists.
    pub(crate) fn new(config: &Config, permissions: &Arc<Permissions>, key: [u8; 32]) -> Self {
        let errors_by_trust = AtomicBool::new(errors_by_trust(config));
        let rules = ArcSwap::from_pointee(rules(config, key));
        Self { rules, errors_by_trust, permissions: Arc::clone(permissions), key }
    }

    /// Returns the redaction constraints on results of this tool.
    pub(crate) fn on_call(&self, caller: &Caller, entry: &EntryRef<'_>) -> Vec<AccessConstraint> {
        let rules = self.rules.load();
        let held = rules.iter().filter(|rule| rule.scope.holds_for(&self.permissions, caller, entry));
        held.map(|rule| AccessConstraint {
            kind: ConstraintKind::Redaction,
            policy: Some(rule.scope.policy()),
            detail: "parts are taken out of the result".to_owned(),
        })
        .collect()
    }

    /// Replaces the rules by those of another configuration.
    pub(crate) fn follow(&self, config: &Config) {
        self.rules.store(Arc::new(rules(config, self.key)));
        self.errors_by_trust.store(errors_by_trust(config), Ordering::Relaxed);
    }
}

/// Returns the path constraints of a configuration.
pub(crate) fn path_constraints(config: &Config) -> Vec<PathConstraint> {
    let all = config.permissions.constraints.iter().filter(|rule| !rule.folders.is_empty());
    let constraint = |rule: &signalbox_config::ConstraintRule| PathConstraint {
        scope: scope(rule),
        arguments: rule.path_arguments.iter().map(|name| name.as_str().into()).collect(),
        // The folders were validated with the configuration. An empty set would allow no path.
        folders: Folders::new(&rule.folders).unwrap_or_default(),
        shown: rule.folders.iter().map(|folder| format!("`{folder}`")).collect::<Vec<_>>().join(" or ").into(),
    };
    all.map(constraint).collect()
}

fn scope(rule: &signalbox_config::ConstraintRule) -> Scope {
    Scope {
        name: rule.pattern.as_str().into(),
        tools: EntryPattern::new(&rule.pattern),
        roles: rule.roles.iter().map(|role| role.as_str().into()).collect(),
    }
}

fn errors_by_trust(config: &Config) -> bool {
    config.auth.required && config.auth.tool_error_detail == ErrorDetail::ByTrust
}

fn rules(config: &Config, key: [u8; 32]) -> Rules {
    let all = config.permissions.constraints.iter().filter(|rule| !rule.redaction.is_none());
    all.filter_map(|rule| Rule::new(rule, key)).collect()
}

impl Interceptor for AnswerRedaction {
    fn name(&self) -> &'static str {
        "answer redaction"
    }

    fn judge(&self, case: &Case<'_>, _: Option<HoldResponse<'_>>) -> Judgement {
        let Some(source) = Source::of(case) else { return Judgement::pass() };
        let (mut message, mut names) = (case.message.bytes().clone(), Vec::new());
        for rule in self.rules.load().iter() {
            let Rule { scope, .. } = rule;
            let holds = match &source {
                Source::Entry(entry) => scope.holds_for(&self.permissions, case.caller, entry),
                Source::Backend(backend) => scope.holds_at(&self.permissions, case.caller, backend),
                Source::Anything => scope.is_for(&self.permissions, case.caller),
            };
            if !holds {
                continue;
            }
            match rule.redact(&message) {
                Redaction::Same => continue,
                Redaction::Changed(bytes) => message = bytes,
                Redaction::Withheld => return withheld(),
            }
            names.push(Arc::new(Ruling {
                rule: Some(scope.policy()),
                verdict: "modify",
                detail: "something was taken out of the answer".to_owned(),
                ..Ruling::default()
            }));
        }
        if may_be_tool_error(case)
            && self.errors_by_trust.load(Ordering::Relaxed)
            && let Some(less) = tool_error::told(&message, case.caller.identity().trust())
        {
            message = less;
            names.push(Arc::new(Ruling::of("modify", "the caller is not trusted with the whole error".to_owned())));
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
        self.rules.load().is_empty() && !self.errors_by_trust.load(Ordering::Relaxed)
    }

    fn looks_at(&self, phase: Phase) -> bool {
        matches!(phase, Phase::Response | Phase::FromBackend | Phase::ServerAsks) && !self.is_idle()
    }
}

fn withheld() -> Judgement {
    Verdict::Refuse(Fault::new(FaultKind::Denied, "the answer cannot be shown without what has to be taken out of it"))
        .into()
}
