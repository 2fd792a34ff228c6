//! Builds the parts that govern calls from the configuration: labels, permissions, limits, budgets and scopes.

use crate::answer_redaction::{AnswerRedaction, path_constraints};
use crate::approval_notifier::ApprovalNotifier;
use crate::assemble::AssembleError;
use crate::auditing::Auditing;
use crate::canary_file::CanaryFile;
use crate::govern_files::GovernFiles;
use crate::grants::GrantClock;
use crate::list_guard::ListGuard;
use crate::permission_validator::PermissionValidator;
use crate::pin_book::PinBook;
use crate::spent_budgets::SpentBudgets;
use crate::{builtin_backend, permissions, recording, tool_labels};
use signalbox_config::{Config, RateLimits, RequestRates, ToolLimits};
use signalbox_engine::chain::EntryPattern;
use signalbox_engine::chain::Interceptor;
use signalbox_engine::rate::Rate;
use signalbox_engine::{Caller, Fault};
use signalbox_govern::call_budgets::{Budgets, ToolBounds};
use signalbox_govern::call_limits::{LimitRules, ScopeRates, ToolRate};
use signalbox_govern::decision_point::{PointApi, PointRules};
use signalbox_govern::permissions::{CallCheck, SwitchCheck};
use signalbox_govern::{CallBudgets, CallLimits, ConstraintCheck, DecisionPoint, Permissions, ScopeCheck, ToolLabels};
use signalbox_guard::{Guard, GuardSecrets};
use signalbox_runtime::{Gateway, Governance};
use signalbox_tape::redact::Redactor;
use std::sync::Arc;
use std::time::Instant;

/// Interceptors and state that govern calls. Clones share them.
#[derive(Clone)]
pub struct GovernParts {
    /// Labels of tools, such as trust levels and categories.
    pub labels: Arc<ToolLabels>,
    /// Permissions to see and use entries.
    pub permissions: Arc<Permissions>,
    /// Grants with an end.
    pub grants: GrantClock,
    /// Notifies approvers of calls that need consent.
    pub approvals: Arc<ApprovalNotifier>,
    limits: Arc<CallLimits>,
    budgets: Arc<CallBudgets>,
    spent: Arc<SpentBudgets>,
    scopes: Arc<ScopeCheck>,
    constraints: Arc<ConstraintCheck>,
    redaction: Arc<AnswerRedaction>,
    decision_point: Arc<DecisionPoint>,
    guard: Guard,
    pins: Arc<PinBook>,
    canaries: Arc<CanaryFile>,
    lists: ListGuard,
    files: Arc<GovernFiles>,
    redactor: Redactor,
}

impl GovernParts {
    /// Returns the limits of a caller's own requests, each with the number of requests left now.
    #[must_use]
    pub fn limits_left(&self, principal: &str) -> Vec<(Rate, u64)> {
        self.limits.left_to(principal, Instant::now())
    }

    /// Returns the fault for a caller that may send no request at all, because it is switched off or lacks a scope that
    /// every request requires.
    #[must_use]
    pub fn refusal_of_caller(&self, caller: &Caller) -> Option<Fault> {
        let off = self.permissions.stops_principal(caller.principal().as_str());
        off.or_else(|| self.scopes.refusal_of_all(caller))
    }

    /// Builds the parts of a configuration.
    ///
    /// # Errors
    /// If the file of switches or the lock file of tools cannot be read, or the system provides no randomness.
    pub(crate) fn new(config: &Config, audit: Option<&Arc<Auditing>>) -> Result<Self, AssembleError> {
        let labels = Arc::new(tool_labels::of(config));
        let permissions = Arc::new(permissions::of(config, &labels)?);
        let random = |error: &dyn std::fmt::Display| AssembleError::Random(error.to_string());
        let redactor = recording::redactor(&config.record.redaction).map_err(|error| random(&error))?;
        let [mut link_key, mut hash_key] = [[0; 32]; 2];
        getrandom::fill(&mut link_key).and_then(|()| getrandom::fill(&mut hash_key)).map_err(|error| random(&error))?;
        let budgets = Arc::new(CallBudgets::new(budgets(config)));
        let mut flows = [0; 16];
        getrandom::fill(&mut flows).map_err(|error| random(&error))?;
        let canaries = Arc::new(CanaryFile::of(&config.data_dir));
        let secrets = GuardSecrets { flows, canaries: canaries.news().flatten() };
        let guard = Guard::new(config.guard.clone(), Some(Arc::new(redactor.clone())), secrets);
        let pins = Arc::new(PinBook::open(&config.lock_file(), &config.data_dir)?);
        Ok(Self {
            spent: Arc::new(SpentBudgets::new(&config.data_dir, &budgets)),
            budgets,
            grants: GrantClock::new(config, &permissions),
            approvals: Arc::new(ApprovalNotifier::new(config, redactor.clone(), link_key)),
            labels,
            limits: Arc::new(CallLimits::new(rates(config))),
            scopes: Arc::new(ScopeCheck::new(&config.auth.required_scopes, &config.auth.scopes)),
            constraints: Arc::new(ConstraintCheck::new(path_constraints(config), &permissions)),
            redaction: Arc::new(AnswerRedaction::new(config, &permissions, hash_key)),
            decision_point: Arc::new(DecisionPoint::new(decision_point(config), Some(&permissions))),
            lists: ListGuard::new(&guard, &pins, &permissions, audit, builtin_backend::own_names(config)),
            guard,
            pins,
            canaries,
            files: Arc::default(),
            redactor,
            permissions,
        })
    }

    /// Notifies approvers of calls that this gateway holds, and records broken glass in the audit log.
    pub(crate) fn attach(&self, gateway: &Arc<Gateway>, audit: Option<&Arc<Auditing>>) {
        gateway.holds.notify_by(Arc::clone(&self.approvals) as _);
        self.prepare_guard(gateway);
        self.grants.attach(gateway, audit);
    }

    /// Prepares the guard on a thread of its own, and inspects the lists that were read meanwhile.
    fn prepare_guard(&self, gateway: &Arc<Gateway>) {
        let (guard, lists, gateway) = (self.guard.clone(), self.lists.clone(), Arc::downgrade(gateway));
        let prepare = move || {
            guard.prepare();
            if let Some(gateway) = gateway.upgrade() {
                lists.renew(&gateway);
            }
        };
        // Without the thread, the first text that needs it prepares it.
        if let Err(error) = std::thread::Builder::new().name("guard".to_owned()).spawn(prepare) {
            tracing::warn!(%error, "could not prepare the guard ahead");
        }
    }

    /// Returns the labels, permissions and time limits of tools for the gateway.
    pub(crate) fn governance(&self) -> Governance {
        let validator = PermissionValidator {
            permissions: Arc::clone(&self.permissions),
            scopes: Arc::clone(&self.scopes),
            constraints: Arc::clone(&self.constraints),
            redaction: Arc::clone(&self.redaction),
        };
        let (labels, permissions) = (Arc::clone(&self.labels) as _, Arc::new(validator) as _);
        Governance { labels, permissions, timeouts: Arc::clone(&self.budgets) as _ }
    }

    /// Applies another configuration to all parts.
    pub(crate) fn take_over(&self, before: &Config, next: &Config, gateway: &Gateway) {
        self.limits.replace(rates(next));
        self.budgets.replace(budgets(next));
        self.decision_point.replace(decision_point(next));
        self.pins.set_lock(&next.lock_file());
        if before.guard != next.guard {
            self.guard.replace(next.guard.clone());
            self.lists.renew(gateway);
        }
        tool_labels::take_over(&self.labels, next);
        permissions::take_over(&self.permissions, before, next, gateway);
        self.constraints.replace(path_constraints(next));
        self.redaction.follow(next);
        self.approvals.follow(next);
        self.grants.tell_alarms(next);
        self.follow_written(next, gateway);
    }

    /// Returns the redactor for calls that are shown or quoted outside the gateway's answers.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Returns the daily use of budgets, which the next run continues.
    pub(crate) fn spent(&self) -> &Arc<SpentBudgets> {
        &self.spent
    }

    /// Returns `true` if a process of the data folder may have written switches or grants since they were last applied.
    pub(crate) fn has_news(&self, config: &Config) -> bool {
        self.files.has_news(config) || self.pins.has_news() || self.canaries.has_news()
    }

    /// Applies switches, grants, approvals of tools and the key of canaries that were written since the last call.
    /// Looks at their four files and reads those that changed. Returns the number of switches that were rewritten
    /// because their file was gone.
    pub(crate) fn follow_files(&self, config: &Config, gateway: &Gateway) -> usize {
        if let Some(key) = self.canaries.news() {
            self.guard.set_canary_key(key);
        }
        if self.pins.follow() {
            self.lists.renew(gateway);
            self.lists.note_approvals(&config.lock_file());
        }
        self.files.follow(config, &self.permissions, &self.grants, gateway)
    }

    /// Applies switches and grants after this process wrote them or took over a configuration. Reads both files.
    pub fn follow_written(&self, config: &Config, gateway: &Gateway) {
        self.files.look_again();
        self.follow_files(config, gateway);
    }

    /// Returns the inspector of lists.
    pub(crate) fn lists(&self) -> &ListGuard {
        &self.lists
    }

    /// Returns the guard of what tools are told and say.
    pub(crate) fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Returns the interceptors in the order of NO-14. Switches come first and limits next, so that a caller above its
    /// limit costs little. Scopes and constraints come before consent, so that people are asked only about requests
    /// that pass them, as they are about calls whose arguments fit. Redaction heads the list, so that it sees answers
    /// last.
    pub(crate) fn interceptors(&self) -> [Arc<dyn Interceptor>; 10] {
        let (arguments, filters) = (self.guard.argument_check(), self.guard.filter_check());
        let checks = [Arc::clone(&arguments), Arc::clone(&filters)];
        [
            Arc::clone(&self.redaction) as _,
            Arc::new(SwitchCheck::new(&self.permissions)),
            Arc::clone(&self.limits) as _,
            Arc::clone(&self.budgets) as _,
            Arc::clone(&self.scopes) as _,
            Arc::clone(&self.constraints) as _,
            Arc::new(CallCheck::new(&self.permissions).asking_after(checks)),
            arguments,
            filters,
            Arc::clone(&self.decision_point) as _,
        ]
    }
}

/// Returns the rate limits of a configuration.
#[must_use]
pub fn rates(config: &Config) -> LimitRules {
    let RateLimits { global, user, tool, user_tool, tools, .. } = &config.rate_limits;
    let scope = |rates: &RequestRates| ScopeRates { per_second: rates.per_second, per_minute: rates.per_minute };
    let own = |limits: &ToolLimits| {
        let per_minute = limits.calls_per_minute?;
        Some(ToolRate { pattern: EntryPattern::new(&limits.pattern), per_minute })
    };
    LimitRules { scopes: [global, user, tool, user_tool].map(scope), tools: tools.iter().filter_map(own).collect() }
}

/// Returns the settings of the external decision point, if configured.
fn decision_point(config: &Config) -> Option<PointRules> {
    let rule = config.permissions.decision_point.as_ref()?;
    Some(PointRules {
        url: rule.url.as_str().into(),
        api: if rule.is_opa { PointApi::Opa } else { PointApi::AuthZen },
        timeout: rule.timeout,
        cache: rule.cache,
        allow_when_down: rule.allow_when_down,
        entries: rule.entries.iter().map(|text| EntryPattern::new(text)).collect(),
    })
}

/// Returns the budgets for calls of tools.
fn budgets(config: &Config) -> Budgets {
    let bounds = |limits: &ToolLimits| ToolBounds {
        pattern: EntryPattern::new(&limits.pattern),
        max_concurrent: limits.max_concurrent,
        max_result: limits.max_result,
        max_repeats: limits.max_repeats,
        calls_per_day: limits.calls_per_day,
        price: limits.price,
        timeout: limits.timeout,
    };
    let limits = &config.rate_limits;
    Budgets { tools: limits.tools.iter().map(bounds).collect(), user_per_day: limits.user_budget_per_day }
}
