//! The parts that decide about calls by themselves, from the configuration: labels,
//! permissions, limits, budgets, scopes.

use crate::answer_redaction::{AnswerRedaction, path_constraints};
use crate::approval_desk::ApprovalDesk;
use crate::assemble::AssembleError;
use crate::auditing::Auditing;
use crate::govern_files::GovernFiles;
use crate::grants::GrantClock;
use crate::permission_validator::PermissionValidator;
use crate::spent_budgets::SpentBudgets;
use crate::{permissions, recording, tool_labels};
use signalbox_config::{Config, RateLimits, RequestRates, ToolLimits};
use signalbox_engine::chain::Interceptor;
use signalbox_engine::chain::SubjectPattern;
use signalbox_engine::rate::Rate;
use signalbox_engine::{Caller, Fault};
use signalbox_govern::call_budgets::{Budgets, ToolBounds};
use signalbox_govern::call_limits::{LimitRules, ScopeRates, ToolRate};
use signalbox_govern::decision_point::{PointApi, PointRules};
use signalbox_govern::permissions::{CallCheck, SwitchCheck};
use signalbox_govern::{CallBudgets, CallLimits, ConstraintCheck, DecisionPoint, Permissions, ScopeCheck, ToolLabels};
use signalbox_runtime::{Gateway, Governance};
use std::sync::Arc;
use std::time::Instant;

/// What decides about calls. Clones are the same.
#[derive(Clone)]
pub struct GovernParts {
    /// What tools are labelled with.
    pub labels: Arc<ToolLabels>,
    /// Who may see and use what.
    pub permissions: Arc<Permissions>,
    /// The grants that end by themselves.
    pub grants: GrantClock,
    /// Tells people of calls that need their consent.
    pub approvals: Arc<ApprovalDesk>,
    limits: Arc<CallLimits>,
    budgets: Arc<CallBudgets>,
    spent: Arc<SpentBudgets>,
    scopes: Arc<ScopeCheck>,
    constraints: Arc<ConstraintCheck>,
    redaction: Arc<AnswerRedaction>,
    decision_point: Arc<DecisionPoint>,
    files: Arc<GovernFiles>,
}

impl GovernParts {
    /// The limits of a caller's own requests, each with how many are left now.
    #[must_use]
    pub fn limits_left(&self, principal: &str) -> Vec<(Rate, u64)> {
        self.limits.left_to(principal, Instant::now())
    }

    /// Returns the fault for a caller that may send no request at all: it is switched off, or lacks a scope that every
    /// request requires.
    #[must_use]
    pub fn refusal_of_caller(&self, caller: &Caller) -> Option<Fault> {
        let off = self.permissions.stops_principal(caller.principal().as_str());
        off.or_else(|| self.scopes.refusal_of_all(caller))
    }

    /// Those of a configuration.
    ///
    /// # Errors
    /// If it is not known what is switched off, or there is no randomness.
    pub(crate) fn new(config: &Config) -> Result<Self, AssembleError> {
        let labels = Arc::new(tool_labels::of(config));
        let permissions = Arc::new(permissions::of(config, &labels)?);
        let random = |error: &dyn std::fmt::Display| AssembleError::Random(error.to_string());
        let redactor = recording::redactor(&config.record.redaction).map_err(|error| random(&error))?;
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| random(&error))?;
        let budgets = Arc::new(CallBudgets::new(budgets(config)));
        Ok(Self {
            spent: Arc::new(SpentBudgets::new(&config.data_dir, &budgets)),
            budgets,
            grants: GrantClock::new(config, &permissions),
            approvals: Arc::new(ApprovalDesk::new(config, redactor, key)),
            labels,
            limits: Arc::new(CallLimits::new(rates(config))),
            scopes: Arc::new(ScopeCheck::new(&config.auth.required_scopes, &config.auth.scopes)),
            constraints: Arc::new(ConstraintCheck::new(path_constraints(config), &permissions)),
            redaction: Arc::new(AnswerRedaction::new(config, &permissions)),
            decision_point: Arc::new(DecisionPoint::new(decision_point(config), Some(&permissions))),
            files: Arc::default(),
            permissions,
        })
    }

    /// Has approvers told of held calls, and the audit log of broken glass.
    pub(crate) fn attach(&self, gateway: &Arc<Gateway>, audit: Option<&Arc<Auditing>>) {
        gateway.holds.notify_by(Arc::clone(&self.approvals) as _);
        self.grants.attach(gateway, audit);
    }

    /// Labels, permissions and time limits of tools.
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

    /// Takes over what another configuration says.
    pub(crate) fn take_over(&self, before: &Config, next: &Config, gateway: &Gateway) {
        self.limits.replace(rates(next));
        self.budgets.replace(budgets(next));
        self.decision_point.replace(decision_point(next));
        tool_labels::take_over(&self.labels, next);
        permissions::take_over(&self.permissions, before, next, gateway);
        self.constraints.replace(path_constraints(next));
        self.redaction.follow(next);
        self.approvals.follow(next);
        self.grants.tell_alarms(next);
        self.follow_written(next, gateway);
    }

    /// Counts what callers used today, for the next run.
    pub(crate) fn spent(&self) -> &Arc<SpentBudgets> {
        &self.spent
    }

    /// True if any process of the data folder may have written down switches or grants since they were
    /// last put in force.
    pub(crate) fn has_news(&self, config: &Config) -> bool {
        self.files.has_news(config)
    }

    /// Puts in force which switches and grants any process of the data folder has written down since it was last
    /// asked. Looks at two files, and reads what has changed. Returns how many switches were written down again
    /// because their file was gone.
    pub(crate) fn follow_files(&self, config: &Config, gateway: &Gateway) -> usize {
        self.files.follow(config, &self.permissions, &self.grants, gateway)
    }

    /// The same after this process has written something down, or follows another configuration: both files are read.
    pub fn follow_written(&self, config: &Config, gateway: &Gateway) {
        self.files.look_again();
        self.follow_files(config, gateway);
    }

    /// The interceptors, in the order of NO-14: switches come first, then rates, so that a caller that asks
    /// too often costs little. People are asked only about requests that their caller may make in this way.
    /// Answers are cleaned last.
    pub(crate) fn interceptors(&self) -> [Arc<dyn Interceptor>; 8] {
        [
            Arc::clone(&self.redaction) as _,
            Arc::new(SwitchCheck::new(&self.permissions)),
            Arc::clone(&self.limits) as _,
            Arc::clone(&self.budgets) as _,
            Arc::clone(&self.scopes) as _,
            Arc::clone(&self.constraints) as _,
            Arc::new(CallCheck::new(&self.permissions)),
            Arc::clone(&self.decision_point) as _,
        ]
    }
}

/// How often callers may call.
#[must_use]
pub fn rates(config: &Config) -> LimitRules {
    let RateLimits { global, user, tool, user_tool, tools, .. } = &config.rate_limits;
    let scope = |rates: &RequestRates| ScopeRates { per_second: rates.per_second, per_minute: rates.per_minute };
    let own = |limits: &ToolLimits| {
        let per_minute = limits.calls_per_minute?;
        Some(ToolRate { pattern: SubjectPattern::new(&limits.pattern), per_minute })
    };
    LimitRules { scopes: [global, user, tool, user_tool].map(scope), tools: tools.iter().filter_map(own).collect() }
}

/// The service that is asked besides.
fn decision_point(config: &Config) -> Option<PointRules> {
    let rule = config.permissions.decision_point.as_ref()?;
    Some(PointRules {
        url: rule.url.as_str().into(),
        api: if rule.is_opa { PointApi::Opa } else { PointApi::AuthZen },
        timeout: rule.timeout,
        cache: rule.cache,
        allow_when_down: rule.allow_when_down,
        entries: rule.entries.iter().map(|text| SubjectPattern::new(text)).collect(),
    })
}

/// What calls of tools may use.
fn budgets(config: &Config) -> Budgets {
    let bounds = |limits: &ToolLimits| ToolBounds {
        pattern: SubjectPattern::new(&limits.pattern),
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
