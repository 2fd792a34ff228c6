//! Records of administration, which its answers wait for.

use super::*;

fn note(name: &str) -> AuditNote {
    AuditNote {
        timestamp: 1,
        event_type: EventType::AdminAction,
        source: "mcp_admin",
        user_context: "{}".to_owned(),
        details: format!(r#"{{"action":"{name}"}}"#),
        risk_level: RiskLevel::Medium,
    }
}

fn confirmed(log: &AuditLog, name: &str) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(log.note_confirmed(note(name)))
}

/// Text of all files of the journal.
fn journal(folder: &Path) -> String {
    let files = std::fs::read_dir(folder.join("journal/chain")).unwrap();
    files.map(|file| String::from_utf8_lossy(&std::fs::read(file.unwrap().path()).unwrap()).into_owned()).collect()
}

#[test]
fn a_confirmed_record_is_in_the_journal() {
    for fsync in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let log = start(AuditSettings { fsync, ..settings(folder.path(), &[], 1 << 20) }, Vec::new());
        for name in ["grant.add", "switch.set", "token.issue"] {
            assert!(confirmed(&log, name));
            assert!(journal(folder.path()).contains(name), "{name} is confirmed, and not in the journal");
        }
        // A record that nothing waits for is written all the same.
        drop(log.note_confirmed(note("grant.revoke")));
        log.stop(Duration::ZERO);
        assert!(journal(folder.path()).contains("grant.revoke"));
    }
}

#[test]
fn a_record_is_not_confirmed_while_a_required_sink_does_not_take_it() {
    let folder = tempfile::tempdir().unwrap();
    let shaky = Shaky::default();
    let log = start(settings(folder.path(), &["remote"], 1 << 20), vec![Box::new(shaky.clone())]);
    assert!(!confirmed(&log, "grant.add"));
    shaky.works.store(true, Ordering::SeqCst);
    let found = (0..500).any(|_| {
        // Not a runtime thread: the log writes on one of its own.
        std::thread::park_timeout(Duration::from_millis(20));
        confirmed(&log, "switch.set")
    });
    assert!(found && shaky.kept.lock().unwrap().iter().any(|line| line.contains("switch.set")));
}

#[test]
fn a_record_that_cannot_be_written_is_confirmed_unless_a_sink_is_required() {
    for (required, goes_on) in [(&[][..], true), (&["remote"][..], false)] {
        let folder = tempfile::tempdir().unwrap();
        let log = start(settings(folder.path(), required, 1 << 20), vec![Box::new(Shaky::default())]);
        log.stop(Duration::ZERO);
        assert_eq!(confirmed(&log, "grant.add"), goes_on);
        assert_eq!(log.requires_nothing(), goes_on);
    }
}
