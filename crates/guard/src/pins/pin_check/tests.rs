use super::*;
use crate::pins::{Approval, BackendPins};

fn pinned(names: &[(&str, &str)]) -> BackendPins {
    let mut pins = BackendPins::default();
    for (name, description) in names {
        pins.approve_tool(&definition(name, description), Approval::new(1, "ada"));
    }
    pins
}

fn text(name: &str, description: &str) -> String {
    let schema = r#"{"type":"object","properties":{"path":{"type":"string"}}}"#;
    format!(r#"{{"name":"{name}","description":"{description}","inputSchema":{schema}}}"#)
}

fn definition(name: &str, description: &str) -> ToolDefinition {
    ToolDefinition::parse(text(name, description).as_bytes()).unwrap()
}

/// Compares a list with one approved tool, `read` with the description `d`. A text with `!` is suspicious.
struct Scene {
    mode: PinMode,
    is_locked: bool,
    is_first: bool,
}

impl Scene {
    fn verdicts(&self, listed: &[(&str, &str)]) -> PinVerdicts {
        let pins = if self.is_first { BackendPins::default() } else { pinned(&[("read", "d")]) };
        let backend = PinnedBackend { pins: &pins, is_locked: self.is_locked, is_first: self.is_first };
        let is_suspicious = |name: Option<&str>| listed.iter().any(|one| Some(one.0) == name && one.1.contains('!'));
        let check = PinCheck {
            mode: self.mode,
            backend,
            other_names: &|| vec!["send_mail".into()],
            is_suspicious: &is_suspicious,
        };
        let tool = |one: &(&'static str, &str)| ListedTool {
            name: one.0,
            parsed: ToolDefinition::parse(text(one.0, one.1).as_bytes()),
        };
        let mut verdicts = PinVerdicts::default();
        let listed: Vec<(&'static str, &str)> =
            listed.iter().map(|one| (&*String::leak(one.0.to_owned()), one.1)).collect();
        check.tools(listed.iter().map(tool).collect(), &mut verdicts);
        verdicts
    }

    /// The findings, each with `!` if it is quarantined.
    fn findings(&self, listed: &[(&str, &str)]) -> Vec<String> {
        let shown = |finding: PinFinding| {
            let mark = if finding.action == PinAction::Quarantined { "!" } else { "" };
            format!("{mark}{} {}", finding.tool.unwrap_or_default(), finding.what)
        };
        self.verdicts(listed).findings.into_iter().map(shown).collect()
    }
}

/// Proves the rows T2, T3 and T4 of the threats for one list.
#[test]
fn changes_are_told_or_quarantined_by_mode() {
    const LOOKS: &str = "named to look like another tool";
    let of = |mode, is_locked| Scene { mode, is_locked, is_first: false };
    let (report, suspicious, strict) =
        (of(PinMode::Report, false), of(PinMode::Suspicious, false), of(PinMode::Quarantine, false));
    let locked = of(PinMode::Quarantine, true);
    let same: &[(&str, &str)] = &[("read", "d")];
    for scene in [&report, &suspicious, &strict, &locked] {
        assert!(scene.findings(same).is_empty());
    }
    for (listed, told, by_suspicion) in [
        (&[("read", "e")][..], "read changed", false),
        (&[("read", "do this now!")], "read changed", true),
        (&[("fetch", "d")], "fetch renamed", false),
        (&[("read", "d"), ("write", "w")], "write new", false),
        (&[("read", "d"), ("Read", "d")], "Read named like another tool but for case", false),
        (&[("read", "d"), ("re\u{430}d", "d")], &format!("re\u{430}d {LOOKS}"), true),
        (&[("read", "d"), ("s\u{435}nd_mail", "d")], &format!("s\u{435}nd_mail {LOOKS}"), true),
        (&[("read", "d"), ("signalbox_switch", "d")], "signalbox_switch named like a tool of the gateway", true),
    ] {
        let quarantined = format!("!{told}");
        assert_eq!(report.findings(listed), [told]);
        assert_eq!(suspicious.findings(listed), [if by_suspicion { &quarantined } else { told }]);
        assert_eq!(strict.findings(listed), [quarantined.as_str()]);
        assert_eq!(locked.findings(listed), [quarantined.as_str()]);
    }
    assert!(of(PinMode::Quarantine, true).findings(&[]).is_empty(), "a tool that is gone needs no approval");
    assert!(of(PinMode::Report, false).findings(&[("read", "d"), ("send_mail", "d")]) == ["send_mail new"]);
}

#[test]
fn without_a_lock_file_what_is_seen_first_is_remembered_and_what_is_quarantined_is_not() {
    let learned = |scene: &Scene, listed: &[(&str, &str)]| -> Vec<String> {
        scene.verdicts(listed).learned.into_iter().map(|one| one.name).collect()
    };
    let first = Scene { mode: PinMode::Suspicious, is_locked: false, is_first: true };
    assert_eq!(learned(&first, &[("read", "x!"), ("write", "y")]), ["read", "write"]);
    assert!(first.findings(&[("read", "x!"), ("write", "y")]).is_empty());
    let later = Scene { is_first: false, ..first };
    assert_eq!(learned(&later, &[("read", "x!"), ("write", "y")]), ["write"]);
    let locked = Scene { mode: PinMode::Report, is_locked: true, is_first: false };
    assert!(learned(&locked, &[("read", "x"), ("write", "y")]).is_empty());
}
