//! `signalbox wrap` changes no byte: compared with raw captures on both sides of it, under real clients and with
//! whatever else a server may print.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it wants")]

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use signalbox_testkit::clients::{run, run_script};
use signalbox_testkit::process::built;
use signalbox_testkit::scene::{alive, eventually};

/// `signalbox wrap` with these flags around this command.
fn wrap(data_dir: &Path, flags: &[&str], command: &[&str]) -> Command {
    let mut wrap = Command::new(built("signalbox").unwrap());
    wrap.arg("wrap").arg("--data-dir").arg(data_dir).args(flags).arg("--").args(command);
    wrap.stdin(Stdio::piped()).stdout(Stdio::piped());
    wrap
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Writes all of it, closes the input, and gives what comes back and the exit code.
fn talk(mut child: Child, said: Vec<u8>) -> (Vec<u8>, Option<i32>) {
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let writing = std::thread::spawn(move || input.write_all(&said));
    let mut heard = Vec::new();
    output.read_to_end(&mut heard).unwrap();
    let _ = writing.join().unwrap();
    (heard, child.wait().unwrap().code())
}

/// Lines of all kinds: JSON and not, CRLF, empty, halves, binary, one of 8 MB, and no end at the end.
fn odd_bytes() -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in [
        &b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"[..],
        b"Server listening on stdio\r\n",
        b"\n \t \r\n\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":",
        b"\r",
        b" 2,\"method\":\"ping\"}\n",
        b"\xef\xbb\xbf{}\n\x00\x01\x02\xff\xfe\n[1,2\n",
    ] {
        bytes.extend_from_slice(part);
    }
    bytes.extend(std::iter::repeat_n(b'x', 8 * 1024 * 1024));
    bytes.push(b'\n');
    bytes.extend((0..=255).cycle().take(100_000));
    bytes.extend_from_slice(b"no end");
    bytes
}

/// Proves S-31.
#[tokio::test(flavor = "multi_thread")]
async fn a_real_server_under_real_clients_gets_and_gives_the_same_bytes() {
    for client in [&["ts-sdk1"][..], &["py-mcp1"], &["ts-client2", "--era", "old"]] {
        let folder = tempfile::tempdir().unwrap();
        let (outer, inner) = (folder.path().join("outer"), folder.path().join("inner"));
        let (tee, script) = (built("raw-tee").unwrap(), run_script());
        let signalbox = built("signalbox").unwrap();
        let data = folder.path().join("data");
        let mut line = client.to_vec();
        line.extend(["--steps", "tools,call,elicit,progress,prompts,resources", "--answer", "Ada"]);
        line.extend(["--call", r#"echo={"message":"häł😀"}"#, "--call", "trigger-elicitation-request={}"]);
        line.extend(["--call", r#"trigger-long-running-operation={"duration":1,"steps":4}"#]);
        line.extend(["--stdio", text(&tee), text(&outer), text(&signalbox), "wrap", "--data-dir", text(&data), "--"]);
        line.extend([text(&tee), text(&inner), text(&script), "everything", "stdio"]);
        let Some(document) = run(&line).await.unwrap() else { return };
        let calls = document["steps"]["call"].to_string();
        assert!(calls.contains("häł😀") && calls.contains("Ada"), "{client:?}: {calls}");
        for way in ["in", "out"] {
            let read = |prefix: &Path| std::fs::read(prefix.with_extension(way)).unwrap();
            let (outside, inside) = (read(&outer), read(&inner));
            assert!(outside.len() > 1000, "{client:?} {way}: {}", outside.len());
            assert!(outside == inside, "{client:?} {way}: {} and {} bytes", outside.len(), inside.len());
        }
    }
}

/// Proves N-12.
#[test]
fn whatever_is_sent_passes_both_ways_untrimmed() {
    let folder = tempfile::tempdir().unwrap();
    let sent = odd_bytes();
    let (heard, code) = talk(wrap(folder.path(), &[], &["cat"]).spawn().unwrap(), sent.clone());
    assert!(heard == sent, "{} of {} bytes", heard.len(), sent.len());
    assert_eq!(code, Some(0));
}

#[test]
fn a_part_of_a_line_passes_before_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = wrap(folder.path(), &[], &["cat"]).spawn().unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    for part in [&b"{\"a\""[..], b": 1", b"}\r\n"] {
        input.write_all(part).unwrap();
        let mut heard = vec![0; part.len()];
        output.read_exact(&mut heard).unwrap();
        assert_eq!(heard, part);
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_exit_code_standard_error_and_the_environment_are_the_servers_own() {
    let folder = tempfile::tempdir().unwrap();
    let script = "printf 'on stderr' >&2; printf %s \"$MCP_TEST_WRAPPED\"; pwd; exit 42";
    let mut command = wrap(folder.path(), &[], &["sh", "-c", script]);
    let output = command.env("MCP_TEST_WRAPPED", "kept ").current_dir("/").output().unwrap();
    assert_eq!(output.status.code(), Some(42));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "on stderr");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "kept /\n");
    let output = wrap(folder.path(), &[], &["/nowhere/at/all"]).output().unwrap();
    assert_eq!(output.status.code(), Some(127));
    assert!(String::from_utf8(output.stderr).unwrap().contains("there is no program `/nowhere/at/all`"));
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_reach_the_server_and_its_death_ends_the_wrapper() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap 'echo term; exit 3' TERM; trap 'echo int; exit 4' INT; echo $$; while :; do sleep 0.05; done";
    for (name, said, code) in [("TERM", "term\n", Some(3)), ("INT", "int\n", Some(4)), ("KILL", "", None)] {
        let mut child = wrap(folder.path(), &[], &["sh", "-c", script]).spawn().unwrap();
        let mut output = child.stdout.take().unwrap();
        let mut number = Vec::new();
        while number.last() != Some(&b'\n') {
            let mut byte = [0];
            output.read_exact(&mut byte).unwrap();
            number.push(byte[0]);
        }
        let server: u32 = String::from_utf8(number).unwrap().trim().parse().unwrap();
        // What cannot be passed on is sent to the server itself.
        let (target, code) = if code.is_some() { (child.id(), code) } else { (server, Some(128 + 9)) };
        signalbox_testkit::scene::signal(target, name).await.unwrap();
        let mut heard = String::new();
        output.read_to_string(&mut heard).unwrap();
        assert_eq!((heard.as_str(), child.wait().unwrap().code()), (said, code), "{name}");
        eventually("the server is gone", async || (!alive(server)).then_some(())).await.unwrap();
    }
}

#[test]
fn a_server_that_does_not_end_with_its_client_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = wrap(folder.path(), &["--grace", "0.2"], &["sleep", "600"]).spawn().unwrap();
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    // A client that only stops reading is gone, too, as soon as there is something to tell it.
    let mut child =
        wrap(folder.path(), &["--grace", "0.2"], &["sh", "-c", "trap '' PIPE; while :; do echo x; sleep 0.05; done"])
            .spawn()
            .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
}

/// Proves SO-2.
#[test]
fn a_server_can_be_named_without_a_command() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let signalbox = |words: &[&str]| {
        let mut command = Command::new(built("signalbox").unwrap());
        command.arg("--data-dir").arg(folder.path().join("data")).args(words).current_dir(folder.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command
    };
    let file = |name: &str, text: &str, mode: u32| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    file("server.py", "import sys\nsys.stdout.write(sys.argv[1] + sys.stdin.read())\n", 0o644);
    file("server", "#!/bin/sh\nprintf %s \"$1\"; exec cat\n", 0o755);
    file("server.ts", "", 0o644);
    for program in ["server.py", "./server"] {
        let (heard, code) = talk(signalbox(&[program, "--json"]).spawn().unwrap(), b" said\n".to_vec());
        assert_eq!((String::from_utf8(heard).unwrap().as_str(), code), ("--json said\n", Some(0)), "{program}");
    }
    for (words, told) in [(&["./server.ts"][..], "npx tsx"), (&["statsu"], "status"), (&["./nowhere"], "no file")] {
        let output = signalbox(words).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("unrecognized subcommand") && said.contains(told), "{said}");
    }
}
