//! npm `oidc-provider` as the real issuer of callers' tokens, with the gateway as the resource server, and as the place
//! where the gateway exchanges them (RFC 8693) for tokens of the servers behind it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use signalbox_testkit::clients;
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::{HttpAnswer, HttpClient};
use signalbox_testkit::ports::free_address;
use signalbox_testkit::process::Spawned;
use signalbox_testkit::protected_server::{Demands, ProtectedServer};
use signalbox_testkit::scene::{PATIENCE, child, eventually, text};
use signalbox_testkit::used_secrets;
use std::net::SocketAddr;
use tokio::process::Command;

/// The verifier of RFC 7636, and its challenge.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

/// A provider that issues tokens; it ends with the test.
struct TokenProvider {
    process: Spawned,
    address: SocketAddr,
    resource: String,
    /// Where it sends people back to.
    back: String,
}

impl TokenProvider {
    /// One at this address, whose `gate` may exchange tokens for `resource`; `None` where it is not installed.
    async fn start(address: SocketAddr, resource: &str) -> Option<Self> {
        Self::start_with(address, resource, clients::listening_back().await.unwrap()).await
    }

    async fn start_with(address: SocketAddr, resource: &str, back: String) -> Option<Self> {
        let mut command = Command::new(clients::run_script());
        command.args(["oidc-issuer", &address.port().to_string(), resource, &back]);
        let mut process = Spawned::start(command).unwrap();
        if process.wait_line("listening ", PATIENCE).await.is_err() {
            let ended = process.wait(PATIENCE).await.unwrap();
            let missing = ended.code() == Some(77) && std::env::var("CI").as_deref() != Ok("true");
            assert!(missing, "{:?}", process.error_lines());
            eprintln!("SKIP oidc-provider: run script/install-test-deps");
            return None;
        }
        Some(Self { process, address, resource: resource.to_owned(), back })
    }

    fn issuer(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The same address with another signing key, as after a rotation.
    async fn rotated(mut self) -> Self {
        self.process.kill().await.unwrap();
        Self::start_with(self.address, &self.resource, self.back).await.unwrap()
    }

    /// The lines of a gateway's configuration that trust it, with the address of its keys as its metadata name it.
    async fn trusted(&self) -> String {
        let metadata = HttpClient::new(self.address).get("/.well-known/openid-configuration").await.unwrap();
        let metadata: Value = serde_json::from_slice(&metadata.body).unwrap();
        assert_eq!(metadata["issuer"], self.issuer());
        let keys = metadata["jwks_uri"].as_str().unwrap();
        format!("[auth.jwt.corp]\nissuer = '{}'\njwks_url = '{keys}'\n", self.issuer())
    }

    async fn granted(&self, form: &str, client: Option<&str>) -> String {
        let mut http = HttpClient::new(self.address).with("content-type", "application/x-www-form-urlencoded");
        if let Some(client) = client {
            let basic = base64::engine::general_purpose::STANDARD.encode(client);
            http = http.with("authorization", &format!("Basic {basic}"));
        }
        let answer = http.send(Method::POST, "/token", Bytes::copy_from_slice(form.as_bytes())).await.unwrap();
        let document: Value = serde_json::from_slice(&answer.body).unwrap();
        document["access_token"].as_str().unwrap_or_else(|| panic!("{form}: {document}")).to_owned()
    }

    /// A token that this client gets as itself, for this resource.
    async fn token(&self, client: &str, resource: &str) -> String {
        let form = format!("grant_type=client_credentials&scope=greet:use&resource={resource}");
        self.granted(&form, Some(&format!("{client}:made-up-agent-secret"))).await
    }

    /// A token that a person gets by signing in; `None` where nobody can play the person.
    async fn token_of(&self, person: &str, resource: &str) -> Option<String> {
        let url = format!(
            "{}/auth?response_type=code&client_id=editor&redirect_uri={}&state=st&scope=openid+greet:use\
             &code_challenge={CHALLENGE}&code_challenge_method=S256&resource={resource}",
            self.issuer(),
            self.back
        );
        let said = clients::run_with(&["person", &url, person, "anything"], &[]).await.unwrap()?;
        let end = said["end"].as_str().unwrap();
        let code = end.split("code=").nth(1).unwrap_or_else(|| panic!("{said}")).split('&').next().unwrap();
        let form = format!(
            "grant_type=authorization_code&client_id=editor&code={code}&code_verifier={VERIFIER}\
             &redirect_uri={}&resource={resource}",
            self.back
        );
        Some(self.granted(&form, None).await)
    }

    /// What came to be exchanged so far.
    fn exchanges(&self) -> Vec<Value> {
        let lines = self.process.lines();
        lines.iter().filter_map(|line| serde_json::from_str(line.strip_prefix("exchange ")?).ok()).collect()
    }
}

fn config(address: SocketAddr, trusted: &str, more: &str) -> String {
    format!(
        "[mcp.protocol.security]\nrequire_authentication = true\n[auth]\nresource = 'http://{address}/mcp'\n\
         [auth.scopes]\n'greet:use' = ['one/greet']\n[auth.outbound]\nallow = ['127.0.0.1']\n{trusted}{more}{}",
        child("one", ServedEra::Both, "").unwrap()
    )
}

async fn gateway(address: SocketAddr, config: &str) -> GatewayProcess {
    let gateway = GatewayProcess::serve_at(address, tempfile::tempdir().unwrap(), config).await.unwrap();
    gateway.ready().await.unwrap();
    gateway
}

async fn called(address: SocketAddr, token: &str, tool: &str) -> HttpAnswer {
    let http = HttpClient::new(address).with("authorization", &format!("Bearer {token}"));
    http.modern(7, "tools/call", json!({"name": tool, "arguments": {"name": "Eve"}})).await.unwrap()
}

/// Calls until it succeeds: keys are read a moment after the start, and again when a token names one that is not known.
async fn succeeds(address: SocketAddr, token: &str, tool: &str) -> String {
    let look = async || {
        let answer = called(address, token, tool).await;
        (answer.status == 200).then(|| text(&answer.message().ok()?)).flatten()
    };
    eventually(&format!("{tool} is answered"), look).await.unwrap()
}

fn claims(token: &str) -> Value {
    let payload = token.split('.').nth(1).unwrap_or_else(|| panic!("no JWT"));
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap()
}

/// The gateway is the resource server of tokens that a certified provider issues, for programs and for people.
#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_oidc_provider_are_good_for_this_gateway_alone() {
    let address = free_address().unwrap();
    let resource = format!("http://{address}/mcp");
    let Some(provider) = TokenProvider::start(free_address().unwrap(), &resource).await else { return };
    let gateway = gateway(address, &config(address, &provider.trusted().await, "")).await;
    let found = HttpClient::new(address).get("/.well-known/oauth-protected-resource/mcp").await.unwrap();
    let found: Value = serde_json::from_slice(&found.body).unwrap();
    let known = (&found["resource"], &found["authorization_servers"]);
    assert_eq!(known, (&json!(resource), &json!([provider.issuer()])), "a client finds the provider by the gateway");

    let agent = provider.token("agent", &resource).await;
    assert!(succeeds(address, &agent, "greet").await.contains("Eve"));
    if let Some(grace) = provider.token_of("grace", &resource).await {
        assert_eq!(claims(&grace)["sub"], "grace");
        assert!(succeeds(address, &grace, "greet").await.contains("Eve"));
    }
    let elsewhere = provider.token("agent", "https://other.example/mcp").await;
    let stranger = TokenProvider::start(free_address().unwrap(), &resource).await.unwrap();
    let foreign = stranger.token("agent", &resource).await;
    for (bad, what) in [(&elsewhere, "of another audience"), (&foreign, "of another issuer")] {
        let refused = called(address, bad, "greet").await;
        assert_eq!(refused.status, 401, "a token {what}");
        let challenge = refused.headers["www-authenticate"].to_str().unwrap();
        assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
    }

    // The provider rotates its keys: what they sign now is taken, and what the lost key signed is not any more.
    let provider = provider.rotated().await;
    let fresh = provider.token("agent", &resource).await;
    assert!(succeeds(address, &fresh, "greet").await.contains("Eve"));
    let over = async || (called(address, &agent, "greet").await.status == 401).then_some(());
    eventually("a token of the key that is gone is refused", over).await.unwrap();
    drop(gateway);
}

/// At a real provider, each caller's token is exchanged, and a real resource server takes what comes of it.
#[tokio::test(flavor = "multi_thread")]
async fn rfc_8693_callers_tokens_are_exchanged_at_oidc_provider() {
    let (front, back) = (free_address().unwrap(), free_address().unwrap());
    let resource = format!("http://{front}/mcp");
    let Some(provider) = TokenProvider::start(free_address().unwrap(), &resource).await else { return };
    let trusted = provider.trusted().await;
    let server = ProtectedServer::start(Demands::AnyToken, None).await.unwrap();
    let behind = gateway(back, &config(back, &trusted, "").replace("'greet:use' = ['one/greet']\n", "")).await;
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("gate");
    std::fs::write(&secret, "made-up-gate-secret").unwrap();
    let exchanged = |name: &str, url: &str| {
        format!(
            "[backends.{name}]\nurl = '{url}'\n[backends.{name}.auth]\ntype = 'token_exchange'\n\
             exchange_url = '{}/token'\nexchange_subject = 'caller'\nclient_id = 'gate'\nclient_secret_file = '{}'\n",
            provider.issuer(),
            secret.display()
        )
    };
    let more = exchanged("safe", &server.url()) + &exchanged("next", &behind.url());
    let gateway = gateway(front, &config(front, &trusted, &more)).await;

    let mut callers = vec![("agent", provider.token("agent", &resource).await)];
    callers.push(("other-agent", provider.token("other-agent", &resource).await));
    callers.extend(provider.token_of("grace", &resource).await.map(|token| ("grace", token)));
    for (subject, token) in &callers {
        succeeds(front, token, "safe__work").await;
        let shown = server.seen().into_iter().rfind(|seen| seen.what == "tools/call").unwrap();
        let shown = shown.headers["authorization"].strip_prefix("Bearer ").unwrap().to_owned();
        used_secrets::note(&shown);
        assert_ne!(&shown, token, "the caller's own token stays here");
        let claims = claims(&shown);
        assert_eq!((&claims["sub"], &claims["aud"]), (&json!(subject), &json!(server.url())));
        assert_eq!(claims["act"], json!({"sub": "gate"}), "section 4.1: the gateway acts for the caller");
        // A resource server that verifies: it takes what the token was exchanged for, and the token itself it does not.
        assert!(succeeds(front, token, "next__greet").await.contains("Eve"));
        assert_eq!(called(back, token, "greet").await.status, 401);
    }
    let exchanges = provider.exchanges();
    for (_, token) in &callers {
        let own: Vec<&Value> = exchanges.iter().filter(|one| one["form"]["subject_token"] == **token).collect();
        let mut resources: Vec<&str> = own.iter().map(|one| one["form"]["resource"].as_str().unwrap()).collect();
        resources.sort_unstable();
        let mut wanted = [server.url(), behind.url()];
        wanted.sort_unstable();
        assert_eq!(resources, wanted, "one exchange for each server");
        own.into_iter().for_each(follows_section_2_1);
    }
    drop((gateway, behind));
}

/// The members of a request as section 2.1 of RFC 8693 names them, and the client's proof as in the example of section
/// 2.3.
fn follows_section_2_1(exchange: &Value) {
    let form = exchange["form"].as_object().unwrap();
    assert_eq!(form["grant_type"], "urn:ietf:params:oauth:grant-type:token-exchange");
    assert_eq!(
        (&form["subject_token_type"], &form["requested_token_type"]),
        (&json!(ACCESS_TOKEN), &json!(ACCESS_TOKEN))
    );
    let allowed = [
        "grant_type",
        "resource",
        "audience",
        "scope",
        "requested_token_type",
        "subject_token",
        "subject_token_type",
        "actor_token",
        "actor_token_type",
    ];
    for name in form.keys() {
        assert!(allowed.contains(&name.as_str()), "section 2.1 has no {name}");
    }
    let both = (form.contains_key("actor_token"), form.contains_key("actor_token_type"));
    assert_eq!(both, (false, false), "a type without its token must not be there");
    assert_eq!(exchange["client"], "gate");
    assert_eq!(
        exchange["authorization"], "Basic Z2F0ZTptYWRlLXVwLWdhdGUtc2VjcmV0",
        "the secret is no member of the form"
    );
}
