//! The tapes of `signalbox wrap` and `signalbox proxy`: every byte that passed, and every request with its answer.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail wherever it wants")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use signalbox_engine::fact::Point;
use signalbox_engine::record::{Body, Content, Entry, MessageKind, Query, SessionInfo, TapeKind, TapeStore as _};
use signalbox_store::SqliteStore;
use signalbox_tape::{Bodies, Select, TapeFile};
use signalbox_testkit::clients::{everything, run, run_script};
use signalbox_testkit::process::{Spawned, built};
use signalbox_testkit::scene::signal;

/// What a tape tells.
#[derive(Default)]
struct Told {
    from_client: Vec<u8>,
    from_server: Vec<u8>,
    kinds: BTreeMap<&'static str, usize>,
    outcomes: BTreeMap<String, usize>,
    /// Exchanges that a request opened, and that an answer belongs to.
    asked: Vec<(Option<u64>, u64)>,
    answered: Vec<(Option<u64>, u64)>,
    sessions: Vec<SessionInfo>,
    gaps: usize,
}

impl Told {
    fn by(entries: impl IntoIterator<Item = Entry>) -> Self {
        let (mut told, mut bodies) = (Self::default(), Bodies::default());
        for entry in entries {
            let entry = bodies.whole(entry);
            let exchange = entry.exchange.map(|exchange| (entry.session, exchange));
            match entry.content {
                Content::Message(message) => {
                    let Body::Whole(bytes) = message.body else { panic!("a body is missing: {message:?}") };
                    assert_eq!(message.length, bytes.len() as u64);
                    match message.point {
                        Point::ClientIn => told.from_client.extend_from_slice(&bytes),
                        _ => told.from_server.extend_from_slice(&bytes),
                    }
                    *told.kinds.entry(message.kind.word()).or_default() += 1;
                    match message.kind {
                        MessageKind::Request => told.asked.extend(exchange),
                        MessageKind::Result | MessageKind::Error => told.answered.extend(exchange),
                        _ => {}
                    }
                }
                Content::Finished(end) => *told.outcomes.entry(end.outcome.into_owned()).or_default() += 1,
                Content::Session(info) => told.sessions.push(info),
                Content::Gap(_) => told.gaps += 1,
                _ => {}
            }
        }
        told.asked.sort_unstable();
        told.answered.sort_unstable();
        told
    }

    fn file(path: &Path) -> Self {
        let mut tape = TapeFile::open(File::open(path).unwrap()).unwrap();
        assert_eq!(tape.missing(), None);
        Self::by(tape.entries(Select::default()).map(Result::unwrap).collect::<Vec<_>>())
    }

    /// The newest tape of a data folder.
    fn stored(data_dir: &Path) -> (TapeKind, Self) {
        let store = SqliteStore::open(data_dir.join("tapes.db")).unwrap();
        let tape = store.tape("last").unwrap();
        assert!(tape.ended.is_some() && tape.redaction.is_empty(), "{tape:?}");
        let mut entries = Vec::new();
        loop {
            let after = entries.last().map(|entry: &Entry| entry.seq);
            let query = Query { tape: Some(tape.id.clone()), after, limit: Some(500), ..Query::default() };
            let page = store.find(&query).unwrap();
            let more = page.more;
            entries.extend(page.hits.into_iter().map(|hit| hit.entry));
            if !more {
                return (tape.kind, Self::by(entries));
            }
        }
    }

    /// Every request has its one answer, and nothing is missing.
    fn is_all_matched(&self) {
        assert!(!self.asked.is_empty());
        assert_eq!(self.asked, self.answered);
        assert_eq!(self.outcomes.values().sum::<usize>(), self.asked.len(), "{:?}", self.outcomes);
        assert!(!self.outcomes.contains_key("unanswered"), "{:?}", self.outcomes);
        assert_eq!(self.gaps, 0);
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

const STEPS: [&str; 10] = [
    "--steps",
    "tools,call,elicit,progress,prompts,resources",
    "--answer",
    "Ada",
    "--call",
    r#"echo={"message":"häł😀"}"#,
    "--call",
    "trigger-elicitation-request={}",
    "--call",
    r#"trigger-long-running-operation={"duration":1,"steps":4}"#,
];

/// Proves S-31, S-61 and S-63.
#[tokio::test(flavor = "multi_thread")]
async fn a_tape_holds_every_byte_of_a_real_session_and_matches_every_request() {
    for (client, as_file) in [(&["ts-sdk1"][..], true), (&["py-mcp1"], false), (&["ts-client2", "--era", "old"], true)]
    {
        let folder = tempfile::tempdir().unwrap();
        let (seen, file, data) = (folder.path().join("seen"), folder.path().join("x.tape"), folder.path().join("data"));
        let (tee, script, signalbox) = (built("raw-tee").unwrap(), run_script(), built("signalbox").unwrap());
        let mut line = [client, &STEPS[..]].concat();
        line.extend(["--stdio", text(&tee), text(&seen), text(&signalbox), "--data-dir", text(&data), "wrap"]);
        if as_file {
            line.extend(["--tape", text(&file)]);
        }
        line.extend(["--", text(&script), "everything", "stdio"]);
        let Some(document) = run(&line).await.unwrap() else { return };
        assert!(document["steps"]["call"].to_string().contains("häł😀"), "{client:?}");
        let place = if as_file { &file } else { &data.join("tapes.db") };
        wait_for_end(place, &data, as_file).await;
        assert_eq!(place.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{client:?}");
        let told = if as_file { Told::file(&file) } else { Told::stored(&data).1 };
        let read = |way: &str| std::fs::read(seen.with_extension(way)).unwrap();
        assert!(told.from_client == read("in"), "{client:?}: {} bytes", told.from_client.len());
        assert!(told.from_server == read("out"), "{client:?}: {} bytes", told.from_server.len());
        told.is_all_matched();
        let last = told.sessions.last().unwrap();
        assert!(last.client.is_some() && last.client_version.is_some() && last.revision.is_some(), "{last:?}");
        assert_eq!(last.transport, "stdio");
        if as_file {
            let sessions = TapeFile::open(File::open(&file).unwrap()).unwrap().all_sessions().unwrap();
            assert_eq!(sessions.last().map(|(_, session)| &session.client), Some(&last.client), "{client:?}");
        }
        println!("{client:?}: {:?} {:?}", told.kinds, told.outcomes);
    }
}

/// The client is done as soon as its pipe is closed; the wrapper may need a moment more.
async fn wait_for_end(place: &Path, data: &Path, as_file: bool) {
    let ended = async || {
        let ended = match as_file {
            true => TapeFile::open(File::open(place).ok()?).ok()?.missing().is_none(),
            false => SqliteStore::open(data.join("tapes.db")).ok()?.tape("last").ok()?.ended.is_some(),
        };
        ended.then_some(())
    };
    signalbox_testkit::scene::eventually("the tape has ended", ended).await.unwrap();
}

/// Proves S-53 and S-63.
#[test]
fn what_is_no_json_is_on_the_tape_too_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let mut sent =
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\nnoise\n\n \t\n{\"half\":\n\x00\xff\xfe\n".to_vec();
    sent.extend(std::iter::repeat_n(b'x', 8 * 1024 * 1024));
    sent.extend_from_slice(b"\nno end");
    let mut wrap = Command::new(built("signalbox").unwrap());
    wrap.arg("wrap").arg("--data-dir").arg(folder.path()).args(["--", "cat"]);
    let mut child = wrap.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let said = sent.clone();
    let writing = std::thread::spawn(move || input.write_all(&said));
    let mut heard = Vec::new();
    output.read_to_end(&mut heard).unwrap();
    writing.join().unwrap().unwrap();
    assert!(child.wait().unwrap().success());
    assert!(heard == sent);
    let (kind, told) = Told::stored(folder.path());
    assert_eq!(kind, TapeKind::Wrap);
    assert!(told.from_client == sent && told.from_server == sent);
    assert_eq!(told.kinds, BTreeMap::from([("raw", 14), ("request", 2)]));
    assert_eq!(told.outcomes, BTreeMap::from([("unanswered".to_owned(), 2)]));
}

#[test]
fn nothing_is_recorded_when_that_is_asked_for_and_bytes_pass_when_it_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    let wrapped = |flags: &[&str]| {
        let mut wrap = Command::new(built("signalbox").unwrap());
        wrap.arg("wrap").args(flags).args(["--", "echo", "hi"]).stdin(Stdio::null());
        let output = wrap.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let data = folder.path().join("data");
    assert_eq!(wrapped(&["--data-dir", text(&data), "--no-tape"]), (Some(0), "hi\n".to_owned(), String::new()));
    assert!(!data.join("tapes.db").exists());
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let (code, stdout, stderr) = wrapped(&["--data-dir", text(&file)]);
    assert_eq!((code, &*stdout), (Some(0), "hi\n"));
    assert!(stderr.contains("nothing is recorded"), "{stderr}");
    let (code, stdout, stderr) = wrapped(&["--data-dir", text(&data), "--tape", text(&file)]);
    assert_eq!((code, &*stdout), (Some(1), ""));
    assert!(stderr.contains("exists"), "{stderr}");
}

#[test]
fn a_tape_goes_to_the_database_of_the_configuration_and_bytes_pass_when_that_is_away() {
    let folder = tempfile::tempdir().unwrap();
    let (config, data) = (folder.path().join("signalbox.toml"), folder.path().join("data"));
    std::fs::write(&config, "[record]\npostgres = \"postgres://nobody@127.0.0.1:1/none\"\n").unwrap();
    let mut wrap = Command::new(built("signalbox").unwrap());
    wrap.args(["-c", text(&config), "--data-dir", text(&data), "wrap", "--", "echo", "hi"]).stdin(Stdio::null());
    let output = wrap.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b"hi\n"[..]), "{said}");
    assert!(said.contains("calls are NOT recorded"), "{said}");
    assert!(!data.join("tapes.db").exists());
}

/// Proves S-50.
#[tokio::test(flavor = "multi_thread")]
async fn a_real_client_through_a_proxy_gets_what_it_gets_without_and_all_of_it_is_on_the_tape() {
    let Some((_server, address)) = everything("streamableHttp").await.unwrap() else { return };
    for client in [&["ts-sdk1"][..], &["py-mcp1"]] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.tape");
        let mut command = tokio::process::Command::new(built("signalbox").unwrap());
        command.args(["proxy", "--listen", "127.0.0.1:0", "--tape", text(&file), &format!("http://{address}/mcp")]);
        let mut proxy = Spawned::start(command).unwrap();
        let url = banner_url(&proxy).await;
        let through = run(&[client, &STEPS[..], &["--url", &url]].concat()).await.unwrap().unwrap();
        let direct = run(&[client, &STEPS[..], &["--url", &format!("http://{address}/mcp")]].concat()).await.unwrap();
        let direct = direct.unwrap();
        for step in ["tools", "call", "prompts", "resources"] {
            assert_eq!(through["steps"][step]["names"], direct["steps"][step]["names"], "{client:?} {step}");
        }
        assert!(through["steps"]["call"].to_string().contains("häł😀"), "{client:?}: {through}");
        assert_eq!(through["progress"], direct["progress"], "{client:?}");
        signal(proxy.pid().unwrap(), "TERM").await.unwrap();
        assert!(proxy.wait(Duration::from_secs(60)).await.unwrap().success());
        let told = Told::file(&file);
        told.is_all_matched();
        let last = told.sessions.last().unwrap();
        assert!(last.external.is_some() && last.client.is_some() && last.revision.is_some(), "{last:?}");
        println!("{client:?}: {:?} {:?}", told.kinds, told.outcomes);
    }
}

/// The address that the proxy says it listens on.
async fn banner_url(proxy: &Spawned) -> String {
    let look = async || {
        let lines = proxy.error_lines();
        let line = lines.iter().find(|line| line.contains(" passes MCP at "))?;
        line.split(" passes MCP at ").nth(1)?.split(' ').next().map(str::to_owned)
    };
    signalbox_testkit::scene::eventually("the proxy listens", look).await.unwrap()
}
