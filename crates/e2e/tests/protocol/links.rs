//! Links to resources inside results, where two servers have the same URIs.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use serde_json::{Value, json};
use signalbox_testkit::clients;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::revision::Revision;
use signalbox_testkit::revision_server::{Network, Options, RunningServer, start};
use signalbox_testkit::scene::lists_saved;
use signalbox_testkit::wire_log::{MessageDirection, read};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// Real clients, each with the era that it is told to speak.
const CLIENTS: [(&str, &str); 6] = [
    ("ts-sdk1", "old"),
    ("py-mcp1", "old"),
    ("ts-client2", "old"),
    ("ts-client2", "new"),
    ("py-mcp2", "old"),
    ("py-mcp2", "new"),
];

/// A server that writes down what it is sent.
struct LoggedServer {
    server: RunningServer,
    log: PathBuf,
}

impl LoggedServer {
    async fn start(revision: Revision, folder: &Path, name: &str) -> Self {
        let log = folder.join(name);
        let options = Options { wire_log: Some(log.clone()), ..Options::of(revision) };
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self { server: start(&options, Network::Http, any).await.unwrap(), log }
    }

    /// Returns the URIs of all resources that it was asked to read.
    fn read_uris(&self) -> Vec<String> {
        let received = read(&self.log).unwrap().into_iter().filter(|one| one.way == MessageDirection::Received);
        let messages = received.map(|one| serde_json::from_str::<Value>(&one.text).unwrap_or_default());
        let reads = messages.filter(|message| message["method"] == "resources/read");
        reads.map(|message| message["params"]["uri"].as_str().unwrap().to_owned()).collect()
    }
}

/// A link is read from the server that gave it, and that server's tools are given its own URI.
#[tokio::test(flavor = "multi_thread")]
async fn real_clients_read_a_link_from_the_server_that_gave_it() {
    let folder = tempfile::tempdir().unwrap();
    let a = LoggedServer::start(Revision::R4, folder.path(), "a").await;
    let b = LoggedServer::start(Revision::R3, folder.path(), "b").await;
    let config = format!("[backends.a]\nurl = \"{}\"\n[backends.b]\nurl = \"{}\"\n", a.server.url(), b.server.url());
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    lists_saved(&gateway.data_dir()).await.unwrap();
    let url = gateway.url();
    for (client, era) in CLIENTS {
        for (prefix, link, asked, other) in [("", "test://static", &a, &b), ("b__", "b+test://static", &b, &a)] {
            let (before, untouched) = (asked.read_uris().len(), other.read_uris());
            let calls = [format!("{prefix}link={{}}"), format!("{prefix}echo={{\"text\":\"$link\"}}")];
            let steps = ["--steps", "links", "--call", &calls[0], "--call", &calls[1], "--url", &url];
            let Some(said) = clients::run(&[&[client, "--era", era], &steps[..]].concat()).await.unwrap() else {
                break;
            };
            let about = format!("{client} {era} {prefix}: {said}");
            let calls = &said["steps"]["call"];
            assert_eq!((&said["ok"], &calls[0]["links"][0]["uri"]), (&json!(true), &json!(link)), "{about}");
            assert_eq!(calls[0]["links"][0]["result"]["contents"][0]["uri"], link, "{about}");
            assert_eq!(asked.read_uris()[before..], ["test://static"], "{about}");
            assert_eq!(other.read_uris(), untouched, "{about}");
            assert_eq!(calls[1]["arguments"]["text"], link, "{about}");
            assert_eq!(calls[1]["result"]["content"][0]["text"], "test://static", "{about}");
        }
    }
}
