//! A protected MCP server of 2025-11-25 and its authorization server at one address, small enough to be seen through.
//! It counts what it has really done, and keeps the credentials of every request.

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// What the server wants to see.
#[derive(Clone, Debug)]
pub enum Demands {
    /// Nothing: it only notes what it sees.
    Nothing,
    /// This header with this value, in every request.
    Header(&'static str, &'static str),
    /// A token of its authorization server for tool calls; everything else is open to all.
    TokenForCalls,
    /// A token of its authorization server for everything.
    Token,
    /// Any token.
    AnyToken,
    /// Any token, and whoever has it is listed `common` and a tool of its own, `of_` and what the token ends with.
    AnyTokenOwnTools,
    /// The same with tokens of its authorization server alone.
    TokenOwnTools,
    /// The same, and everything else that the server lists, answers and tells names what the token ends with.
    TokenOwnAll,
}

/// A request as the server saw it: the method of MCP, or the path of another one, and its headers.
#[derive(Clone, Debug)]
pub struct SeenRequest {
    /// The JSON-RPC method, or the path.
    pub what: String,
    /// The headers, their names in lower case.
    pub headers: HashMap<String, String>,
    /// The message; null where it is not JSON.
    pub message: Value,
}

#[derive(Default)]
struct State {
    seen: Vec<SeenRequest>,
    /// The PKCE challenge and redirect of each code.
    codes: HashMap<String, (String, String)>,
    tokens: Vec<String>,
    refreshes: usize,
    ran: usize,
    /// Descriptions of `common`, by what the token of their reader ends with.
    descriptions: HashMap<String, String>,
}

struct Shared {
    address: SocketAddr,
    demands: Demands,
    /// How many seconds a token is good.
    lifetime: Option<u64>,
    state: Mutex<State>,
}

/// The server. Dropping it ends it.
pub struct ProtectedServer {
    shared: Arc<Shared>,
    task: AbortHandle,
}

impl Drop for ProtectedServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ProtectedServer {
    /// Starts a server that demands this and gives tokens which are good for so many seconds.
    ///
    /// # Errors
    /// When there is no port for it.
    pub async fn start(demands: Demands, lifetime: Option<u64>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { address, demands, lifetime, state: Mutex::default() });
        let own = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let own = Arc::clone(&own);
                tokio::spawn(async move { own.serve(socket).await });
            }
        });
        Ok(Self { shared, task: task.abort_handle() })
    }

    /// The MCP endpoint.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.shared.address)
    }

    /// All requests so far.
    pub fn seen(&self) -> Vec<SeenRequest> {
        self.shared.state().seen.clone()
    }

    /// How often the tool ran.
    pub fn ran(&self) -> usize {
        self.shared.state().ran
    }

    /// How often a token was refreshed.
    pub fn refreshes(&self) -> usize {
        self.shared.state().refreshes
    }

    /// All tokens that were given.
    pub fn tokens(&self) -> Vec<String> {
        self.shared.state().tokens.clone()
    }

    /// Lists `common` with this description to the owner of a token.
    pub fn describe_to(&self, owner: &str, description: &str) {
        self.shared.state().descriptions.insert(owner.to_owned(), description.to_owned());
    }

    /// Makes all tokens of before worthless.
    pub fn revoke_all(&self) {
        self.shared.state().tokens.clear();
    }
}

impl Shared {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(&self, mut socket: TcpStream) {
        let Ok((head, body)) = read(&mut socket).await else { return };
        let answer = self.answer(&head, &body);
        let _ = socket.write_all(answer.as_bytes()).await;
        let _ = socket.shutdown().await;
    }

    fn answer(&self, head: &str, body: &str) -> String {
        let mut lines = head.split("\r\n");
        let line = lines.next().unwrap_or_default().to_owned();
        let headers: HashMap<String, String> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let target = line.split(' ').nth(1).unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let message: Value = serde_json::from_str(body).unwrap_or_default();
        let what = message["method"].as_str().filter(|_| path == "/mcp").unwrap_or(path).to_owned();
        let seen = SeenRequest { what: what.clone(), headers: headers.clone(), message: message.clone() };
        self.state().seen.push(seen);
        let base = format!("http://{}", self.address);
        match (line.split(' ').next().unwrap_or_default(), path) {
            ("POST", "/mcp") => self.mcp(&what, &headers, &message),
            ("GET", "/mcp") if matches!(self.demands, Demands::TokenOwnAll) => self.inbox(&headers),
            ("GET", "/.well-known/oauth-protected-resource/mcp") => ok(&json!({
                "resource": format!("{base}/mcp"), "authorization_servers": [base], "scopes_supported": ["use"],
            })),
            ("GET", "/.well-known/oauth-authorization-server") => ok(&json!({
                "issuer": base,
                "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"),
                "registration_endpoint": format!("{base}/register"),
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
                "authorization_response_iss_parameter_supported": true,
            })),
            ("POST", "/register") => respond("201 Created", "", &json!({"client_id": "made-up-client"}).to_string()),
            ("GET", "/authorize") => self.authorize(&fields(query), &base),
            ("POST", "/token") => self.token(&fields(body)),
            ("POST", "/exchange") => self.exchange(&fields(body)),
            _ => respond("404 Not Found", "", "{}"),
        }
    }

    fn mcp(&self, what: &str, headers: &HashMap<String, String>, message: &Value) -> String {
        let token = headers.get("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let known = token.is_some_and(|token| self.state().tokens.iter().any(|own| own == token));
        let fine = match self.demands {
            Demands::Nothing => true,
            Demands::Header(name, value) => headers.get(name).map(String::as_str) == Some(value),
            Demands::TokenForCalls => what != "tools/call" || known,
            Demands::Token | Demands::TokenOwnTools | Demands::TokenOwnAll => known,
            Demands::AnyToken | Demands::AnyTokenOwnTools => token.is_some(),
        };
        if !fine {
            let metadata = format!("http://{}/.well-known/oauth-protected-resource/mcp", self.address);
            let challenge = format!("www-authenticate: Bearer scope=\"use\", resource_metadata=\"{metadata}\"\r\n");
            return respond("401 Unauthorized", &challenge, "{}");
        }
        let own = token.and_then(|token| token.rsplit('-').next()).unwrap_or_default();
        let tools = match self.demands {
            Demands::AnyTokenOwnTools | Demands::TokenOwnTools | Demands::TokenOwnAll => {
                vec!["common".to_owned(), format!("of_{own}")]
            }
            _ => vec!["work".to_owned()],
        };
        if let (Demands::TokenOwnAll, Some(answer)) = (&self.demands, own_all(own, what, message)) {
            return answer;
        }
        let result = match what {
            "tools/call" if !tools.iter().any(|tool| message["params"]["name"] == **tool) => {
                let error = json!({"code": -32602, "message": "the server knows no such tool"});
                return ok(&json!({"jsonrpc": "2.0", "id": message["id"], "error": error}));
            }
            "initialize" => json!({
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "protected", "version": "1"},
            }),
            "tools/list" => {
                let description = self.state().descriptions.get(own).cloned();
                let listed = tools.iter().map(|tool| match description.as_ref().filter(|_| tool == "common") {
                    Some(text) => json!({"name": tool, "description": text, "inputSchema": {"type": "object"}}),
                    None => json!({"name": tool, "inputSchema": {"type": "object"}}),
                });
                json!({"tools": listed.collect::<Vec<_>>()})
            }
            "tools/call" => {
                self.state().ran += 1;
                json!({"content": [{"type": "text", "text": "done"}]})
            }
            "ping" => json!({}),
            _ if message.get("id").is_none() => return respond("202 Accepted", "", ""),
            _ => {
                let error = json!({"code": -32601, "message": "no such method"});
                return ok(&json!({"jsonrpc": "2.0", "id": message["id"], "error": error}));
            }
        };
        ok(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
    }

    /// Tells the owner of the token of a message that came for it, and ends the stream.
    fn inbox(&self, headers: &HashMap<String, String>) -> String {
        let token = headers.get("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let Some(own) = token.and_then(|token| token.rsplit('-').next()) else {
            return respond("401 Unauthorized", "", "{}");
        };
        let data = format!("inbox of {own}");
        let told =
            json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": data}});
        let body = format!("retry: 200\ndata: {told}\n\n");
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )
    }

    /// Grants at once, as if a person had signed in before.
    fn authorize(&self, fields: &HashMap<String, String>, base: &str) -> String {
        let field = |name: &str| fields.get(name).cloned().unwrap_or_default();
        if field("code_challenge_method") != "S256" || field("resource") != format!("{base}/mcp") {
            return respond("400 Bad Request", "", "{}");
        }
        let code = format!("made-up-code-{}", self.state().codes.len());
        self.state().codes.insert(code.clone(), (field("code_challenge"), field("redirect_uri")));
        let back = format!("{}?code={code}&state={}&iss={}", field("redirect_uri"), field("state"), base);
        respond("302 Found", &format!("location: {back}\r\n"), "")
    }

    /// Gives a token for the subject of the JWT that it gets (RFC 8693). Whoever asks has verified that.
    fn exchange(&self, fields: &HashMap<String, String>) -> String {
        let payload = fields.get("subject_token").and_then(|token| token.split('.').nth(1)).unwrap_or_default();
        let claims: Value =
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap_or_default()).unwrap_or_default();
        let Some(subject) = claims["sub"].as_str().filter(|_| claims["grade"] != "refused") else {
            return respond("400 Bad Request", "", &json!({"error": "invalid_request"}).to_string());
        };
        let grade = claims["grade"].as_str().map(|grade| format!("-{grade}")).unwrap_or_default();
        let token = format!("made-up-for-{subject}{grade}");
        crate::used_secrets::note(&token);
        self.state().tokens.push(token.clone());
        let kind = "urn:ietf:params:oauth:token-type:access_token";
        ok(&json!({"access_token": token, "token_type": "Bearer", "issued_token_type": kind}))
    }

    fn token(&self, fields: &HashMap<String, String>) -> String {
        let field = |name: &str| fields.get(name).cloned().unwrap_or_default();
        let mut state = self.state();
        let granted = match field("grant_type").as_str() {
            "authorization_code" => state.codes.remove(&field("code")).is_some_and(|(challenge, redirect)| {
                challenge == s256(&field("code_verifier")) && redirect == field("redirect_uri")
            }),
            "refresh_token" => {
                state.refreshes += 1;
                field("refresh_token") == "made-up-refresh"
            }
            _ => false,
        };
        if !granted || field("resource").is_empty() {
            return respond("400 Bad Request", "", &json!({"error": "invalid_grant"}).to_string());
        }
        let token = format!("made-up-token-{}", state.tokens.len() + state.refreshes * 100);
        crate::used_secrets::note(&token);
        state.tokens.push(token.clone());
        let mut answer = json!({"access_token": token, "token_type": "Bearer"});
        if let Some(lifetime) = self.lifetime {
            answer["expires_in"] = lifetime.into();
            answer["refresh_token"] = "made-up-refresh".into();
        }
        ok(&answer)
    }
}

/// The answers that name the owner of the token, but for tools.
fn own_all(own: &str, what: &str, message: &Value) -> Option<String> {
    let params = &message["params"];
    let mut headers = String::new();
    let result = match what {
        "initialize" => {
            headers = format!("mcp-session-id: session-of-{own}\r\n");
            json!({
                "protocolVersion": "2025-11-25", "serverInfo": {"name": "protected", "version": "1"},
                "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "completions": {}, "logging": {}},
            })
        }
        "tools/call" => json!({"content": [{"type": "text", "text": format!("done for {own}")}]}),
        "resources/list" => json!({"resources": [{"uri": "acct://x", "name": format!("of {own}")}]}),
        "resources/templates/list" => {
            json!({"resourceTemplates": [{"uriTemplate": "acct://{x}", "name": format!("of {own}")}]})
        }
        "prompts/list" => json!({"prompts": [{"name": "ask"}, {"name": format!("of_{own}")}]}),
        "prompts/get" => {
            json!({"messages": [{"role": "user", "content": {"type": "text", "text": format!("for {own}")}}]})
        }
        "resources/read" => json!({"contents": [{"uri": params["uri"], "text": format!("of {own}")}]}),
        "completion/complete" => json!({"completion": {"values": [format!("of {own}")]}}),
        "logging/setLevel" => json!({}),
        _ => return None,
    };
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    Some(respond("200 OK", &headers, &answer.to_string()))
}

fn s256(verifier: &str) -> String {
    use std::io::Write as _;
    // A second opinion on the hash, by another program.
    let mut child = std::process::Command::new("openssl")
        .args(["dgst", "-sha256", "-binary"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .ok();
    if let Some(mut input) = child.as_mut().and_then(|child| child.stdin.take()) {
        let _ = input.write_all(verifier.as_bytes());
    }
    let output = child.and_then(|child| child.wait_with_output().ok());
    output.map_or_else(String::new, |output| URL_SAFE_NO_PAD.encode(output.stdout))
}

fn fields(form: &str) -> HashMap<String, String> {
    let decode = |text: &str| {
        let mut bytes = Vec::new();
        let mut rest = text.bytes();
        while let Some(byte) = rest.next() {
            let hex = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16)).unwrap_or_default();
            bytes.push(if byte == b'%' {
                u8::try_from(hex(rest.next()) * 16 + hex(rest.next())).unwrap_or_default()
            } else {
                byte
            });
        }
        String::from_utf8_lossy(&bytes).into_owned()
    };
    form.split('&').filter_map(|pair| pair.split_once('=')).map(|(name, value)| (decode(name), decode(value))).collect()
}

fn ok(value: &Value) -> String {
    respond("200 OK", "", &value.to_string())
}

fn respond(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\n{headers}content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Reads one request: its head and its body.
async fn read(socket: &mut TcpStream) -> anyhow::Result<(String, String)> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
            });
            if body.len() >= length.unwrap_or_default() {
                return Ok((head.to_owned(), body.to_owned()));
            }
        }
        let count = socket.read(&mut buffer).await?;
        bytes.extend_from_slice(buffer.get(..count).filter(|read| !read.is_empty()).context("closed")?);
    }
}
