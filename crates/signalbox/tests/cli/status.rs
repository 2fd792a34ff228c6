//! `signalbox status` with figures, again and again, and on a terminal.

use crate::program::{self, Done, Program, run};
use crate::{INITIALIZE, INITIALIZED, call};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

/// A gateway on a pipe that has answered some calls, one of them with an error.
async fn busy(folder: &Path) -> Program {
    let mut program = Program::start(folder, &["stdio"]);
    program.write(INITIALIZE).await;
    program.line().await;
    program.write(INITIALIZED).await;
    for id in 2..12 {
        program.write(&call(id, "echo", &json!({"text": "hi"}))).await;
        program.line().await;
    }
    program.write(&call(12, "no_such_tool", &json!({}))).await;
    program.line().await;
    program
}

/// Proves S-19 and S-20.
#[tokio::test]
async fn status_tells_rates_errors_and_how_long_calls_take() {
    let folder = tempfile::tempdir().unwrap();
    let program = busy(folder.path()).await;
    let json = run(folder.path(), &["status", "--json"], "").await;
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    let (total, demo) = (&json[0]["traffic"]["total"], &json[0]["traffic"]["backends"]["demo"]);
    assert_eq!((&total["calls"], &total["errors"]), (&json!(12), &json!(1)), "{json}");
    assert_eq!((&demo["calls"], &demo["errors"], &demo["recent"]["calls"]), (&json!(10), &json!(0), &json!(10)));
    let quantile = |name: &str| demo["recent"][name].as_f64().unwrap();
    assert!(0.0 <= quantile("p50_ms") && quantile("p50_ms") <= quantile("p99_ms"), "{demo}");
    assert!(json[0]["limits"].as_array().unwrap().iter().any(|limit| limit["what"] == "open files"), "{json}");

    let shown = run(folder.path(), &["status"], "").await.stdout;
    assert!(shown.contains("requests  12, errors: 1, ") && shown.contains(" p99 "), "{shown}");
    assert!(shown.contains("config    none, using defaults"), "{shown}");
    assert!(shown.is_ascii() && shown.contains("P50") && shown.contains("RATE"), "{shown}");
    program.signal("TERM").await;
}

#[tokio::test]
async fn watching_appends_where_there_is_no_terminal_and_ends_well_by_ctrl_c() {
    let folder = tempfile::tempdir().unwrap();
    let mut gateway = busy(folder.path()).await;
    let mut watch = Program::start(folder.path(), &["status", "--watch", "0.1", "--json"]);
    let first: Value = serde_json::from_str(&watch.line().await).unwrap();
    assert!(first[0]["traffic"]["total"]["per_second_now"].is_null(), "one look gives no rate: {first}");
    gateway.write(&call(20, "echo", &json!({"text": "hi"}))).await;
    gateway.line().await;
    // The call ended between two of the looks that follow.
    let rates = async {
        loop {
            let look: Value = serde_json::from_str(&watch.line().await).unwrap();
            if look[0]["traffic"]["backends"]["demo"]["per_second_now"].as_f64().unwrap() > 0.0 {
                return;
            }
        }
    };
    tokio::time::timeout(program::PATIENCE, rates).await.expect("a look that shows the call");
    watch.signal("INT").await;
    assert_eq!(watch.ended().await, Some(0), "{}", watch.stderr());

    gateway.signal("TERM").await;
    gateway.ended().await;
    let mut alone = Program::start(folder.path(), &["status", "--watch", "0.1"]);
    assert!(alone.line().await.contains("no signalbox is running"));
    alone.signal("INT").await;
    assert_eq!(alone.ended().await, Some(0));
    let bad = run(folder.path(), &["status", "--watch", "0"], "").await;
    assert!(bad.code == 2 && bad.stderr.contains("from 0.1 to 3600"), "{}", bad.stderr);
}

/// A terminal of this width with what was written to it.
pub struct Terminal {
    inside: File,
    seen: Arc<Mutex<String>>,
}

pub fn terminal(width: u16) -> Terminal {
    let outside = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&outside).unwrap();
    unlockpt(&outside).unwrap();
    let name = ptsname(&outside, Vec::new()).unwrap();
    let inside = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    tcsetwinsize(&inside, Winsize { ws_row: 30, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let seen = Arc::new(Mutex::new(String::new()));
    let (mut outside, kept) = (File::from(outside), Arc::clone(&seen));
    std::thread::spawn(move || {
        let mut chunk = [0; 4096];
        while let Ok(read @ 1..) = outside.read(&mut chunk) {
            kept.lock().unwrap().push_str(&String::from_utf8_lossy(&chunk[..read]));
        }
    });
    Terminal { inside, seen }
}

impl Terminal {
    fn seen(&self) -> String {
        self.seen.lock().unwrap().clone()
    }

    /// Runs the program on this terminal to its end.
    pub async fn run(&self, folder: &Path, args: &[&str], env: &[(&str, &str)]) -> Done {
        let mut command = program::command(folder, args);
        command.env("TERM", "xterm").env_remove("NO_COLOR").envs(env.iter().copied());
        command.stdout(Stdio::from(self.inside.try_clone().unwrap())).stdin(Stdio::null());
        let done = command.spawn().unwrap().wait_with_output();
        let done = tokio::time::timeout(program::PATIENCE, done).await.expect("an end").unwrap();
        let code = done.status.code().unwrap_or(-1);
        program::eventually(async || self.seen().ends_with('\n').then_some(())).await;
        Done { code, stdout: self.seen(), stderr: String::from_utf8(done.stderr).unwrap() }
    }
}

#[tokio::test]
async fn on_a_terminal_the_table_fits_and_has_colours_unless_they_are_unwanted() {
    let folder = tempfile::tempdir().unwrap();
    let program = busy(folder.path()).await;
    let wide = terminal(200).run(folder.path(), &["status"], &[]).await;
    assert!(wide.code == 0 && wide.stdout.contains("\u{1b}[32mup\u{1b}[0m"), "{}", wide.stdout);
    assert!(wide.stdout.contains("REVISION"), "{}", wide.stdout);

    let narrow = terminal(50).run(folder.path(), &["status"], &[("NO_COLOR", "1")]).await;
    assert!(!narrow.stdout.contains('\u{1b}'), "{}", narrow.stdout);
    let table: Vec<&str> = narrow.stdout.lines().skip_while(|line| !line.starts_with("BACKEND")).take(2).collect();
    assert!(table.len() == 2 && table.iter().all(|line| line.len() <= 50), "{table:?}");
    assert!(table[0].contains("STATE") && !table[0].contains("TRUST"), "{table:?}");
    program.signal("TERM").await;
}

#[tokio::test]
async fn watching_redraws_in_place_on_a_terminal_and_gives_it_back() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = busy(folder.path()).await;
    let terminal = terminal(100);
    let mut command = program::command(folder.path(), &["status", "-w", "0.1"]);
    command.env("TERM", "xterm").stdout(Stdio::from(terminal.inside.try_clone().unwrap())).stdin(Stdio::null());
    let mut watch = command.spawn().unwrap();
    program::eventually(async || (terminal.seen().matches("\u{1b}[H").count() >= 3).then_some(())).await;
    assert!(terminal.seen().starts_with("\u{1b}[?1049h"));
    program::signal(watch.id().unwrap(), "INT").await;
    let ended = tokio::time::timeout(program::PATIENCE, watch.wait()).await.expect("an end").unwrap();
    assert_eq!(ended.code(), Some(0));
    program::eventually(async || {
        let seen = terminal.seen();
        let (_, after) = seen.split_once("\u{1b}[?1049l")?;
        (seen.contains("\u{1b}[?25h") && after.contains("BACKEND")).then_some(())
    })
    .await;
    gateway.signal("TERM").await;
}

/// How often the threads of a process have given up the processor of their own accord.
#[cfg(target_os = "linux")]
fn switches(pid: u32) -> u64 {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let of = |line: &str| line.strip_prefix("voluntary_ctxt_switches:")?.trim().parse::<u64>().ok();
    // A thread may end meanwhile.
    let texts = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("status")).ok());
    texts.filter_map(|text| text.lines().find_map(of)).sum()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_gateway_that_nobody_uses_hardly_ever_wakes() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    program.url().await;
    let mut rate = f64::MAX;
    // The beginning is busy, and asking it would be too.
    for _ in 0..4 {
        let (before, since) = (switches(program.pid()), std::time::Instant::now());
        tokio::time::sleep(std::time::Duration::from_secs(10)).await;
        rate = switches(program.pid()).saturating_sub(before) as f64 / since.elapsed().as_secs_f64();
        if rate <= 5.0 {
            break;
        }
    }
    assert!(rate <= 5.0, "{rate} voluntary context switches a second");
    program.signal("TERM").await;
}
