//! Kill switches and quarantine for tools, backends and principals.

use signalbox_engine::catalog::EntryRef;
use signalbox_engine::chain::{EntryNames, EntryPattern};
use signalbox_engine::{Fault, FaultKind};
use signalbox_wire::glob::{Wildcards, fits};
use std::sync::Arc;

/// Reason why something is off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwitchOffReason {
    /// The kill switch is on.
    Killed,
    /// The target is in quarantine.
    Quarantined,
}

impl SwitchOffReason {
    /// Returns the name in configuration, commands and answers.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Killed => "killed",
            Self::Quarantined => "quarantined",
        }
    }

    /// Parses the name that [`SwitchOffReason::word`] returns.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        [Self::Killed, Self::Quarantined].into_iter().find(|one| one.word() == word)
    }

    fn kind(self) -> FaultKind {
        match self {
            Self::Killed => FaultKind::Killed,
            Self::Quarantined => FaultKind::Quarantined,
        }
    }
}

/// Target of a switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SwitchTarget {
    /// Tools, prompts and resources that the pattern `BACKEND/NAME` matches; a backend alone matches all of its
    /// entries.
    Entries(EntryPattern),
    /// Principals that the pattern matches.
    Principals(Box<str>),
}

/// A target that is off, with the reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Switch {
    pub target: SwitchTarget,
    /// Kill switch or quarantine.
    pub off: SwitchOffReason,
    /// Reason shown to callers; may be empty.
    pub reason: Arc<str>,
}

impl Switch {
    /// Returns the fault for a use of the target.
    #[must_use]
    pub fn fault(&self, what: &str) -> Fault {
        let how = if self.off == SwitchOffReason::Killed { "switched off" } else { "in quarantine" };
        let why = if self.reason.is_empty() { String::new() } else { format!(": {}", self.reason) };
        Fault::new(self.off.kind(), format!("{what} is {how}{why}"))
    }
}

/// Switches of one source.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Switches(pub Vec<Switch>);

impl Switches {
    /// Returns the switch that turns this entry off.
    #[must_use]
    pub fn of_entry(&self, entry: &EntryRef<'_>) -> Option<&Switch> {
        let names = EntryNames::of(entry);
        self.0.iter().find(|switch| matches!(&switch.target, SwitchTarget::Entries(pattern) if pattern.touches(&names)))
    }

    /// Returns the switch that turns this whole backend off.
    #[must_use]
    pub fn of_backend(&self, backend: &str) -> Option<&Switch> {
        let whole = |pattern: &EntryPattern| pattern.is_whole_backend() && pattern.fits_backend(backend);
        self.0.iter().find(|switch| matches!(&switch.target, SwitchTarget::Entries(pattern) if whole(pattern)))
    }

    /// Returns the switch that turns this principal off.
    #[must_use]
    pub fn of_principal(&self, principal: &str) -> Option<&Switch> {
        let meant = |pattern: &str| fits(pattern, principal, Wildcards::StarAndQuestion);
        self.0.iter().find(|switch| matches!(&switch.target, SwitchTarget::Principals(pattern) if meant(pattern)))
    }

    /// Returns true if any principal is off.
    #[must_use]
    pub fn name_principals(&self) -> bool {
        self.0.iter().any(|switch| matches!(switch.target, SwitchTarget::Principals(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::catalog::ListKind;
    use signalbox_wire::Era;

    fn switch(target: SwitchTarget, off: SwitchOffReason) -> Switch {
        Switch { target, off, reason: "".into() }
    }

    /// Tools and backends, and besides them principals.
    /// Proves NO-9.
    #[test]
    fn a_switch_finds_what_it_turns_off() {
        let switches = Switches(vec![
            switch(SwitchTarget::Entries(EntryPattern::new("files/write_*")), SwitchOffReason::Killed),
            switch(SwitchTarget::Entries(EntryPattern::new("db")), SwitchOffReason::Quarantined),
            switch(SwitchTarget::Principals("user:e*".into()), SwitchOffReason::Killed),
        ]);
        let off = |backend, name| {
            let entry = EntryRef { kind: ListKind::Tools, backend, name, definition: None };
            switches.of_entry(&entry).map(|switch| switch.off)
        };
        assert_eq!(off("files", "write_all"), Some(SwitchOffReason::Killed));
        assert_eq!((off("files", "read"), off("db", "get")), (None, Some(SwitchOffReason::Quarantined)));
        assert!(switches.of_backend("db").is_some() && switches.of_backend("files").is_none());
        assert!(switches.of_principal("user:eve").is_some() && switches.of_principal("user:ada").is_none());
    }

    /// Proves NO-9.
    #[test]
    fn each_has_its_code() {
        let fault =
            |off| Switch { reason: "leaks".into(), ..switch(SwitchTarget::Principals("*".into()), off) }.fault("`a`");
        let (killed, aside) = (fault(SwitchOffReason::Killed), fault(SwitchOffReason::Quarantined));
        assert_eq!((killed.code(Era::Legacy), killed.code(Era::Modern)), (-32005, 4510));
        assert_eq!((aside.code(Era::Legacy), aside.code(Era::Modern)), (-32005, 4230));
        assert_eq!(killed.message, "`a` is switched off: leaks");
    }
}
