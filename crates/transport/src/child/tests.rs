//! Children that are real processes.

use super::recorder::{RecordedEvent, RecordedEvents, outbound, recorder};
use super::*;
use rustix::process::{Pid, Signal, kill_process};
use signalbox_engine::FaultKind;
use std::sync::atomic::Ordering;
use tokio::time::{Instant, sleep};

const GONE_WITHIN: Duration = Duration::from_secs(10);

struct Opened {
    link: Arc<dyn Link>,
    recorded: RecordedEvents,
    connector: ChildConnector,
}

fn sh(script: &str) -> ChildSpec {
    let mut spec = ChildSpec::new("b", "/bin/sh");
    spec.args = vec!["-c".to_owned(), script.to_owned()];
    spec.kill_grace = Duration::from_millis(300);
    spec
}

async fn open(spec: ChildSpec) -> Opened {
    let connector = ChildConnector::new(spec);
    let (events, recorded) = recorder();
    let link = connector.open(events).await.unwrap();
    Opened { link, recorded, connector }
}

impl Opened {
    fn send(&self, text: &str) {
        self.link.send(outbound(text, None)).unwrap();
    }

    async fn closed(mut self) {
        self.link.close();
        assert_eq!(self.recorded.lost().await, "was closed by the gateway");
        assert!(self.connector.reaper().all_gone(GONE_WITHIN).await);
        self.recorded.silence().await;
    }
}

/// Zombies count as gone: who reaps an orphan is not for us to say.
fn is_running(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next());
    state.is_some_and(|state| state != 'Z')
}

async fn wait_gone(pid: &str) {
    let limit = Instant::now() + GONE_WITHIN;
    while is_running(pid) {
        assert!(Instant::now() < limit, "process {pid} still runs");
        sleep(Duration::from_millis(10)).await;
    }
}

/// Proves N-13.
#[tokio::test]
async fn lines_go_to_the_child_and_come_back() {
    let mut opened = open(sh("exec cat")).await;
    assert!(opened.link.pid().is_some());
    for number in 0..500 {
        opened.send(&format!("{{\"id\":{number}}}"));
    }
    for number in 0..500 {
        assert_eq!(opened.recorded.message().await, format!("{{\"id\":{number}}}"));
    }
    opened.closed().await;
}

/// Proves N-15.
#[tokio::test]
async fn a_pretty_printed_message_arrives_as_one_line() {
    let mut opened = open(sh("exec cat")).await;
    opened.send("{\n  \"a\": 1\r\n}");
    opened.link.send(outbound("{\"a\":\"b\nc\"}", Some(7))).unwrap();
    opened.send("{\"last\":1}");
    // The refusal does not wait for the child, so it may be heard of before the first line.
    let mut seen = [opened.recorded.next().await, opened.recorded.next().await];
    seen.sort_by_key(|happened| matches!(happened, RecordedEvent::Failed(..)));
    assert_eq!(seen[0], RecordedEvent::Received("{   \"a\": 1  }".to_owned()));
    match &seen[1] {
        RecordedEvent::Failed(7, fault) => assert!(fault.message.contains("raw line break"), "{fault}"),
        other => panic!("expected a refusal, got {other:?}"),
    }
    assert_eq!(opened.recorded.message().await, "{\"last\":1}");
    assert_eq!(opened.connector.counts().unsendable.load(Ordering::Relaxed), 1);
    opened.closed().await;
}

/// Proves NO-5.
#[tokio::test]
async fn the_environment_is_cleared() {
    // Cargo sets this one for every test.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let script =
        r#"echo "{\"seen\":\"$CARGO_MANIFEST_DIR\",\"mine\":\"$MINE\",\"name\":\"$CARGO_PKG_NAME\"}"; exec cat"#;
    let mut spec = sh(script);
    spec.env = vec![("MINE".to_owned(), "yes $HOME".to_owned())];
    spec.env_pass = vec!["CARGO_PKG_NAME".to_owned()];
    let mut opened = open(spec).await;
    assert_eq!(opened.recorded.message().await, r#"{"seen":"","mine":"yes $HOME","name":"signalbox-transport"}"#);
    opened.closed().await;
}

#[tokio::test]
async fn it_starts_in_its_folder_and_without_a_shell() {
    let mut spec = ChildSpec::new("b", "printf");
    spec.args = vec!["[\"%s\"]\\n".to_owned(), "$HOME; `id` *".to_owned()];
    let mut opened = open(spec).await;
    assert_eq!(opened.recorded.message().await, r#"["$HOME; `id` *"]"#);
    assert_eq!(opened.recorded.lost().await, "exited with code 0");

    let mut spec = sh(r#"echo "[\"$PWD\"]""#);
    spec.cwd = Some("/usr".into());
    assert_eq!(open(spec).await.recorded.message().await, r#"["/usr"]"#);
}

/// Proves NO-4.
#[tokio::test]
async fn the_whole_tree_ends() {
    // Neither the leader nor its child cares for a closed input or SIGTERM.
    let script = r#"trap '' TERM; sleep 600 & echo "[$$,$!]"; wait; sleep 600"#;
    let mut opened = open(sh(script)).await;
    let pids = opened.recorded.message().await;
    let pids: Vec<&str> = pids.trim_matches(['[', ']']).split(',').collect();
    assert!(pids.iter().all(|pid| is_running(pid)));
    opened.closed().await;
    for pid in pids {
        wait_gone(pid).await;
    }
}

/// Proves NO-4.
#[tokio::test]
async fn descendants_end_when_the_leader_has_gone_by_itself() {
    // The descendant keeps all three pipes open.
    let mut opened = open(sh(r#"sleep 600 & echo "[$!]"; exit 3"#)).await;
    let pid = opened.recorded.message().await;
    let pid = pid.trim_matches(['[', ']']);
    let before = Instant::now();
    assert_eq!(opened.recorded.lost().await, "exited with code 3");
    assert!(before.elapsed() < Duration::from_secs(5));
    assert!(opened.connector.reaper().all_gone(GONE_WITHIN).await);
    wait_gone(pid).await;
}

#[tokio::test]
async fn dropping_the_link_ends_the_tree() {
    let mut opened = open(sh(r#"sleep 600 & echo "[$$,$!]"; wait"#)).await;
    let pids = opened.recorded.message().await;
    drop(opened.link);
    assert_eq!(opened.recorded.lost().await, "was closed by the gateway");
    for pid in pids.trim_matches(['[', ']']).split(',') {
        wait_gone(pid).await;
    }
}

#[test]
fn the_end_of_the_runtime_ends_the_tree() {
    let runtime = || tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let first = runtime();
    let pids = first.block_on(async {
        let mut opened = open(sh(r#"trap '' TERM; sleep 600 & echo "[$$,$!]"; wait"#)).await;
        let pids = opened.recorded.message().await;
        std::mem::forget(opened.link);
        pids
    });
    drop(first);
    runtime().block_on(async {
        for pid in pids.trim_matches(['[', ']']).split(',') {
            wait_gone(pid).await;
        }
    });
}

#[tokio::test]
async fn a_polite_child_ends_by_itself_and_its_last_words_are_heard() {
    let mut spec = sh(r#"cat >/dev/null; echo '{"bye":1}'"#);
    spec.kill_grace = Duration::from_secs(20);
    let mut opened = open(spec).await;
    opened.send("{}");
    opened.link.close();
    assert_eq!(opened.recorded.message().await, "{\"bye\":1}");
    assert_eq!(opened.recorded.lost().await, "was closed by the gateway");
    let fault = opened.link.send(outbound("{}", None)).unwrap_err();
    assert_eq!(fault.kind, FaultKind::BackendDown);
    assert_eq!(fault.message, "backend `b` is not running: it was closed by the gateway");
}

#[tokio::test]
async fn what_is_queued_before_close_is_still_written() {
    let mut spec = sh("exec cat");
    spec.kill_grace = Duration::from_secs(20);
    let mut opened = open(spec).await;
    for _ in 0..100 {
        opened.send("{\"queued\":1}");
    }
    opened.link.close();
    assert_eq!(opened.link.send(outbound("{}", None)).unwrap_err().kind, FaultKind::BackendDown);
    for _ in 0..100 {
        assert_eq!(opened.recorded.message().await, "{\"queued\":1}");
    }
    assert_eq!(opened.recorded.lost().await, "was closed by the gateway");
}

#[tokio::test]
async fn the_end_quotes_standard_error() {
    let script = r#"echo '{"out":1}'; echo starting >&2; printf 'Error: no \033[31mkey\n' >&2; exit 1"#;
    let mut opened = open(sh(script)).await;
    assert_eq!(opened.recorded.message().await, "{\"out\":1}");
    assert_eq!(opened.recorded.lost().await, r"exited with code 1: Error: no \u{1b}[31mkey");
    let fault = opened.link.send(outbound("{}", None)).unwrap_err();
    assert!(fault.message.ends_with(r"it exited with code 1: Error: no \u{1b}[31mkey"), "{fault}");
    // The end is told once, whatever else is done to the link.
    opened.link.close();
    drop(opened.link);
    opened.recorded.silence().await;
}

#[tokio::test]
async fn everything_written_before_the_exit_arrives() {
    let script =
        r#"i=0; while [ $i -lt 2000 ]; do echo "{\"id\":$i}"; i=$((i+1)); done; printf '{"unended":1}'; exit 4"#;
    let mut opened = open(sh(script)).await;
    for number in 0..2000 {
        assert_eq!(opened.recorded.message().await, format!("{{\"id\":{number}}}"));
    }
    assert_eq!(opened.recorded.message().await, "{\"unended\":1}");
    assert_eq!(opened.recorded.lost().await, "exited with code 4");
}

#[tokio::test]
async fn a_killed_child_is_told_from_one_that_exited() {
    let mut opened = open(sh("exec cat")).await;
    opened.send("{}");
    opened.recorded.message().await;
    let pid = i32::try_from(opened.link.pid().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    assert_eq!(opened.recorded.lost().await, "was killed by signal 9");
    opened.recorded.silence().await;
}

#[tokio::test]
async fn a_child_that_closes_a_pipe_but_stays_is_ended() {
    let mut opened = open(sh(r#"echo "[$$]"; exec >&-; sleep 600"#)).await;
    let pid = opened.recorded.message().await;
    assert_eq!(opened.recorded.lost().await, "closed its standard output");
    wait_gone(pid.trim_matches(['[', ']'])).await;

    let mut opened = open(sh(r#"exec <&-; echo "[$$]"; sleep 600"#)).await;
    let pid = opened.recorded.message().await;
    opened.send("{}");
    assert_eq!(opened.recorded.lost().await, "closed its standard input");
    wait_gone(pid.trim_matches(['[', ']'])).await;
}

#[tokio::test]
async fn a_missing_program_is_named() {
    let (events, _recorded) = recorder();
    let connector = ChildConnector::new(ChildSpec::new("b", "no-such-program-here"));
    let Err(fault) = connector.open(events).await else {
        panic!("it started");
    };
    assert_eq!(fault.kind, FaultKind::BackendDown);
    assert!(fault.message.contains("`no-such-program-here` was not found on PATH"), "{fault}");
    assert_eq!(connector.reaper().live(), 0);
}

#[tokio::test]
async fn banners_and_long_lines_are_skipped() {
    let script =
        r#"echo 'Server v1 ready!'; echo '42'; echo '{"a":1}'; printf '{"%01000d"}\n' 0; echo ' [1]'; exec cat"#;
    let mut spec = sh(script);
    spec.max_message = 100;
    let mut opened = open(spec).await;
    assert_eq!(opened.recorded.message().await, "{\"a\":1}");
    assert_eq!(opened.recorded.message().await, " [1]");
    let counts = Arc::clone(opened.connector.counts());
    assert_eq!(counts.not_json.load(Ordering::Relaxed), 2);
    assert_eq!(counts.too_long.load(Ordering::Relaxed), 1);
    opened.closed().await;
}

#[tokio::test]
async fn a_child_that_does_not_read_is_not_sent_more() {
    let opened = open(sh("exec sleep 600")).await;
    let text = format!("{{\"x\":\"{}\"}}", "x".repeat(1000));
    let mut sent = 0;
    let fault = loop {
        match opened.link.send(outbound(&text, Some(sent))) {
            Ok(()) => sent += 1,
            Err(fault) => break fault,
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(fault.kind, FaultKind::Overloaded);
    assert!(fault.message.contains("`b`") && sent >= crate::send_queue::QUEUE as u64, "{sent}: {fault}");
    assert_eq!(opened.connector.counts().refused.load(Ordering::Relaxed), 1);
    opened.closed().await;
}

#[tokio::test]
async fn the_queue_is_bounded_in_bytes_too() {
    let opened = open(sh("exec sleep 600")).await;
    let text = format!("{{\"x\":\"{}\"}}", "x".repeat(crate::send_queue::QUEUE_BYTES / 4));
    let sent = (0..10).take_while(|_| opened.link.send(outbound(&text, None)).is_ok()).count();
    assert_eq!(sent, 3);
    opened.closed().await;
}

#[tokio::test]
async fn a_message_larger_than_the_pipe_passes_both_ways() {
    let mut opened = open(sh("exec cat")).await;
    let text = format!("{{\"x\":\"{}\"}}", "x".repeat(3_000_000));
    opened.send(&text);
    assert!(opened.recorded.message().await == text);
    opened.closed().await;
}

#[tokio::test]
async fn the_reaper_kills_what_does_not_end_in_time() {
    let reaper = Reaper::new();
    let mut pids = Vec::new();
    let mut kept = Vec::new();
    for _ in 0..3 {
        let connector =
            ChildConnector::new(sh(r#"trap '' TERM; echo "[$$]"; sleep 600; sleep 600"#)).with_reaper(&reaper);
        let (events, mut recorded) = recorder();
        kept.push(connector.open(events).await.unwrap());
        pids.push(recorded.message().await);
    }
    assert_eq!(reaper.live(), 3);
    assert!(!reaper.all_gone(Duration::from_millis(50)).await);
    assert_eq!(reaper.live(), 0);
    for pid in pids {
        wait_gone(pid.trim_matches(['[', ']'])).await;
    }
    assert!(reaper.all_gone(Duration::ZERO).await);
}

#[test]
fn secrets_are_not_shown() {
    let mut spec = ChildSpec::new("b", "program");
    spec.env = vec![("TOKEN".to_owned(), "hunter2".to_owned())];
    spec.args = vec!["--key=hunter2".to_owned()];
    let shown = format!("{spec:?} {:?}", ChildConnector::new(spec.clone()));
    assert!(shown.contains("TOKEN") && !shown.contains("hunter2"), "{shown}");
}
