//! Two callers of one gateway, over every transport. Whatever one of them takes from the other, be it a session, a
//! stream, a task, a question or a ticket, it gets the answer that it would get for one that does not exist.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use signalbox_testkit::events::EventStream;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::{HttpAnswer, HttpClient};
use signalbox_testkit::pipe_client::PipeClient;
use signalbox_testkit::process::built;
use signalbox_testkit::revision::Revision;
use signalbox_testkit::revision_server::{Network, Options, start};
use signalbox_testkit::scene::{eventually, signalbox, text};
use signalbox_testkit::sse_client::SseClient;

const VERSION: &str = "2025-11-25";

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Transport {
    Http,
    Sse,
    WebSocket,
    Tcp,
}

/// A gateway with one backend, for callers who prove who they are, and the keys of `user:ada` and `user:eve`.
struct Scene {
    gateway: GatewayProcess,
    transport: Transport,
    keys: [String; 2],
}

impl Scene {
    /// The backend speaks this revision.
    async fn new(transport: Transport, revision: &str) -> Self {
        let program = json!(built("revision-server").unwrap().to_str().unwrap());
        let args = json!(["--stdio", "--revision", revision]);
        Self::with_backend(transport, &format!("command = {program}\nargs = {args}\n")).await
    }

    async fn with_backend(transport: Transport, backend: &str) -> Self {
        let wire = if transport == Transport::Tcp { "[mcp.protocol.transport]\ntype = 'tcp'\n" } else { "" };
        let config = format!(
            "{wire}[mcp.protocol.security]\nrequire_authentication = true\n\
             [backends.only]\n{backend}"
        );
        let gateway = match transport {
            Transport::Tcp => GatewayProcess::serve_tcp(&config).await.unwrap(),
            _ => GatewayProcess::serve(&config).await.unwrap(),
        };
        let new = async |user: &str| {
            let args = ["keys", "new", user, "--subject", &format!("user:{user}")];
            signalbox(&gateway.data_dir(), &args).await.unwrap().trim().to_owned()
        };
        let keys = [new("ada").await, new("eve").await];
        Self { gateway, transport, keys }
    }

    fn http(&self, who: usize) -> HttpClient {
        HttpClient::new(self.gateway.address()).with("authorization", &format!("Bearer {}", self.keys[who]))
    }

    /// A line of this caller that has introduced itself. A running gateway notices a new key within a second.
    async fn open(&self, who: usize) -> Line {
        let open = async || self.try_open(who).await.ok();
        eventually("the caller is let in", open).await.unwrap()
    }

    async fn try_open(&self, who: usize) -> anyhow::Result<Line> {
        let declared = json!({"elicitation": {}});
        let header = format!("Bearer {}", self.keys[who]);
        match self.transport {
            Transport::Http => {
                Ok(Line::Http { client: self.http(who).initialize(VERSION, declared).await?, stream: None })
            }
            Transport::Sse => {
                let mut client = SseClient::open_with(self.http(who)).await?;
                client.initialize(VERSION, declared).await?;
                Ok(Line::Sse(client))
            }
            Transport::WebSocket => {
                let mut client = PipeClient::websocket(self.gateway.address(), &[("authorization", &header)]).await?;
                client.initialize(VERSION, declared).await?;
                Ok(Line::Pipe(client))
            }
            Transport::Tcp => {
                let mut client = PipeClient::tcp(self.gateway.address()).await?;
                let proof = json!({"scheme": "bearer", "credential": self.keys[who]});
                let hello = client.request(99, "signalbox/authenticate", proof).await?;
                anyhow::ensure!(hello["result"].is_object(), "{hello}");
                client.initialize(VERSION, declared).await?;
                Ok(Line::Pipe(client))
            }
        }
    }
}

/// What a caller speaks over.
enum Line {
    Http { client: HttpClient, stream: Option<EventStream> },
    Sse(SseClient),
    Pipe(PipeClient),
}

impl Line {
    async fn request(&mut self, id: u64, method: &str, params: Value) -> Value {
        match self {
            Self::Http { client, .. } => client.request(id, method, params).await.unwrap(),
            Self::Sse(client) => client.request(id, method, params).await.unwrap(),
            Self::Pipe(client) => client.request(id, method, params).await.unwrap(),
        }
    }

    /// Sends a request whose answer is read later.
    async fn begin(&mut self, message: &Value) {
        match self {
            Self::Http { client, stream } => *stream = Some(EventStream::post(client, message).await.unwrap()),
            Self::Sse(client) => client.send(message).await.unwrap(),
            Self::Pipe(client) => client.say(&message.to_string()).await.unwrap(),
        }
    }

    /// Sends the answer to a question.
    async fn reply(&mut self, id: &Value, name: &str) {
        let result = json!({"action": "accept", "content": {"name": name}});
        let message = json!({"jsonrpc": "2.0", "id": id, "result": result});
        match self {
            Self::Http { client, .. } => assert_eq!(client.post(&message.to_string()).await.unwrap().status, 202),
            Self::Sse(client) => client.send(&message).await.unwrap(),
            Self::Pipe(client) => client.say(&message.to_string()).await.unwrap(),
        }
    }

    async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        match self {
            Self::Http { stream, .. } => stream.as_mut().unwrap().until(fits).await.unwrap(),
            Self::Sse(client) => client.until(fits).await.unwrap(),
            Self::Pipe(client) => loop {
                let message = client.next().await.unwrap();
                if fits(&message) {
                    break message;
                }
            },
        }
    }
}

/// Tasks and questions of one caller do not exist for the other, over this transport and at a backend of this revision.
async fn tasks_and_questions(transport: Transport, revision: &str) {
    let scene = Scene::new(transport, revision).await;
    let (mut ada, mut eve) = (scene.open(0).await, scene.open(1).await);
    let wish = json!({"name": "task", "arguments": {"ms": 600_000}, "task": {"ttl": 600_000}});
    let made = ada.request(2, "tools/call", wish).await;
    let task = made["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{transport:?}: {made}")).to_owned();
    let absent = "no-such-task";
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let stolen = eve.request(10, method, json!({"taskId": task})).await;
        let unknown = eve.request(10, method, json!({"taskId": absent})).await;
        assert!(stolen["error"].is_object(), "{transport:?} {method}: {stolen}");
        assert_eq!(stolen.to_string().replace(&task, absent), unknown.to_string(), "{transport:?} {method}");
    }
    let list = eve.request(11, "tasks/list", json!({})).await;
    assert!(!list.to_string().contains(&task), "{transport:?}: {list}");
    let told = ada.request(3, "tasks/get", json!({"taskId": task})).await;
    assert_eq!(told["result"]["status"], "working", "{transport:?}: nobody has cancelled it: {told}");

    let call = json!({"name": "ask_elicitation", "arguments": {}});
    ada.begin(&json!({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": call})).await;
    let question = ada.until(|message| message["method"] == "elicitation/create").await;
    eve.reply(&question["id"], "Eve").await;
    assert!(eve.request(12, "ping", json!({})).await["result"].is_object());
    ada.reply(&question["id"], "Ada").await;
    let answer = ada.until(|message| message["id"] == 4 && message.get("method").is_none()).await;
    let said = text(&answer).unwrap_or_else(|| panic!("{transport:?}: {answer}"));
    assert!(said.contains("Ada") && !said.contains("Eve"), "{transport:?}: {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_and_questions_of_another_do_not_exist_over_streamable_http() {
    tasks_and_questions(Transport::Http, "2025-11-25").await;
    tasks_and_questions(Transport::Http, "2026-07-28").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_and_questions_of_another_do_not_exist_over_http_and_sse() {
    tasks_and_questions(Transport::Sse, "2025-11-25").await;
    tasks_and_questions(Transport::Sse, "2026-07-28").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_and_questions_of_another_do_not_exist_over_websocket() {
    tasks_and_questions(Transport::WebSocket, "2025-11-25").await;
    tasks_and_questions(Transport::WebSocket, "2026-07-28").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_and_questions_of_another_do_not_exist_over_tcp() {
    tasks_and_questions(Transport::Tcp, "2025-11-25").await;
    tasks_and_questions(Transport::Tcp, "2026-07-28").await;
}

/// The server sees the gateway's credential alone, and lists the tasks of all who use it.
#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_another_do_not_exist_at_a_server_that_cannot_tell_callers_apart() {
    let server = start(&Options::of(Revision::R4), Network::Http, "127.0.0.1:0".parse().unwrap()).await.unwrap();
    let backend = format!("url = \"{}\"\n[mcp.protocol.audit]\nenabled = true\n", server.url());
    let scene = Scene::with_backend(Transport::Http, &backend).await;
    let (mut ada, mut eve) = (scene.open(0).await, scene.open(1).await);
    let wish = json!({"name": "task", "arguments": {"ms": 600_000}, "task": {"ttl": 600_000}});
    let make = async |line: &mut Line| {
        let made = line.request(2, "tools/call", wish.clone()).await;
        made["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
    };
    let (hers, own) = (make(&mut ada).await, make(&mut eve).await);
    let listed = async |line: &mut Line| {
        let list = line.request(3, "tasks/list", json!({})).await;
        let tasks = list["result"]["tasks"].as_array().unwrap_or_else(|| panic!("{list}"));
        tasks.iter().map(|task| task["taskId"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed(&mut eve).await, [own.as_str()]);
    assert_eq!(listed(&mut ada).await, [hers.as_str()]);
    for id in [json!([hers]), json!([[hers]]), json!(0), Value::Null] {
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            let stolen = eve.request(4, method, json!({"taskId": id})).await;
            assert_eq!(stolen["error"]["code"], -32602, "{method} {id}: {stolen}");
        }
    }
    let refused = async || {
        let found = std::fs::read_to_string(scene.gateway.data_dir().join("audit/audit.log")).ok()?;
        ["tasks/get", "tasks/result", "tasks/cancel"].iter().all(|method| found.contains(method)).then_some(())
    };
    eventually("the refusals are in the audit log", refused).await.unwrap();

    let address = scene.gateway.address();
    let config = std::fs::read_to_string(scene.gateway.config_file()).unwrap();
    let folder = scene.gateway.terminate().await.unwrap();
    let _gateway = GatewayProcess::serve_at(address, folder, &config).await.unwrap();
    let Line::Http { client, .. } = &eve else { panic!("another transport") };
    let restored = async || client.request(5, "tasks/list", json!({})).await.ok();
    let list = eventually("the session goes on", restored).await.unwrap();
    assert_eq!(list["result"]["tasks"], json!([]), "{list}");
    let stolen = client.request(6, "tasks/get", json!({"taskId": hers})).await.unwrap();
    assert_eq!(stolen["error"]["code"], -32602, "{stolen}");
}

fn same(stolen: &HttpAnswer, unknown: &HttpAnswer, what: &str) {
    assert_eq!((stolen.status, &stolen.body), (unknown.status, &unknown.body), "{what}");
}

/// Streams of another, named by `Last-Event-ID` in one's own session, and the addresses and ids of sessions of other
/// transports.
#[tokio::test(flavor = "multi_thread")]
async fn streams_and_sessions_of_another_do_not_exist_whichever_transport_they_are_of() {
    let scene = Scene::new(Transport::Http, "2025-11-25").await;
    let (Line::Http { client: ada, .. }, Line::Http { client: eve, .. }) = (scene.open(0).await, scene.open(1).await)
    else {
        unreachable!("both speak HTTP")
    };
    for number in 0..20 {
        ada.request(number, "tools/list", json!({})).await.unwrap();
    }
    let wait = json!({"name": "ask_elicitation", "arguments": {}});
    let call = json!({"jsonrpc": "2.0", "id": 30, "method": "tools/call", "params": wait});
    let events = ada.clone().with("accept", "text/event-stream");
    let mut body = events.open(Method::POST, "/mcp", call.to_string().into()).await.unwrap().into_body();
    let first = String::from_utf8(body.frame().await.unwrap().unwrap().into_data().unwrap().to_vec()).unwrap();
    let id = first.lines().find_map(|line| line.strip_prefix("id: ").or(line.strip_prefix("id:"))).unwrap().to_owned();
    let resume = async |client: &HttpClient, id: &str| {
        let client = client.clone().with("accept", "text/event-stream").with("last-event-id", id);
        client.send(Method::GET, "/mcp", Bytes::new()).await.unwrap()
    };
    let (_, rest) = id.split_once('-').unwrap();
    same(&resume(&eve, &id).await, &resume(&eve, &format!("99999-{rest}")).await, "a stream");

    // The address of an SSE session, with another's credential.
    let mut old = SseClient::open_with(scene.http(0)).await.unwrap();
    old.initialize("2024-11-05", json!({})).await.unwrap();
    let ping = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    let to = old.post_to.clone();
    let (base, own) = to.rsplit_once('=').unwrap();
    let absent = format!("{base}={}", "0".repeat(own.len()));
    let post = async |to: &str| scene.http(1).send(Method::POST, to, ping.clone()).await.unwrap();
    same(&post(&to).await, &post(&absent).await, "an address to post to");
    assert!(old.request(2, "ping", json!({})).await.unwrap()["result"].is_object());

    // The ids of sessions that belong to another transport open nothing, not even for their owner.
    let mut socket =
        PipeClient::websocket(scene.gateway.address(), &[("authorization", &format!("Bearer {}", scene.keys[0]))])
            .await
            .unwrap();
    socket.initialize(VERSION, json!({})).await.unwrap();
    let listed = signalbox(&scene.gateway.data_dir(), &["sessions", "list", "--json"]).await.unwrap();
    let ids: Vec<String> = listed.split('"').filter(|part| part.len() == 32).map(str::to_owned).collect();
    assert!(ids.contains(&own.to_owned()), "{listed}");
    for id in ids.iter().filter(|id| *id != ada.session_id().unwrap() && *id != eve.session_id().unwrap()) {
        for who in [0, 1] {
            let client = scene.http(who).with("mcp-session-id", id).with("mcp-protocol-version", VERSION);
            assert_eq!(client.send(Method::POST, "/mcp", ping.clone()).await.unwrap().status, 404, "{id}");
        }
    }
}

/// The ticket of a parked call, played back by another on every transport that carries the new era.
#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_of_another_is_refused_as_one_that_was_made_up() {
    let scene = Scene::new(Transport::Http, "2025-11-25").await;
    let params = |more: Value| {
        let mut params = json!({"name": "ask_elicitation", "arguments": {}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        }});
        for (name, value) in more.as_object().unwrap() {
            params[name] = value.clone();
        }
        params
    };
    let ask = async |who: usize, more: Value| {
        let client = scene.http(who).with("mcp-protocol-version", "2026-07-28").with("mcp-method", "tools/call");
        client.with("mcp-name", "ask_elicitation").request(1, "tools/call", params(more)).await.unwrap()
    };
    scene.open(0).await;
    scene.open(1).await;
    let asked = ask(0, json!({})).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let state = asked["result"]["requestState"].as_str().unwrap().to_owned();
    let key = asked["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let back = |state: &str, name: &str| {
        let answer = json!({"action": "accept", "content": {"name": name}});
        json!({"requestState": state, "inputResponses": {key.clone(): answer}})
    };
    let made_up = format!("{}AAAA", &state[..state.len() - 4]);
    let unknown = ask(1, back(&made_up, "Eve")).await;
    assert!(unknown["error"].is_object(), "{unknown}");
    assert_eq!(ask(1, back(&state, "Eve")).await, unknown);
    let header = format!("Bearer {}", scene.keys[1]);
    let mut socket = PipeClient::websocket(scene.gateway.address(), &[("authorization", &header)]).await.unwrap();
    let over_socket = socket.request(1, "tools/call", params(back(&state, "Eve"))).await.unwrap();
    assert_eq!(over_socket["error"], unknown["error"], "{over_socket}");
    let done = ask(0, back(&state, "Ada")).await;
    assert!(text(&done).unwrap_or_else(|| panic!("{done}")).contains("Ada"), "{done}");
}
