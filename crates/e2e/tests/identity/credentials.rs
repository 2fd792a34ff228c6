//! A credential ends everything that it holds open: every proof, every way in which it can end, everything
//! that can be open.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

mod certificates;
mod openers;
mod pipes;
mod resuming;

use openers::{Opener, SignIn, issuer_keys, nonce, seal_key, token, valid_until};
use serde_json::{Value, json};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::ports::free_address;
use signalbox_testkit::scene::{child, eventually, signalbox};
use std::path::Path;
use std::time::Duration;

const RESOURCE: &str = "https://box.example/mcp";
/// Longer than a credential of a test is good, and much shorter than a call that is held or runs.
const PATIENCE: Duration = Duration::from_secs(30);
/// The life of a credential that expires. Everything has to be open by then.
const LIFE: u64 = 8;

/// The ways in which a credential, or its rights, end.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Ending {
    Expires,
    IsRemoved,
    LosesRights,
}

const ENDINGS: [Ending; 3] = [Ending::Expires, Ending::IsRemoved, Ending::LosesRights];

/// The settings: what `ada` is called by each proof, with these roles. `greet` is held for a person.
fn config(folder: &Path, role: &str, more: &str) -> String {
    let users = ["user:key", "corp:ada", "user:ada", "user:seal", "user:cert"];
    let users: String = users.iter().map(|user| format!("[auth.users.'{user}']\nroles = ['{role}']\n")).collect();
    std::fs::write(folder.join("jwks.json"), issuer_keys()).unwrap();
    format!(
        "[mcp.protocol.security]\nrequire_authentication = true\n\
         [auth]\nresource = '{RESOURCE}'\norder = ['key', 'token', 'certificate', 'signature']\n\
         [[rules]]\nid = 'ask'\nwhen = {{ tool = 'greet' }}\nthen = {{ hold = {{ reason = 'look', within = '10m' }} }}\n\
         [roles.all]\nallow = ['one/*']\n[roles.none]\nallow = ['one/count']\n{users}{more}\n{}",
        child("one", ServedEra::Both, "timeout = '10m'").unwrap()
    )
}

fn jwt(folder: &Path) -> String {
    format!(
        "[auth.jwt.corp]\nissuer = '{}'\njwks_file = '{}'\nclock_skew = 0.001\n",
        openers::ISSUER,
        folder.join("jwks.json").display()
    )
}

/// A gateway with these settings, whose roles can be withdrawn.
struct Scene {
    gateway: GatewayProcess,
    more: String,
}

impl Scene {
    async fn new(more: impl Fn(&Path) -> String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("data")).unwrap();
        let more = more(folder.path());
        let config = config(folder.path(), "all", &more);
        let gateway = GatewayProcess::serve_at(free_address().unwrap(), folder, &config).await.unwrap();
        Self { gateway, more }
    }

    fn rewrite(&self, role: &str, more: &str) {
        let file = self.gateway.config_file();
        std::fs::write(&file, config(file.parent().unwrap(), role, more)).unwrap();
    }

    async fn command(&self, args: &[&str]) -> String {
        signalbox(&self.gateway.data_dir(), args).await.unwrap()
    }

    async fn holds(&self) -> usize {
        holds(&self.gateway.data_dir()).await
    }

    /// Opens everything, ends the credential, and holds that everything ends with it.
    async fn plays(&self, opener: Opener, (what, ending): (&str, Ending), end: impl AsyncFnOnce()) {
        let name = format!("{what}, {ending:?}");
        let before = self.holds().await;
        let open = opener.open_all().await;
        let held = async || (self.holds().await > before).then_some(());
        eventually(&format!("{name}: the call is held"), held).await.unwrap();
        for (thing, handle) in &open {
            assert!(!handle.is_finished(), "{name}: {thing} is open before");
        }
        end().await;
        for (thing, handle) in open {
            let ended = tokio::time::timeout(PATIENCE, handle).await;
            let ended = ended.unwrap_or_else(|_| panic!("{name}: {thing} outlives the credential"));
            let ended = ended.unwrap().unwrap_or_else(|error| panic!("{name}: {thing}: {error}"));
            assert!(ended.contains("credential is"), "{name}: {thing} ended with {ended}");
        }
        assert_eq!(self.holds().await, before, "{name}: the held call cannot be released any more");
        if ending == Ending::LosesRights {
            self.rewrite("all", &self.more);
            let back = async || opener.may_call().await.then_some(());
            eventually(&format!("{name}: the rights are back"), back).await.unwrap();
        }
    }

    /// Withdraws the roles of all callers.
    async fn withdraw(&self) {
        self.rewrite("none", &self.more);
    }
}

async fn holds(data_dir: &Path) -> usize {
    let listed = signalbox(data_dir, &["hold", "list", "--json"]).await.unwrap();
    serde_json::from_str::<Value>(&listed).unwrap()["holds"].as_array().unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_an_api_key_holds_open_ends_with_it() {
    let scene = Scene::new(|_| String::new()).await;
    for ending in ENDINGS {
        let (name, life) = (format!("{ending:?}"), format!("{LIFE}s"));
        let mut args = vec!["keys", "new", &name, "--subject", "user:key"];
        if ending == Ending::Expires {
            args.extend(["--expires", &life]);
        }
        let key = scene.command(&args).await.trim().to_owned();
        let opener = Opener::bearer(scene.gateway.address(), &key);
        let end = async || match ending {
            Ending::Expires => {}
            Ending::IsRemoved => drop(scene.command(&["keys", "revoke", &name]).await),
            Ending::LosesRights => scene.withdraw().await,
        };
        scene.plays(opener, ("API key", ending), end).await;
    }
}

/// The token is one of another issuer.
#[tokio::test(flavor = "multi_thread")]
async fn everything_that_a_token_holds_open_ends_with_it() {
    let scene = Scene::new(jwt).await;
    // An issuer that was removed does not come back without a restart.
    for ending in [Ending::Expires, Ending::LosesRights, Ending::IsRemoved] {
        let life = if ending == Ending::Expires { LIFE } else { 600 };
        let opener = Opener::bearer(scene.gateway.address(), &token("ada", life));
        let end = async || match ending {
            Ending::Expires => {}
            Ending::IsRemoved => scene.rewrite("all", ""),
            Ending::LosesRights => scene.withdraw().await,
        };
        scene.plays(opener, ("token", ending), end).await;
    }
}

/// The token is one of the gateway's own authorization server.
#[tokio::test(flavor = "multi_thread")]
async fn everything_that_a_token_of_the_gateway_holds_open_ends_with_it() {
    for ending in ENDINGS {
        let life = if ending == Ending::Expires { LIFE } else { 600 };
        let scene = Scene::new(|_| format!("[auth.server]\nenabled = true\naccess_lifetime = {life}\n")).await;
        openers::add_user(&scene.gateway.data_dir(), "ada").await;
        let access = SignIn::new(scene.gateway.address(), RESOURCE).await.access_token("ada").await;
        let opener = Opener::bearer(scene.gateway.address(), &access);
        let end = async || match ending {
            Ending::Expires => {}
            Ending::IsRemoved => drop(scene.command(&["users", "remove", "ada"]).await),
            Ending::LosesRights => scene.withdraw().await,
        };
        scene.plays(opener, ("own token", ending), end).await;
    }
}

/// What a signing key holds open.
#[tokio::test(flavor = "multi_thread")]
async fn everything_that_a_signing_key_holds_open_ends_with_it() {
    let scene = Scene::new(|_| String::new()).await;
    for (ending, seed) in ENDINGS.into_iter().zip(1..) {
        let key = seal_key(seed, &nonce());
        let (id, hex) = (key.id().to_owned(), key.verifying_key().to_hex());
        let mut args = vec!["seal", "keys", "trust", &hex, "--id", &id, "--name", "user:seal", "--role", "client"];
        let until = valid_until(LIFE);
        if ending == Ending::Expires {
            args.extend(["--valid-until", &until]);
        }
        scene.command(&args).await;
        let opener = Opener::signer(scene.gateway.address(), key);
        let known = async || opener.may_call().await.then_some(());
        eventually("the key is known", known).await.unwrap();
        let end = async || match ending {
            Ending::Expires => {}
            Ending::IsRemoved => drop(scene.command(&["seal", "keys", "revoke", &id]).await),
            Ending::LosesRights => scene.withdraw().await,
        };
        scene.plays(opener, ("signature", ending), end).await;
    }
}

/// A removed user leaves no signing key behind, and what it holds open ends.
#[tokio::test(flavor = "multi_thread")]
async fn removing_a_user_revokes_its_signing_keys() {
    let scene = Scene::new(|_| "[auth.server]\nenabled = true\n".to_owned()).await;
    openers::add_user(&scene.gateway.data_dir(), "ada").await;
    let key = seal_key(9, "ada-laptop");
    let hex = key.verifying_key().to_hex();
    let trust = ["seal", "keys", "trust", &hex, "--id", key.id(), "--name", "user:ada", "--role", "client"];
    scene.command(&trust).await;
    let opener = Opener::signer(scene.gateway.address(), key);
    let end = async || {
        scene.command(&["users", "remove", "ada"]).await;
        let listed: Value = serde_json::from_str(&scene.command(&["seal", "keys", "list", "--json"]).await).unwrap();
        let own = listed.as_array().unwrap().iter().find(|key| key["id"] == "ada-laptop").unwrap();
        assert_ne!(own["revoked_at"], json!(null), "{listed}");
    };
    scene.plays(opener.clone(), ("signature of a user", Ending::IsRemoved), end).await;
    openers::add_user(&scene.gateway.data_dir(), "ada").await;
    assert!(!opener.may_call().await, "the next user of the name inherits no key");
}

/// when `users remove` returns, no running gateway honours a grant of the user any more.
#[tokio::test(flavor = "multi_thread")]
async fn removing_a_user_waits_until_its_grants_are_gone() {
    let scene = Scene::new(|_| "[auth.server]\nenabled = true\n".to_owned()).await;
    for _ in 0..3 {
        openers::add_user(&scene.gateway.data_dir(), "ada").await;
        let grant =
            ["grant", "add", "--to", "user:ada", "--tools", "one/*", "--for", "1h", "--because", "it burns", "--json"];
        scene.command(&grant).await;
        assert!(scene.command(&["grant", "list"]).await.contains("user:ada"));
        scene.command(&["users", "remove", "ada"]).await;
        let left = scene.command(&["grant", "list"]).await;
        assert!(!left.contains("user:ada"), "{left}");
    }
}
