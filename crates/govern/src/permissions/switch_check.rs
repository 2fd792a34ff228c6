//! Refuses uses of what is switched off. It runs before every other check.

use super::Permissions;
use super::call_check::entry_of;
use signalbox_engine::chain::{Case, HoldResponse, Interceptor, Judgement, Phase, Ruling, Verdict};
use signalbox_engine::{Fault, catalog::Visibility as _};
use std::sync::Arc;

/// Interceptor that enforces kill switches and quarantine.
#[derive(Clone, Debug)]
pub struct SwitchCheck(Arc<Permissions>);

impl SwitchCheck {
    /// Creates the interceptor for these permissions.
    #[must_use]
    pub fn new(permissions: &Arc<Permissions>) -> Self {
        Self(Arc::clone(permissions))
    }

    /// Returns the fault for a message that is stopped. If the caller may not know of the entry, it returns none: the
    /// permission check answers it as unknown.
    fn stops(&self, case: &Case<'_>) -> Option<Fault> {
        match entry_of(case).filter(|_| case.phase == Phase::Request) {
            Some(entry) => self.0.stops(case.caller, &entry),
            None => Some(self.0.stops_principal(case.caller.principal().as_str())?),
        }
    }
}

impl Interceptor for SwitchCheck {
    fn name(&self) -> &'static str {
        "switches"
    }

    fn judge(&self, case: &Case<'_>, _: Option<HoldResponse<'_>>) -> Judgement {
        let Some(fault) = self.stops(case) else { return Judgement::pass() };
        let rulings = Ruling::of("refuse", fault.message.clone()).into();
        Judgement { verdict: Verdict::Refuse(fault), rulings, effects: Vec::new() }
    }

    fn is_idle(&self) -> bool {
        self.0.is_open()
    }

    fn looks_at(&self, phase: Phase) -> bool {
        !self.is_idle() && (phase == Phase::Request || self.0.principals_are_off())
    }

    fn judges_changes(&self) -> bool {
        true
    }
}
