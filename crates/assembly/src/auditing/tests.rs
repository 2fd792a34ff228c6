//! Answers to administrators wait for their records, and not for ever.

use super::*;
use signalbox_audit::{AdminOrigin, AdminOutcome};
use signalbox_config::Overrides;
use std::net::TcpListener;

fn action(name: &str) -> AdminAction<'_> {
    AdminAction {
        who: "key:ada",
        address: None,
        origin: AdminOrigin::Api,
        action: name,
        target: "one/greet",
        before: None,
        after: None,
        outcome: AdminOutcome::Done,
    }
}

/// Begins the audit log of this folder.
fn begin(folder: &Path, more: &str) -> Auditing {
    let text = format!("[gateway]\ndata_dir = '{}'\n[mcp.protocol.audit]\nenabled = true\n{more}", folder.display());
    let env = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
    let config = Config::parse(Path::new("signalbox.toml"), &text, &env, &Overrides::default()).unwrap().config;
    let auditing = Auditing::open(&config).unwrap().unwrap();
    auditing.begin(AuditRun::new(1, 1), &config).unwrap();
    auditing
}

fn journal(folder: &Path) -> String {
    let chains = std::fs::read_dir(journals(folder)).unwrap().map(|chain| chain.unwrap().path());
    let files = chains.filter(|path| path.is_dir()).flat_map(|chain| std::fs::read_dir(chain).unwrap());
    files.map(|file| String::from_utf8_lossy(&std::fs::read(file.unwrap().path()).unwrap()).into_owned()).collect()
}

#[tokio::test]
async fn a_confirmed_action_is_in_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let auditing = begin(folder.path(), "");
    for name in ["grant.add", "token.issue"] {
        assert!(auditing.administer_confirmed(&action(name)).await);
        assert!(journal(folder.path()).contains(name), "{name}");
    }
}

/// The clock of the test jumps to the end of the wait, while the sink does not answer.
#[tokio::test(start_paused = true)]
async fn the_wait_for_a_stuck_sink_ends_and_the_action_counts_as_not_recorded() {
    let (folder, stuck) = (tempfile::tempdir().unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let address = stuck.local_addr().unwrap();
    let sinks = format!("[mcp.protocol.audit.sinks]\nremote_sink = true\nremote_endpoint = 'http://{address}/'\n");
    let auditing = begin(folder.path(), &format!("required = ['remote']\n{sinks}"));
    let began = tokio::time::Instant::now();
    assert!(!auditing.administer_confirmed(&action("grant.add")).await);
    assert!(began.elapsed() <= CONFIRMED_WITHIN + Duration::from_millis(100), "{:?}", began.elapsed());
}
