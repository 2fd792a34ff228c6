//! Kill switches and quarantine for tools, backends and principals.

use signalbox_engine::catalog::EntryRef;
use signalbox_engine::chain::{EntryNames, SubjectPattern};
use signalbox_engine::{Fault, FaultKind};
use signalbox_wire::glob::{Wildcards, fits};
use std::sync::Arc;

/// Reason why something is off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Off {
    /// The kill switch is on.
    Killed,
    /// The target is in quarantine.
    Quarantined,
}

impl Off {
    /// Returns the name in configuration, commands and answers.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Killed => "killed",
            Self::Quarantined => "quarantined",
        }
    }

    /// Parses the name that [`Off::word`] returns.
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
pub enum Target {
    /// Tools, prompts and resources that the pattern `BACKEND/NAME` matches; a backend alone matches all of its
    /// entries.
    Entries(SubjectPattern),
    /// Principals that the pattern matches.
    Principals(Box<str>),
}

/// A target that is off, with the reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Switch {
    pub target: Target,
    /// Kill switch or quarantine.
    pub off: Off,
    /// Reason shown to callers; may be empty.
    pub reason: Arc<str>,
}

impl Switch {
    /// Returns the fault for a use of the target.
    #[must_use]
    pub fn fault(&self, what: &str) -> Fault {
        let how = if self.off == Off::Killed { "switched off" } else { "in quarantine" };
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
        self.0.iter().find(|switch| matches!(&switch.target, Target::Entries(pattern) if pattern.touches(&names)))
    }

    /// Returns the switch that turns this whole backend off.
    #[must_use]
    pub fn of_backend(&self, backend: &str) -> Option<&Switch> {
        let whole = |pattern: &SubjectPattern| pattern.is_whole_backend() && pattern.fits_backend(backend);
        self.0.iter().find(|switch| matches!(&switch.target, Target::Entries(pattern) if whole(pattern)))
    }

    /// Returns the switch that turns this principal off.
    #[must_use]
    pub fn of_principal(&self, principal: &str) -> Option<&Switch> {
        let meant = |pattern: &str| fits(pattern, principal, Wildcards::StarAndQuestion);
        self.0.iter().find(|switch| matches!(&switch.target, Target::Principals(pattern) if meant(pattern)))
    }

    /// Returns true if any principal is off.
    #[must_use]
    pub fn name_principals(&self) -> bool {
        self.0.iter().any(|switch| matches!(switch.target, Target::Principals(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::catalog::ListKind;
    use signalbox_wire::Era;

    fn switch(target: Target, off: Off) -> Switch {
        Switch { target, off, reason: "".into() }
    }

    /// Tools and backends, and besides them principals.
    /// Proves NO-9.
    #[test]
    fn a_switch_finds_what_it_turns_off() {
        let switches = Switches(vec![
            switch(Target::Entries(SubjectPattern::new("files/write_*")), Off::Killed),
            switch(Target::Entries(SubjectPattern::new("db")), Off::Quarantined),
            switch(Target::Principals("user:e*".into()), Off::Killed),
        ]);
        let off = |backend, name| {
            let entry = EntryRef { kind: ListKind::Tools, backend, name, definition: None };
            switches.of_entry(&entry).map(|switch| switch.off)
        };
        assert_eq!(off("files", "write_all"), Some(Off::Killed));
        assert_eq!((off("files", "read"), off("db", "get")), (None, Some(Off::Quarantined)));
        assert!(switches.of_backend("db").is_some() && switches.of_backend("files").is_none());
        assert!(switches.of_principal("user:eve").is_some() && switches.of_principal("user:ada").is_none());
    }

    /// Proves NO-9.
    #[test]
    fn each_has_its_code() {
        let fault = |off| Switch { reason: "leaks".into(), ..switch(Target::Principals("*".into()), off) }.fault("`a`");
        let (killed, aside) = (fault(Off::Killed), fault(Off::Quarantined));
        assert_eq!((killed.code(Era::Legacy), killed.code(Era::Modern)), (-32005, 4510));
        assert_eq!((aside.code(Era::Legacy), aside.code(Era::Modern)), (-32005, 4230));
        assert_eq!(killed.message, "`a` is switched off: leaks");
    }
}
