//! `signalbox check` and `signalbox rules`: everything that is wrong or probably not intended, before anything starts.

use crate::program::{Done, Program, command, eventually, run};
use crate::{INITIALIZE, INITIALIZED};
use serde_json::Value;
use std::path::Path;

async fn check(folder: &Path, text: &str) -> Done {
    std::fs::write(folder.join("signalbox.toml"), text).unwrap();
    run(folder, &["check"], "").await
}

#[tokio::test]
async fn check_refuses_the_certificates_that_serve_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[mcp.protocol.transport.tls]\nenabled = true\ncert_file = \"cert.pem\"\nkey_file = \"key.pem\"\n";
    let missing = check(folder.path(), text).await;
    assert!(missing.code == 2 && missing.stderr.contains("cert.pem"), "{}{}", missing.stdout, missing.stderr);
    for file in ["cert.pem", "key.pem"] {
        std::fs::write(folder.path().join(file), "no certificate").unwrap();
    }
    let garbage = check(folder.path(), text).await;
    let served = run(folder.path(), &["serve", "--listen", "127.0.0.1:0"], "").await;
    assert_eq!((garbage.code, served.code), (2, 2), "{}", served.stderr);
    assert_eq!(garbage.stderr, served.stderr);
}

#[tokio::test]
async fn check_warns_of_programs_that_cannot_be_started() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[backends.a]\ncommand = \"no-such-program\"\n[backends.b]\ncommand = \"other\"\ndisabled = true\n";
    let done = check(folder.path(), text).await;
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stderr.contains("backends.a.command: program `no-such-program` was not found"), "{}", done.stderr);
    assert!(!done.stderr.contains("other"), "{}", done.stderr);
}

#[tokio::test]
async fn all_errors_of_a_file_are_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[gateway]\ndrain = -1\nmax_streams = 0\n[backends.a]\ncomand = \"x\"\n[backends.b]\nargs = [\"x\"]\n\
                [[rules]]\nid = \"one\"\nthen = [{ alow = true }]\n[[rules]]\nid = \"two\"\nwhen = { metod = \"x\" }\nthen = [\"allow\"]\n";
    let done = check(folder.path(), text).await;
    assert_eq!(done.code, 2, "{}", done.stderr);
    for expected in ["gateway.drain", "gateway.max_streams", "backends.a.comand", "backends.b: has neither"] {
        assert_eq!(done.stderr.matches(expected).count(), 1, "{expected}: {}", done.stderr);
    }
    let only_rules = check(
        folder.path(),
        text.split_once("[[rules]]").map(|(_, rest)| format!("[[rules]]{rest}")).unwrap().as_str(),
    )
    .await;
    assert!(only_rules.stderr.contains("alow") && only_rules.stderr.contains("metod"), "{}", only_rules.stderr);
    assert_eq!(only_rules.stderr.lines().count(), 2, "{}", only_rules.stderr);
}

#[tokio::test]
async fn names_that_nothing_has_are_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[[rules]]\nid = \"r\"\nwhen = { backend = \"file*\", method = [\"tools/call\", \"tools/cal\"], params = { \"/arguments/x\" = { exists = true } } }\nthen = [{ fork = \"shadow\" }]\n\
                [[rules]]\nid = \"s\"\nwhen = { tool = \"write_*\", params = { \"/params/path\" = { exists = true } } }\nthen = [{ block = \"no\" }]\n";
    for command in [["check"].as_slice(), &["rules", "check"]] {
        std::fs::write(folder.path().join("signalbox.toml"), text).unwrap();
        let done = run(folder.path(), command, "").await;
        let said = format!("{}{}", done.stdout, done.stderr);
        assert_eq!(done.code, 0, "{said}");
        for expected in [
            "no backend is called `file*`",
            "`tools/cal` is not an MCP method",
            "`/arguments/x` begins inside `params`; pointers begin at the message: write `/params/arguments/x`",
            "forks to `shadow`, which is not a backend",
            "the params of a tool call has no `path`",
        ] {
            assert!(said.contains(expected), "{command:?}: {expected}: {said}");
        }
        assert!(!said.contains("write `/params/params"), "{said}");
        // While nobody knows what tools there are, nothing is said of them.
        assert!(!said.contains("write_*"), "{said}");
    }
    let list = [INITIALIZE, INITIALIZED, r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#].join("\n");
    assert_eq!(run(folder.path(), &["stdio"], &list).await.code, 0);
    let known = run(folder.path(), &["check", "--json"], "").await;
    let known: Value = serde_json::from_str(&known.stdout).unwrap();
    assert!(known["warnings"].to_string().contains("no backend has listed a tool `write_*`"), "{known}");
}

#[tokio::test]
async fn rules_test_goes_on_behind_a_delay_and_speaks_words() {
    let folder = tempfile::tempdir().unwrap();
    let call = ["rules", "test", "--tool", "echo"];
    let none = run(folder.path(), &call, "").await;
    assert_eq!((none.code, none.stdout.as_str()), (0, "there are no rules, so the message passes\n"));
    let text = "[[rules]]\nid = \"slow\"\npriority = 1\nthen = [{ delay = \"2s\" }]\n\
                [[rules]]\nid = \"ask\"\nthen = [{ hold = { reason = \"look\", within = \"20s\" } }]\n";
    std::fs::write(folder.path().join("signalbox.toml"), text).unwrap();
    let held = run(folder.path(), &call, "").await;
    assert!(held.stdout.contains("waits 2s, then continues with the next rules"), "{}{}", held.stdout, held.stderr);
    assert!(held.stdout.contains("verdict: hold a person decides within 20s: look\n"), "{}", held.stdout);
}

/// Exchanges have their numbers in the log.
/// Proves N-20.
#[tokio::test]
async fn names_that_several_backends_have_are_warned_of_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_signalbox");
    let mut text = String::new();
    for name in ["a", "b"] {
        let inner = folder.path().join(name);
        text += &format!(
            "[backends.{name}]\ncommand = {program:?}\nargs = [\"stdio\", \"--data-dir\", {inner:?}, \"-c\", \"/dev/null\"]\n"
        );
    }
    std::fs::write(folder.path().join("signalbox.toml"), text).unwrap();
    let mut gateway = Program::start(folder.path(), &["stdio", "--log-level", "debug"]);
    gateway.write(INITIALIZE).await;
    gateway.answer(1).await;
    gateway.write(INITIALIZED).await;
    gateway.write(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#).await;
    let list = gateway.answer(2).await;
    assert!(list.contains("b__echo"), "{list}");
    let warning = "`echo` of backend `b` is called `b__echo`";
    eventually(async || gateway.stderr().contains(warning).then_some(())).await;
    eventually(async || gateway.stderr().contains("method=tools/list").then_some(())).await;
    let ended = gateway.stderr();
    let line = ended.lines().find(|line| line.contains("method=tools/list")).unwrap();
    assert!(line.contains("exchange="), "{line}");
    let status = run(folder.path(), &["status"], "").await;
    assert!(status.stdout.contains(warning), "{}", status.stdout);
    gateway.signal("TERM").await;
    gateway.ended().await;
    for command in ["check", "doctor"] {
        let done = run(folder.path(), &[command], "").await;
        assert!(
            format!("{}{}", done.stdout, done.stderr).contains(warning),
            "{command}: {}{}",
            done.stdout,
            done.stderr
        );
    }
}

/// Patterns that match nothing protect nothing.
#[tokio::test]
async fn patterns_that_match_nothing_are_told_by_check_reload_status_and_switch() {
    let folder = tempfile::tempdir().unwrap();
    let (program, inner) = (env!("CARGO_BIN_EXE_signalbox"), folder.path().join("inner"));
    let backend = format!(
        "[backends.files]\ncommand = {program:?}\nargs = [\"stdio\", \"--data-dir\", {inner:?}, \"-c\", \"/dev/null\"]\n"
    );
    let file = folder.path().join("signalbox.toml");
    std::fs::write(&file, &backend).unwrap();
    let gateway = Program::start(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    gateway.url().await;
    eventually(async || run(folder.path(), &["tools", "list"], "").await.stdout.contains("echo").then_some(())).await;
    let typos = "[gateway]\nwatch_config = false\n[limits.'flies/echo']\nprice = 1\n[roles.a]\nallow = ['files']\ndeny = ['files/ehco']\n";
    std::fs::write(&file, format!("{backend}{typos}")).unwrap();
    let reloaded = run(folder.path(), &["reload"], "").await;
    let status = run(folder.path(), &["status"], "").await;
    // The lists of the gateway are known to the next command once they are kept.
    let checked = eventually(async || {
        let checked = run(folder.path(), &["check"], "").await;
        checked.stderr.contains("ehco").then_some(checked)
    })
    .await;
    for done in [&checked, &reloaded, &status] {
        let said = format!("{}{}", done.stdout, done.stderr);
        assert_eq!(done.code, 0, "{said}");
        let backend = "limits.\"flies/echo\": no backend is called `flies`; did you mean `files/echo`?";
        assert!(said.contains(backend), "{said}");
        assert!(said.contains("fits `files/ehco`; did you mean `files/echo`?"), "{said}");
    }
    eventually(async || gateway.stderr().contains("did you mean `files/echo`?").then_some(())).await;
    let killed = run(folder.path(), &["switch", "kill", "nosuch/thing"], "").await;
    assert!(killed.code == 0 && killed.stderr.contains("it matches nothing now"), "{}", killed.stderr);
    let killed = run(folder.path(), &["switch", "kill", "files/echo"], "").await;
    assert!(killed.code == 0 && !killed.stderr.contains("warning"), "{}", killed.stderr);
    gateway.signal("TERM").await;
}

/// Kubernetes sets `SIGNALBOX_PORT` for a service of that name.
#[tokio::test]
async fn unknown_variables_do_not_stop_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(folder.path(), &["check"]);
    command.env("SIGNALBOX_PORT", "tcp://10.0.0.1:80").env("SIGNALBOX_URL", "").env("SIGNALBOX_KEY", "k");
    let done = command.output().await.unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success() && said.contains("SIGNALBOX_PORT: ignored: unknown variable"), "{said}");
    assert!(!said.contains("SIGNALBOX_KEY:") && !said.contains("SIGNALBOX_URL:"), "{said}");
}

/// `check` cannot know that a proxy leads back.
#[tokio::test]
async fn a_gateway_behind_a_proxy_is_no_backend_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = proxy.local_addr().unwrap();
    std::fs::write(folder.path().join("own.toml"), format!("[backends.loop]\nurl = \"http://{address}/mcp\"\n"))
        .unwrap();
    let gateway = Program::start(folder.path(), &["serve", "-c", "own.toml", "--listen", "127.0.0.1:0"]);
    let url = gateway.url().await;
    let behind = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let forwarding = tokio::spawn(async move {
        loop {
            let (mut front, _) = proxy.accept().await.unwrap();
            let mut back = tokio::net::TcpStream::connect(&behind).await.unwrap();
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut front, &mut back).await });
        }
    });
    eventually(async || {
        let status = run(folder.path(), &["status", "--json"], "").await;
        let status: Value = serde_json::from_str(&status.stdout).ok()?;
        let backend = &status[0]["backends"][0];
        (backend["state"] != "up" && backend.to_string().contains("leads back")).then_some(())
    })
    .await;
    forwarding.abort();
    gateway.signal("TERM").await;
}

/// A configuration that is its own backend started one process after the other.
#[tokio::test]
async fn a_gateway_does_not_run_inside_itself() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("own.toml");
    let script = format!("exec {} stdio -c {}", env!("CARGO_BIN_EXE_signalbox"), file.display());
    std::fs::write(&file, format!("[backends.loop]\ncommand = \"sh\"\nargs = [\"-c\", {script:?}]\n")).unwrap();
    let gateway = Program::start(folder.path(), &["serve", "-c", "own.toml", "--listen", "127.0.0.1:0"]);
    gateway.url().await;
    eventually(async || gateway.stderr().contains("starts Signalbox with this file again").then_some(())).await;
    gateway.signal("TERM").await;
}
