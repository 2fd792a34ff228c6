//! `signalbox stdio` with a credential in `SIGNALBOX_STDIO_TOKEN`.

use super::openers::{ended, token};
use super::{LIFE, PATIENCE, config, holds, jwt};
use serde_json::json;
use signalbox_testkit::gateway::stdio_command;
use signalbox_testkit::pipe_client::PipeClient;
use signalbox_testkit::scene::{eventually, signalbox};
use std::path::Path;
use std::process::Stdio;
use tokio::process::{Child, Command};

/// The ways in which the credential of a pipe, or its rights, end.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum PipeEnding {
    KeyExpires,
    KeyIsRevoked,
    KeyLosesRoles,
    KeyLosesResources,
    TokenExpires,
    IssuerIsRemoved,
}

impl PipeEnding {
    const ALL: [Self; 6] = [
        Self::KeyExpires,
        Self::KeyIsRevoked,
        Self::KeyLosesRoles,
        Self::KeyLosesResources,
        Self::TokenExpires,
        Self::IssuerIsRemoved,
    ];

    async fn credential(self, data_dir: &Path) -> String {
        let life = format!("{LIFE}s");
        let mut args = vec!["keys", "new", "pipe", "--subject", "user:key"];
        match self {
            Self::TokenExpires => return token("ada", LIFE),
            Self::IssuerIsRemoved => return token("ada", 600),
            Self::KeyExpires => args.extend(["--expires", &life]),
            Self::KeyIsRevoked | Self::KeyLosesRoles | Self::KeyLosesResources => {}
        }
        signalbox(data_dir, &args).await.unwrap().trim().to_owned()
    }

    async fn happen(self, folder: &Path) {
        let rewrite = |role: &str, more: &str| {
            let mut text = config(folder, role, more);
            if self == Self::KeyLosesResources {
                text = text.replacen("roles = ['all']\n", "roles = ['all']\nresources = ['file:///other/*']\n", 1);
            }
            std::fs::write(folder.join("signalbox.toml"), text).unwrap();
        };
        match self {
            Self::KeyExpires | Self::TokenExpires => {}
            Self::KeyIsRevoked => drop(signalbox(&folder.join("data"), &["keys", "revoke", "pipe"]).await.unwrap()),
            Self::KeyLosesRoles => rewrite("none", &jwt(folder)),
            Self::KeyLosesResources => rewrite("all", &jwt(folder)),
            Self::IssuerIsRemoved => rewrite("all", ""),
        }
    }
}

fn start(folder: &Path, credential: &str) -> (Child, PipeClient) {
    let command = stdio_command(folder, &config(folder, "all", &jwt(folder))).unwrap();
    let mut process = Command::new(&command[0]);
    process.args(&command[1..]).env("SIGNALBOX_STDIO_TOKEN", credential).current_dir(folder);
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut process = process.spawn().unwrap();
    let pipes = tokio::io::join(process.stdout.take().unwrap(), process.stdin.take().unwrap());
    (process, PipeClient::lines_over(pipes))
}

/// The session of a pipe ends with its credential, and with the rights that it had.
#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_ends_with_its_credential_and_its_rights() {
    for ending in PipeEnding::ALL {
        let folder = tempfile::tempdir().unwrap();
        let data_dir = folder.path().join("data");
        std::fs::create_dir(&data_dir).unwrap();
        let credential = ending.credential(&data_dir).await;
        let (_process, mut client) = start(folder.path(), &credential);
        client.initialize("2025-06-18", json!({})).await.unwrap();
        for (id, tool) in [(2, "slow"), (3, "greet")] {
            let params = json!({"name": tool, "arguments": {"ms": 600_000, "name": "Eve"}});
            let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
            client.say(&call.to_string()).await.unwrap();
        }
        let held = async || (holds(&data_dir).await == 1).then_some(());
        eventually(&format!("{ending:?}: the call is held"), held).await.unwrap();
        ending.happen(folder.path()).await;
        let end = tokio::time::timeout(PATIENCE, ended(&mut client)).await;
        let said = end.unwrap_or_else(|_| panic!("{ending:?}: the session outlives its credential")).unwrap();
        assert_eq!(said.matches("credential is").count(), 2, "{ending:?}: both calls end: {said}");
    }
}
