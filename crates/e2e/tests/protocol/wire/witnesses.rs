//! The witnesses themselves: without a gateway between them, each saw what the other did.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use signalbox_testkit::process::built;
use signalbox_testkit::revision::Revision;
use signalbox_testkit::revision_client::{Answers, Client, Reach};
use signalbox_testkit::revision_server::{Network, Options, start};
use signalbox_testkit::wire_log::{Logged, MessageDirection, read};

/// How long the last message may take to be seen.
const PATIENCE: Duration = Duration::from_secs(20);

/// What went one way, in no order.
fn texts(log: &[Logged], way: MessageDirection) -> Vec<&str> {
    let mut texts: Vec<&str> = log.iter().filter(|one| one.way == way).map(|one| one.text.as_str()).collect();
    texts.sort_unstable();
    texts
}

/// Calls that bring everything a transport has: answers alone, streams, questions, what belongs to no call.
async fn talk(client: &Client, revision: Revision, network: Option<Network>) {
    client.call("echo", json!({"text": "grüße\n"})).await.unwrap();
    client.follow("test://watched").await.unwrap();
    for tool in ["log", "touch", "change_tools", "ask_sampling", "orphan", "rumour"] {
        client.call(tool, json!({})).await.unwrap();
    }
    // In the new era over HTTP a client has left when it has its answer, so that nobody reads a second one.
    if !(revision.modern() && network == Some(Network::Http)) {
        client.call("twice", json!({})).await.unwrap();
    }
    if !revision.modern() {
        client.call("ping_client", json!({})).await.unwrap();
        client.call("withdraw", json!({})).await.unwrap();
    }
    if revision == Revision::R2 {
        client.call("batch", json!({})).await.unwrap();
        client.batch(&[("ping", json!({})), ("tools/list", json!({}))]).await.unwrap();
    }
}

/// Waits until both logs say the same.
async fn agree(client: &Client, log: &Path, name: &str) {
    let agreeing = async {
        loop {
            let (ours, theirs) = (client.wire_log(), read(log).unwrap());
            if texts(&ours, MessageDirection::Sent) == texts(&theirs, MessageDirection::Received)
                && texts(&ours, MessageDirection::Received) == texts(&theirs, MessageDirection::Sent)
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let agreed = tokio::time::timeout(PATIENCE, agreeing).await;
    let (ours, theirs) = (client.wire_log(), read(log).unwrap());
    assert!(agreed.is_ok(), "{name}: the client saw\n{ours:#?}\nand the server\n{theirs:#?}");
    assert!(ours.len() > 20, "{name}: only {} messages", ours.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn each_witness_received_what_the_other_sent() {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    for revision in Revision::ALL {
        for network in [None, Some(Network::Http), Some(Network::Sse), Some(Network::Ws), Some(Network::Tcp)] {
            let folder = tempfile::tempdir().unwrap();
            let log = folder.path().join("wire");
            let options = Options { wire_log: Some(log.clone()), odd: true, ..Options::of(revision) };
            let fits = match network {
                Some(Network::Http) => revision.streams(),
                Some(Network::Sse) => !revision.modern(),
                _ => true,
            };
            if !fits {
                continue;
            }
            let server = match network {
                Some(network) => Some(start(&options, network, anywhere).await.unwrap()),
                None => None,
            };
            let url = server.as_ref().map(|server| server.url().to_owned()).unwrap_or_default();
            let reach = match network {
                None => Reach::Stdio(command(revision, &log)),
                Some(Network::Http) => Reach::Http(url),
                Some(Network::Sse) => Reach::Sse(url),
                Some(Network::Ws) => Reach::Ws(url),
                Some(Network::Tcp) => Reach::Tcp(url.trim_start_matches("tcp://").to_owned()),
            };
            let client = Client::open(revision, reach, Answers::all("ada")).await.unwrap();
            talk(&client, revision, network).await;
            agree(&client, &log, &format!("{revision} {network:?}")).await;
        }
    }
}

fn command(revision: Revision, log: &Path) -> Vec<String> {
    let program = built("revision-server").unwrap().display().to_string();
    let log = log.display().to_string();
    [&program, "--stdio", "--odd", "--revision", revision.name(), "--wire-log", &log].map(str::to_owned).to_vec()
}
