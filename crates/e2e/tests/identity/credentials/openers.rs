//! Opens what a credential can hold open: a held call, a listen request, a running call and a WebSocket.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use signalbox_seal::SigningKey;
use signalbox_seal::signed_json::{SignatureTerms, sign_request};
use signalbox_testkit::http_client::{HttpAnswer, HttpClient};
use signalbox_testkit::openssl::Trust;
use signalbox_testkit::pipe_client::{PipeClient, PipeEnd};
use signalbox_testkit::scene;
use signalbox_wire::timestamp;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

pub const ISSUER: &str = "https://idp.example";
const PASSWORD: &str = "made-up correct horse";
const BACK: &str = "http://127.0.0.1:9/callback";
/// The verifier of RFC 7636, and its challenge.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// Something that is open, and what was heard last when it ended.
pub type Open = (&'static str, JoinHandle<anyhow::Result<String>>);

/// A caller with one proof.
#[derive(Clone)]
pub struct Opener {
    address: SocketAddr,
    client: HttpClient,
    authorization: Option<String>,
    key: Option<SigningKey>,
    trust: Option<Trust>,
}

impl Opener {
    /// A caller that shows a key or a token in a header.
    pub fn bearer(address: SocketAddr, credential: &str) -> Self {
        let authorization = format!("Bearer {credential}");
        let client = HttpClient::new(address).with("authorization", &authorization);
        Self { address, client, authorization: Some(authorization), key: None, trust: None }
    }

    /// A caller that signs its messages.
    pub fn signer(address: SocketAddr, key: SigningKey) -> Self {
        Self { address, client: HttpClient::new(address), authorization: None, key: Some(key), trust: None }
    }

    /// A caller that shows a client certificate.
    pub fn certified(address: SocketAddr, trust: &Trust) -> Self {
        let client = HttpClient::new(address).secured(trust);
        Self { address, client, authorization: None, key: None, trust: Some(trust.clone()) }
    }

    /// The HTTP client that carries its proof.
    pub fn client(&self) -> &HttpClient {
        &self.client
    }

    /// True if a call is answered.
    pub async fn may_call(&self) -> bool {
        let (client, body) = self.request("tools/call", json!({"name": "whoami", "arguments": {}}));
        let answer = client.post(&body).await.ok().and_then(|answer| answer.message().ok());
        answer.is_some_and(|answer| answer["result"].is_object())
    }

    fn request(&self, method: &str, mut params: Value) -> (HttpClient, String) {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        let mut client = self.client.clone().with("mcp-protocol-version", "2026-07-28").with("mcp-method", method);
        if let Some(name) = params["name"].as_str() {
            client = client.with("mcp-name", name);
        }
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string();
        let Some(key) = &self.key else { return (client, message) };
        let now = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
        let signed = sign_request(message.as_bytes(), key, &SignatureTerms::new(&nonce(), now, now + 60_000)).unwrap();
        (client, String::from_utf8(signed.to_vec()).unwrap())
    }

    fn open(&self, method: &str, params: Value) -> JoinHandle<anyhow::Result<String>> {
        let (client, body) = self.request(method, params);
        tokio::spawn(async move {
            let answer = client.post(&body).await?;
            Ok(format!("{} {}", answer.status, String::from_utf8_lossy(&answer.body)))
        })
    }

    /// Opens everything that this caller can have open.
    pub async fn open_all(&self) -> Vec<Open> {
        let mut open = vec![
            ("a running call", self.open("tools/call", json!({"name": "slow", "arguments": {"ms": 600_000}}))),
            (
                "a listen request",
                self.open("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})),
            ),
        ];
        if let Some(mut socket) = self.socket().await {
            socket.initialize("2025-06-18", json!({})).await.unwrap();
            open.push(("a WebSocket", tokio::spawn(async move { ended(&mut socket).await })));
        }
        // Last, so that all is open once it is held.
        open.push(("a held call", self.open("tools/call", json!({"name": "greet", "arguments": {"name": "Eve"}}))));
        open
    }

    async fn socket(&self) -> Option<PipeClient> {
        if let Some(trust) = &self.trust {
            let socket = trust.connect(TcpStream::connect(self.address).await.unwrap()).await.unwrap();
            return Some(PipeClient::websocket_over(socket, self.address, &[]).await.unwrap());
        }
        let authorization = self.authorization.as_ref()?;
        Some(PipeClient::websocket(self.address, &[("authorization", authorization)]).await.unwrap())
    }
}

/// Waits for the end of a connection, and returns the reason that is given.
pub async fn ended(socket: &mut PipeClient) -> anyhow::Result<String> {
    match socket.end().await? {
        (_, PipeEnd::Closed(code, reason)) => Ok(format!("{code} {reason}")),
        (said, PipeEnd::Dropped) => Ok(format!("{said:?}")),
    }
}

/// A text that no other test uses.
pub fn nonce() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("nonce-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A private key under this id.
pub fn seal_key(seed: u8, id: &str) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap().named(id).unwrap()
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// The time in so many seconds, as files have it.
pub fn valid_until(seconds: u64) -> String {
    timestamp::rfc3339(i64::try_from(now() + seconds).unwrap())
}

/// The public keys of the issuer.
pub fn issuer_keys() -> String {
    let key = SigningKey::from_seed(&[9; 32]).unwrap().verifying_key().to_hex();
    let public: Vec<u8> = (0..64).step_by(2).map(|at| u8::from_str_radix(&key[at..at + 2], 16).unwrap()).collect();
    json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "k1", "x": URL_SAFE_NO_PAD.encode(public)}]}).to_string()
}

/// A token of the issuer.
pub fn token(subject: &str, seconds: u64) -> String {
    let claims = json!({"iss": ISSUER, "aud": super::RESOURCE, "sub": subject, "exp": now() + seconds});
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let signed = format!("{}.{}", part(r#"{"alg":"EdDSA","kid":"k1"}"#), part(&claims.to_string()));
    let key = aws_lc_rs::signature::Ed25519KeyPair::from_seed_unchecked(&[9; 32]).unwrap();
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes())))
}

/// Adds a local user.
pub async fn add_user(data_dir: &Path, name: &str) {
    scene::add_user(data_dir, name, PASSWORD).await.unwrap();
}

/// A program that is its own browser at the gateway's authorization server.
pub struct SignIn {
    http: HttpClient,
    resource: String,
    client: String,
}

impl SignIn {
    pub async fn new(address: SocketAddr, resource: &str) -> Self {
        let http = HttpClient::new(address);
        let body = json!({"client_name": "Visitor", "redirect_uris": [BACK]}).to_string();
        let registered = http.send(Method::POST, "/auth/register", Bytes::from(body)).await.unwrap();
        let document: Value = serde_json::from_slice(&registered.body).unwrap();
        Self { http, resource: resource.to_owned(), client: document["client_id"].as_str().unwrap().to_owned() }
    }

    async fn form(&self, path: &str, form: &str, cookie: &str) -> HttpAnswer {
        let http = self.http.clone().with("content-type", "application/x-www-form-urlencoded").with("cookie", cookie);
        http.send(Method::POST, path, Bytes::copy_from_slice(form.as_bytes())).await.unwrap()
    }

    /// Signs a local user in, says yes, and returns the access token.
    pub async fn access_token(&self, user: &str) -> String {
        let (client, resource) = (&self.client, &self.resource);
        let asked = format!(
            "/auth/authorize?response_type=code&client_id={client}&redirect_uri={BACK}&state=st&scope=mcp\
             &code_challenge={CHALLENGE}&code_challenge_method=S256&resource={resource}"
        );
        let page = self.http.get(&asked).await.unwrap();
        let cookie = page.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        let html = String::from_utf8(page.body.to_vec()).unwrap();
        let ticket = html.split("name=\"ticket\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
        let password = PASSWORD.replace(' ', "+");
        self.form("/auth/sign-in", &format!("ticket={ticket}&user={user}&password={password}"), &cookie).await;
        let answer = self.form("/auth/consent", &format!("ticket={ticket}&answer=allow"), &cookie).await;
        let location = answer.headers["location"].to_str().unwrap();
        let code = location.split("code=").nth(1).unwrap().split('&').next().unwrap();
        let form = format!(
            "grant_type=authorization_code&client_id={client}&code={code}&code_verifier={VERIFIER}&redirect_uri={BACK}\
             &resource={resource}"
        );
        let redeemed = self.form("/auth/token", &form, "").await;
        let document: Value = serde_json::from_slice(&redeemed.body).unwrap();
        document["access_token"].as_str().unwrap_or_else(|| panic!("{redeemed:?}")).to_owned()
    }
}
