//! `signalbox doctor` meets what usually goes wrong, and says what to do about it.

use crate::program::{self, Program};
use serde_json::Value;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Backends are really started here, some of them by Node.js on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);
/// No test may care which ports are free.
const ANY_PORT: &str = "[mcp.protocol.transport]\nport = 0\n";

/// What the doctor said.
struct Verdict {
    code: i32,
    findings: Vec<Value>,
}

impl Verdict {
    /// The one finding of this severity about this.
    fn the(&self, severity: &str, check: &str) -> &Value {
        let fits = |one: &&Value| one["severity"] == severity && one["check"] == check;
        let all: Vec<&Value> = self.findings.iter().filter(fits).collect();
        assert_eq!(all.len(), 1, "{severity} {check} in {:#?}", self.findings);
        all[0]
    }

    fn problems(&self) -> usize {
        self.findings.iter().filter(|one| one["severity"] == "problem").count()
    }
}

async fn doctor(folder: &Path, config: &str) -> Verdict {
    std::fs::write(folder.join("signalbox.toml"), config).unwrap();
    let done = program::command(folder, &["doctor", "--json"]).stdin(Stdio::null()).output();
    let done = tokio::time::timeout(PATIENCE, done).await.expect("the doctor to end").unwrap();
    let told = String::from_utf8(done.stdout).unwrap();
    let told: Value = serde_json::from_str(&told).expect(&told);
    let code = done.status.code().unwrap();
    assert_eq!(told["ok"], code == 0, "{told}");
    Verdict { code, findings: told["findings"].as_array().unwrap().clone() }
}

#[track_caller]
fn says(finding: &Value, member: &str, words: &str) {
    assert!(finding[member].as_str().is_some_and(|text| text.contains(words)), "no `{words}` in {finding:#}");
}

/// A backend that is this very program with its demo tools, run by a shell after something else.
fn after(script: &str, folder: &Path) -> String {
    let (program, inner) = (env!("CARGO_BIN_EXE_signalbox"), folder.join("inner"));
    let line = format!("{script}; exec {program} stdio -c /dev/null --data-dir {}", inner.display());
    format!("{ANY_PORT}[backends.b]\ncommand = \"/bin/sh\"\nargs = [\"-c\", {line:?}]\n")
}

#[tokio::test]
async fn a_missing_npx_is_told_with_what_to_install() {
    let folder = tempfile::tempdir().unwrap();
    let config = format!(
        "{ANY_PORT}[backends.files]\ncommand = \"npx\"\nargs = [\"-y\", \"server\"]\nenv = {{ PATH = \"/nowhere\" }}\n"
    );
    let verdict = doctor(folder.path(), &config).await;
    assert_eq!((verdict.code, verdict.problems()), (1, 1), "{:#?}", verdict.findings);
    let finding = verdict.the("problem", "backend files");
    says(finding, "found", "program `npx` was not found on PATH (/nowhere)");
    says(finding, "where", "backends.files.command");
    says(finding, "do", "install Node.js");
}

#[tokio::test]
async fn a_taken_port_is_told_with_who_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    let verdict = doctor(folder.path(), &format!("[mcp.protocol.transport]\nport = {port}\n")).await;
    assert_eq!((verdict.code, verdict.problems()), (1, 1), "{:#?}", verdict.findings);
    let finding = verdict.the("problem", "port");
    says(finding, "found", &format!("(pid {})", std::process::id()));
    says(finding, "where", &format!("127.0.0.1:{port}"));
    says(finding, "do", "--listen 127.0.0.1:0");
}

#[tokio::test]
async fn a_port_that_our_own_gateway_has_is_fine_and_its_backends_are_not_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = format!("[mcp.protocol.transport]\nport = {}\n", free.port());
    std::fs::write(folder.path().join("signalbox.toml"), &config).unwrap();
    let server = Program::start(folder.path(), &["serve"]);
    let url = server.url().await;
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    program::eventually(async || program::get(address, "/readyz").await.contains("200 OK").then_some(())).await;
    let verdict = doctor(folder.path(), &config).await;
    assert_eq!(verdict.code, 0, "{:#?}", verdict.findings);
    says(verdict.the("ok", "port"), "found", &format!("signalbox runs here already (pid {})", server.pid()));
    says(verdict.the("ok", "backend demo"), "found", "is up in the running gateway");
    server.signal("TERM").await;
}

#[tokio::test]
async fn a_wrong_path_is_told_with_the_right_one() {
    let folder = tempfile::tempdir().unwrap();
    let theirs = tempfile::tempdir().unwrap();
    let server = Program::start(theirs.path(), &["serve", "--listen", "127.0.0.1:0"]);
    let url = server.url().await;
    let config = |path: &str| format!("{ANY_PORT}[backends.far]\nurl = \"{}\"\n", url.replace("/mcp", path));
    let verdict = doctor(folder.path(), &config("/wrong")).await;
    assert_eq!((verdict.code, verdict.problems()), (1, 1), "{:#?}", verdict.findings);
    let finding = verdict.the("problem", "backend far");
    says(finding, "found", "nothing under the path `/wrong` (404)");
    says(finding, "where", "backends.far.url");
    says(finding, "do", &format!("did you mean `{url}`?"));

    let right = doctor(folder.path(), &config("/mcp")).await;
    assert_eq!(right.code, 0, "{:#?}", right.findings);
    says(right.the("ok", "backend far"), "found", "tools: 3");
    says(right.the("ok", "clock"), "found", "it agrees with the clocks of remote backends (1)");
    server.signal("TERM").await;
}

#[tokio::test]
async fn an_address_where_nobody_listens_and_a_host_that_nobody_knows_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = format!(
        "{ANY_PORT}[backends.a]\nurl = \"http://{free}/mcp\"\n[backends.b]\nurl = \"http://no-such-host.invalid/mcp\"\n"
    );
    let verdict = doctor(folder.path(), &config).await;
    assert_eq!((verdict.code, verdict.problems()), (1, 2), "{:#?}", verdict.findings);
    says(verdict.the("problem", "backend a"), "do", "start the server");
    let unknown = verdict.the("problem", "backend b");
    says(unknown, "found", "`no-such-host.invalid` cannot be resolved");
    says(unknown, "do", "check the spelling");
}

#[tokio::test]
async fn a_backend_that_prints_to_standard_output_is_shown_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let verdict = doctor(folder.path(), &after("echo 'Server is ready!'", folder.path())).await;
    assert_eq!(verdict.code, 0, "it works all the same: {:#?}", verdict.findings);
    says(verdict.the("ok", "backend b"), "found", "tools: 3");
    let finding = verdict.the("warning", "backend b");
    says(finding, "found", "such as: Server is ready!");
    says(finding, "do", "standard error");
}

#[tokio::test]
async fn a_backend_that_ends_at_once_is_told_with_its_code_and_its_last_words() {
    let folder = tempfile::tempdir().unwrap();
    let script = "echo 'reading settings' >&2; echo 'error: MY_TOKEN is not set' >&2; exit 3";
    let verdict = doctor(folder.path(), &after(script, folder.path())).await;
    assert_eq!((verdict.code, verdict.problems()), (1, 1), "{:#?}", verdict.findings);
    let finding = verdict.the("problem", "backend b");
    says(finding, "found", "exited with code 3");
    says(finding, "found", "reading settings | error: MY_TOKEN is not set");
    says(finding, "do", "`env_pass`");
}

#[tokio::test]
async fn an_expired_certificate_is_told_with_its_date() {
    let folder = tempfile::tempdir().unwrap();
    let openssl = |args: &str| {
        let done = Command::new("openssl").args(args.split(' ')).current_dir(folder.path()).output().unwrap();
        assert!(done.status.success(), "{args}: {}", String::from_utf8_lossy(&done.stderr));
    };
    openssl(
        "req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=box.example -keyout key.pem -out ask.pem",
    );
    std::fs::write(folder.path().join("names"), "subjectAltName = DNS:box.example\n").unwrap();
    openssl("x509 -req -in ask.pem -signkey key.pem -extfile names -days -1 -out old.pem");
    openssl("x509 -req -in ask.pem -signkey key.pem -extfile names -days 90 -out good.pem");
    let config = |file: &str| {
        format!(
            "{ANY_PORT}[mcp.protocol.transport.tls]\nenabled = true\ncert_file = \"{file}\"\nkey_file = \"key.pem\"\n"
        )
    };
    let verdict = doctor(folder.path(), &config("old.pem")).await;
    assert_eq!((verdict.code, verdict.problems()), (1, 1), "{:#?}", verdict.findings);
    let finding = verdict.the("problem", "certificate");
    says(finding, "found", "the certificate has expired on 2");
    says(finding, "where", "old.pem");
    says(finding, "do", "renew the certificate");
    let good = doctor(folder.path(), &config("good.pem")).await;
    assert_eq!(good.code, 0, "{:#?}", good.findings);
}

#[tokio::test]
async fn a_configuration_that_cannot_be_used_is_a_finding_too() {
    let folder = tempfile::tempdir().unwrap();
    let verdict = doctor(folder.path(), "[backends.a]\ncomand = \"x\"\n").await;
    assert_eq!((verdict.code, verdict.problems()), (1, 1), "{:#?}", verdict.findings);
    let finding = verdict.the("problem", "config");
    says(finding, "found", "did you mean `command`?");
    says(finding, "where", "signalbox.toml:2:1");
    says(finding, "do", "signalbox config reference");
    let missing = program::run(folder.path(), &["doctor", "-c", "none.toml"], "").await;
    assert_eq!(missing.code, 1, "{}", missing.stderr);
    assert!(missing.stdout.contains("do: check the path after `-c`"), "{}", missing.stdout);
}

#[tokio::test]
async fn a_healthy_setup_with_a_real_server_has_no_problems() {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.deps/npm/node_modules/@modelcontextprotocol");
    let server = modules.join("server-filesystem/dist/index.js");
    if !server.exists() {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "server-filesystem is not installed");
        return eprintln!("SKIP server-filesystem: run script/install-test-deps");
    }
    let folder = tempfile::tempdir().unwrap();
    let config = format!("{ANY_PORT}[backends.files]\ncommand = \"node\"\nargs = [{server:?}, {:?}]\n", folder.path());
    let verdict = doctor(folder.path(), &config).await;
    assert_eq!((verdict.code, verdict.problems()), (0, 0), "{:#?}", verdict.findings);
    let finding = verdict.the("ok", "backend files");
    for words in ["secure-filesystem-server", "started in ", "revision 2025-", "stdio", "tools: 1"] {
        says(finding, "found", words);
    }
    assert!(verdict.findings.iter().any(|one| one["found"].as_str().is_some_and(|text| text.starts_with("node: v"))));
}
