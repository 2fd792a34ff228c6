//! What the program says about itself: help, manual pages, completions.

use crate::program::run;
use std::process::{Command, Stdio};

/// The commands, each with the words that lead to it.
const COMMANDS: &[&[&str]] = &[
    &["serve"],
    &["stdio"],
    &["wrap"],
    &["proxy"],
    &["tools"],
    &["tools", "list"],
    &["guard"],
    &["guard", "test"],
    &["guard", "canary"],
    &["guard", "canary", "new"],
    &["guard", "canary", "find"],
    &["tools", "call"],
    &["tools", "pin"],
    &["tools", "diff"],
    &["tools", "approve"],
    &["status"],
    &["hold"],
    &["hold", "list"],
    &["hold", "show"],
    &["hold", "release"],
    &["hold", "edit"],
    &["hold", "answer"],
    &["hold", "refuse"],
    &["hold", "next"],
    &["hold", "tool"],
    &["hold", "method"],
    &["hold", "clear"],
    &["switch"],
    &["switch", "list"],
    &["switch", "kill"],
    &["switch", "quarantine"],
    &["switch", "lift"],
    &["grant"],
    &["grant", "list"],
    &["grant", "add"],
    &["grant", "break-glass"],
    &["grant", "revoke"],
    &["policy"],
    &["policy", "check"],
    &["policy", "explain"],
    &["policy", "who"],
    &["policy", "backtest"],
    &["policy", "test"],
    &["login"],
    &["logout"],
    &["watch"],
    &["sessions"],
    &["sessions", "list"],
    &["sessions", "show"],
    &["sessions", "end"],
    &["sessions", "cleanup"],
    &["doctor"],
    &["reload"],
    &["check"],
    &["import"],
    &["man"],
    &["completions"],
    &["tape"],
    &["tape", "list"],
    &["tape", "show"],
    &["tape", "search"],
    &["tape", "stats"],
    &["tape", "diff"],
    &["tape", "export"],
    &["tape", "import"],
    &["tape", "keep"],
    &["tape", "verify"],
    &["tape", "prove"],
    &["tape", "redact"],
    &["tape", "prune"],
    &["tape", "delete"],
    &["replay"],
    &["replay", "serve"],
    &["replay", "run"],
    &["replay", "branch"],
    &["replay", "shrink"],
    &["replay", "control"],
    &["replay", "control", "show"],
    &["replay", "control", "play"],
    &["replay", "control", "pause"],
    &["replay", "control", "stop"],
    &["replay", "control", "step"],
    &["replay", "control", "seek"],
    &["replay", "control", "speed"],
    &["replay", "control", "break"],
    &["replay", "control", "clear"],
    &["replay", "control", "inject"],
    &["replay", "control", "modify"],
    &["backtest"],
    &["relay"],
    &["relay", "migrate"],
    &["audit"],
    &["audit", "search"],
    &["audit", "verify"],
    &["audit", "export"],
    &["keys"],
    &["keys", "new"],
    &["keys", "list"],
    &["keys", "revoke"],
    &["users"],
    &["users", "add"],
    &["users", "list"],
    &["users", "remove"],
    &["rules"],
    &["rules", "check"],
    &["rules", "list"],
    &["rules", "test"],
    &["rules", "add"],
    &["rules", "remove"],
    &["rules", "enable"],
    &["rules", "disable"],
    &["seal"],
    &["seal", "keys"],
    &["seal", "keys", "new"],
    &["seal", "keys", "list"],
    &["seal", "keys", "show"],
    &["seal", "keys", "import"],
    &["seal", "keys", "export"],
    &["seal", "keys", "revoke"],
    &["seal", "keys", "rotate"],
    &["seal", "keys", "trust"],
    &["seal", "sign"],
    &["seal", "verify"],
    &["config"],
    &["config", "reference"],
];

#[tokio::test]
async fn every_command_has_help_a_manual_page_and_most_have_examples() {
    let folder = tempfile::tempdir().unwrap();
    let written = run(folder.path(), &["man", "--out", "pages"], "").await;
    assert_eq!(written.code, 0, "{}", written.stderr);
    assert_eq!(written.stdout.lines().count(), COMMANDS.len() + 1, "{}", written.stdout);
    for words in COMMANDS {
        let mut args = words.to_vec();
        args.push("--help");
        let help = run(folder.path(), &args, "").await;
        assert!(help.code == 0 && help.stdout.contains("--data-dir"), "{words:?}: {}", help.stdout);
        let lacks = words.len() > 1 || *words == ["config"];
        assert!(lacks || help.stdout.contains("Example"), "{words:?}: {}", help.stdout);
        let file = format!("pages/signalbox-{}.1", words.join("-"));
        let page = std::fs::read_to_string(folder.path().join(&file)).expect(&file);
        assert!(page.contains(&format!(".TH signalbox-{} 1", words.join("-"))), "{words:?}: {page}");
        assert!(page.contains("\\-\\-json"), "{words:?}: {page}");
    }
    let main = run(folder.path(), &["man"], "").await.stdout;
    assert!(main.contains(".TH signalbox 1") && main.contains("doctor") && main.contains("Exit codes"), "{main}");
    assert_eq!(std::fs::read_to_string(folder.path().join("pages/signalbox.1")).unwrap(), main);
}

#[tokio::test]
async fn completions_are_scripts_that_their_shells_can_read() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let done = run(folder.path(), &["completions", shell], "").await;
        assert!(done.code == 0 && done.stdout.contains("doctor") && done.stdout.contains("watch"), "{shell}");
        let file = folder.path().join(shell);
        std::fs::write(&file, done.stdout).unwrap();
        // Those three read a script without running it; where a shell is not installed there is nobody to ask.
        if ["bash", "zsh", "fish"].contains(&shell)
            && let Ok(read) = Command::new(shell).arg("-n").arg(&file).stdin(Stdio::null()).output()
        {
            assert!(read.status.success(), "{shell}: {}", String::from_utf8_lossy(&read.stderr));
        }
    }
}
