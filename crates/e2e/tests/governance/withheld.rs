//! A text that is withheld from a caller is in nothing that the caller receives, whatever the reason
//! and whatever the way in. Every way is tried with every reason at one running gateway; another caller, from whom
//! nothing is withheld, gets the text by the same way.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod local_ways;

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::{HttpAnswer, HttpClient};
use signalbox_testkit::pipe_client::PipeClient;
use signalbox_testkit::process::built;
use signalbox_testkit::scene::{call, child, eventually, signalbox, tool_names};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Texts that the fixture answers with, and that no request has.
const CANARIES: [&str; 7] = [
    "This is a simple text response",
    "This is a simple prompt",
    "This is the content of the static text",
    "Data for ID",
    "computed: ",
    "task done",
    "\"12\",\"123\"",
];
const TOOL: &str = "test_simple_text";
const ENTRIES: [&str; 6] =
    [TOOL, "slow_compute", "task", "test_simple_prompt", "test://static-text", "test://template/*"];
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Why a text is withheld from ada.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Reason {
    RoleDeny,
    Hidden,
    Redacted,
    Replaced,
    Blocked,
}

impl Reason {
    const ALL: [Self; 5] = [Self::RoleDeny, Self::Hidden, Self::Redacted, Self::Replaced, Self::Blocked];

    /// The configuration that withholds the texts from this principal, which has the role `some`.
    fn config(self, principal: &str) -> String {
        let entries: Vec<String> = ["one", "old", "strict"]
            .iter()
            .flat_map(|backend| ENTRIES.map(|entry| format!("{backend}/{entry}")))
            .collect();
        let rule = |then: &str| {
            format!(
                "[roles.some]\n[[rules]]\nid = 'withhold'\nwhen = {{ phase = 'response', principal = '{principal}', subject = {} }}\nthen = {then}\n",
                json!(ENTRIES.map(|entry| format!("*{entry}")))
            )
        };
        match self {
            Self::RoleDeny => format!("[roles.some]\ndeny = {}\n", json!(entries)),
            Self::Hidden => {
                "[roles.some]\nallow = ['one/greet', 'one/touch_resource', 'old/greet', 'tapes']\n".to_owned()
            }
            Self::Redacted => format!(
                "[roles.some]\n[constraints.'*']\nroles = ['some']\nredact = {}\n",
                json!(CANARIES.map(|text| format!("{text}[^\"]*")))
            ),
            Self::Replaced => rule("{ replace_result = { content = [], contents = [], messages = [] } }"),
            Self::Blocked => rule("{ block = 'withheld' }"),
        }
    }

    /// True if it withholds what comes by this way. Constraints are for results of tools, and rules on
    /// answers hide no entry.
    fn counts_for(self, way: Way) -> bool {
        match way {
            Way::Lists | Way::Listen => matches!(self, Self::RoleDeny | Self::Hidden),
            Way::Prompt | Way::Resource | Way::Template | Way::Completion => self != Self::Redacted,
            _ => true,
        }
    }
}

/// A way by which a caller may get at the texts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Way {
    Old,
    New,
    Batch,
    WebSocket,
    Dialect,
    Prompt,
    Resource,
    Template,
    Completion,
    Lists,
    Listen,
    OldTask,
    NewTask,
    HostedTask,
    Resumed,
    Tape,
    Tapes,
}

impl Way {
    const ALL: [Self; 17] = [
        Self::Old,
        Self::New,
        Self::Batch,
        Self::WebSocket,
        Self::Dialect,
        Self::Prompt,
        Self::Resource,
        Self::Template,
        Self::Completion,
        Self::Lists,
        Self::Listen,
        Self::OldTask,
        Self::NewTask,
        Self::HostedTask,
        Self::Resumed,
        Self::Tape,
        Self::Tapes,
    ];

    /// Everything that the caller receives.
    async fn received(self, caller: &Caller) -> String {
        match self {
            Self::Old => caller.old("tools/call", json!({"name": TOOL, "arguments": {}})).await,
            Self::New => caller.modern("tools/call", json!({"name": TOOL, "arguments": {}})).await,
            Self::Batch => {
                let calls = json!([call(1, TOOL, &json!({})), call(2, "greet", &json!({"name": "x"}))]);
                let session = caller.web.initialize("2025-03-26", json!({})).await.unwrap();
                whole(&session.post(&calls.to_string()).await.unwrap())
            }
            Self::WebSocket => {
                let mut socket = caller.socket().await;
                socket.initialize("2025-06-18", json!({})).await.unwrap();
                socket.request(1, "tools/call", json!({"name": TOOL, "arguments": {}})).await.unwrap().to_string()
            }
            Self::Dialect => {
                let ask = |method: &str, params: Value| {
                    json!({"jsonrpc": "2.0", "id": "d", "method": method, "params": params}).to_string()
                };
                let mut all = String::new();
                for method in ["tools/validate", "tools/invoke"] {
                    let asked = ask(method, json!({"tool_id": TOOL, "parameters": {}}));
                    all += &whole(&caller.web.post(&asked).await.unwrap());
                }
                all
            }
            Self::Prompt => {
                let both = caller.old("prompts/get", json!({"name": "test_simple_prompt"})).await;
                both + &caller.modern("prompts/get", json!({"name": "test_simple_prompt"})).await
            }
            Self::Resource => {
                let both = caller.old("resources/read", json!({"uri": "test://static-text"})).await;
                both + &caller.modern("resources/read", json!({"uri": "test://static-text"})).await
            }
            Self::Template => {
                let uri = "test://template/7/data";
                let both = caller.old("resources/read", json!({"uri": uri})).await;
                both + &caller.modern("resources/read", json!({"uri": uri})).await
            }
            Self::Completion => {
                let reference = json!({"type": "ref/resource", "uri": "test://template/{id}/data"});
                let asked = json!({"ref": reference, "argument": {"name": "id", "value": "1"}});
                caller.old("completion/complete", asked.clone()).await
                    + &caller.modern("completion/complete", asked).await
            }
            Self::Lists => lists(caller).await,
            Self::Listen => listened(caller).await,
            Self::OldTask => old_task(caller).await,
            Self::NewTask => new_task(caller, "slow_compute", json!({"seconds": 0, "label": "x"})).await,
            Self::HostedTask => new_task(caller, "task", json!({"ms": 1})).await,
            Self::Resumed => resumed(caller).await,
            Self::Tape => caller.old("tools/call", json!({"name": format!("old__{TOOL}"), "arguments": {}})).await,
            Self::Tapes => tapes(caller).await,
        }
    }
}

fn whole(answer: &HttpAnswer) -> String {
    format!("{:?} {}", answer.headers, String::from_utf8_lossy(&answer.body))
}

/// A caller with a key.
struct Caller {
    web: HttpClient,
    session: HttpClient,
    key: String,
    address: std::net::SocketAddr,
}

impl Caller {
    async fn of(gateway: &GatewayProcess, name: &str) -> Self {
        let key = signalbox(&gateway.data_dir(), &["keys", "new", name]).await.unwrap().trim().to_owned();
        let web = HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {key}"));
        let begin = async || web.initialize("2025-11-25", json!({})).await.ok();
        let session = eventually("the key is known", begin).await.unwrap();
        let listed = async || tool_names(&session).await.ok().filter(|names| names.iter().any(|name| name == "greet"));
        eventually("the tools are listed", listed).await.unwrap();
        Self { web, session, key, address: gateway.address() }
    }

    async fn old(&self, method: &str, params: Value) -> String {
        let message = json!({"jsonrpc": "2.0", "id": 3, "method": method, "params": params});
        whole(&self.session.post(&message.to_string()).await.unwrap())
    }

    async fn modern(&self, method: &str, params: Value) -> String {
        whole(&self.web.modern(4, method, params).await.unwrap())
    }

    async fn socket(&self) -> PipeClient {
        let bearer = format!("Bearer {}", self.key);
        PipeClient::websocket(self.address, &[("authorization", &bearer)]).await.unwrap()
    }
}

/// The entries in the lists of both eras, and the first of the texts if an entry is there that may be withheld.
async fn lists(caller: &Caller) -> String {
    let mut all = String::new();
    for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        all += &caller.old(method, json!({})).await;
        all += &caller.modern(method, json!({})).await;
    }
    let names = ENTRIES.map(|entry| entry.trim_end_matches('*'));
    if names.iter().any(|name| all.contains(&format!("\"{name}"))) { all + CANARIES[0] } else { all }
}

/// What a listen request is told of a resource that changes, and the first of the texts if it is told of the resource.
async fn listened(caller: &Caller) -> String {
    let uri = "test://static-text";
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let params = json!({"_meta": meta, "notifications": {"resourceSubscriptions": [uri]}});
    let message = json!({"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": params});
    let web = caller.web.clone().with("mcp-protocol-version", "2026-07-28").with("mcp-method", "subscriptions/listen");
    let body = Bytes::from(message.to_string());
    let mut told = web.open(Method::POST, "/mcp", body).await.unwrap().into_body();
    let mut all = String::new();
    for _ in 0..2 {
        while let Ok(Some(Ok(frame))) = tokio::time::timeout(Duration::from_millis(300), told.frame()).await {
            write!(all, "{}", String::from_utf8_lossy(&frame.into_data().unwrap_or_default())).unwrap();
        }
        caller
            .session
            .request(11, "tools/call", json!({"name": "touch_resource", "arguments": {"uri": uri}}))
            .await
            .unwrap();
    }
    if all.contains(uri) { all + CANARIES[0] } else { all }
}

/// A task of 2025-11-25: its making, its state and its result.
async fn old_task(caller: &Caller) -> String {
    let wish = json!({"name": "task", "arguments": {"ms": 1}, "task": {"ttl": 30_000}});
    let made = caller.session.request(5, "tools/call", wish).await.unwrap();
    let task = &made["result"]["task"]["taskId"];
    let mut all = made.to_string();
    for method in ["tasks/result", "tasks/get"] {
        all += &caller.old(method, json!({"taskId": task})).await;
    }
    all
}

/// A task of 2026-07-28: its making and its states until it has ended.
async fn new_task(caller: &Caller, tool: &str, arguments: Value) -> String {
    let ask = async |method: &str, mut params: Value| {
        let name = ["name", "taskId"].iter().find_map(|key| params[*key].as_str()).unwrap_or_default().to_owned();
        params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"extensions": {TASKS: {}}}});
        let web = caller.web.clone().with("mcp-protocol-version", "2026-07-28").with("mcp-method", method);
        let message = json!({"jsonrpc": "2.0", "id": 6, "method": method, "params": params});
        web.with("mcp-name", &name).post(&message.to_string()).await.unwrap()
    };
    let made = ask("tools/call", json!({"name": tool, "arguments": arguments})).await;
    let mut all = whole(&made);
    let Some(task) = made.message().unwrap()["result"]["taskId"].as_str().map(str::to_owned) else { return all };
    let ended = async || {
        let told = ask("tasks/get", json!({"taskId": task})).await;
        let message = told.message().unwrap();
        let works = message["result"]["status"] == "working";
        (!works).then(|| whole(&told))
    };
    all += &eventually("the task has ended", ended).await.unwrap();
    all
}

/// The answer to a call by an event stream, and once more by resuming the stream behind its first event.
async fn resumed(caller: &Caller) -> String {
    let message = call(8, TOOL, &json!({})).to_string();
    let stream = caller.session.clone().with("accept", "text/event-stream");
    let first = stream.send(Method::POST, "/mcp", Bytes::from(message)).await.unwrap();
    let mut all = whole(&first);
    let text = String::from_utf8_lossy(&first.body).into_owned();
    let Some(id) = text.lines().find_map(|line| line.strip_prefix("id:")) else { return all };
    let again = stream.with("last-event-id", id.trim()).open(Method::GET, "/mcp", Bytes::new()).await.unwrap();
    let mut body = again.into_body();
    while let Ok(Some(Ok(frame))) = tokio::time::timeout(Duration::from_millis(700), body.frame()).await {
        write!(all, "{}", String::from_utf8_lossy(&frame.into_data().unwrap_or_default())).unwrap();
    }
    all
}

/// All that the tapes tell of the caller's calls, and of any call with one of the texts.
async fn tapes(caller: &Caller) -> String {
    let ask = async |tool: &str, arguments: Value| {
        caller.session.request(9, "tools/call", json!({"name": tool, "arguments": arguments})).await.unwrap()
    };
    let recorded = async || {
        let found = ask("tapes_search", json!({"tool": TOOL})).await;
        found["result"]["structuredContent"]["calls"].as_array().is_some_and(|calls| !calls.is_empty()).then_some(())
    };
    let _ = tokio::time::timeout(Duration::from_secs(5), eventually("the calls are recorded", recorded)).await;
    let mut all = String::new();
    let mut searches = vec![json!({}), json!({"tool": TOOL}), json!({"tool": format!("old__{TOOL}")})];
    // What was searched for stands in no answer of its own, as only the number of calls is looked at.
    searches.extend(["simple text response", "computed", "task done"].map(|text| json!({"text": text})));
    for search in searches {
        let found = ask("tapes_search", search).await;
        for one in found["result"]["structuredContent"]["calls"].as_array().into_iter().flatten() {
            let which = json!({"tape": one["tape"], "exchange": one["exchange"]});
            all += &ask("tapes_show", which).await.to_string();
        }
        all += &found.to_string();
    }
    all
}

/// A tape on which the tools were called.
async fn recorded(folder: &Path) -> PathBuf {
    let gateway = GatewayProcess::serve(&child("one", ServedEra::Both, "").unwrap()).await.unwrap();
    gateway.ready().await.unwrap();
    let client = HttpClient::new(gateway.address()).initialize("2025-06-18", json!({})).await.unwrap();
    assert!(!tool_names(&client).await.unwrap().is_empty());
    for (name, arguments) in [("greet", json!({"name": "x"})), (TOOL, json!({}))] {
        client.request(1, "tools/call", json!({"name": name, "arguments": arguments})).await.unwrap();
    }
    let (data, tape) = (gateway.data_dir(), folder.join("talk.tape"));
    let kept =
        async || signalbox(&data, &["tape", "show", "last", "--json"]).await.ok().filter(|all| all.contains(TOOL));
    eventually("the calls are on the tape", kept).await.unwrap();
    signalbox(&data, &["tape", "export", "last", "-o", tape.to_str().unwrap()]).await.unwrap();
    tape
}

/// The fixture, and a server of 2025-11-25 with tasks.
fn backends() -> String {
    let program = json!(built("revision-server").unwrap().to_str().unwrap());
    let args = json!(["--stdio", "--revision", "2025-11-25"]);
    let one = child("one", ServedEra::Both, "").unwrap();
    format!("{one}[backends.strict]\ncommand = {program}\nargs = {args}\n")
}

fn config(reason: Reason, tape: &Path) -> String {
    let backends = backends();
    let users = "[auth.users.'key:ada']\nroles = ['some']\n[auth.users.'key:bob']\nroles = ['all']\n[roles.all]\n";
    format!(
        "[mcp.protocol.security]\nrequire_authentication = true\n{users}{}{backends}[backends.old]\ntape = {}\n[backends.tapes]\nbuiltin = 'tapes'\n",
        reason.config("key:ada"),
        json!(tape.to_str().unwrap())
    )
}

/// Reasons × ways.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_withheld_is_in_nothing_that_the_caller_receives() {
    let folder = tempfile::tempdir().unwrap();
    let tape = recorded(folder.path()).await;
    for reason in Reason::ALL {
        let gateway = GatewayProcess::serve(&config(reason, &tape)).await.unwrap();
        gateway.ready().await.unwrap();
        let (ada, bob) = (Caller::of(&gateway, "ada").await, Caller::of(&gateway, "bob").await);
        for way in Way::ALL {
            let (to_ada, to_bob) = (way.received(&ada).await, way.received(&bob).await);
            let shown = |text: &str| CANARIES.iter().any(|canary| text.contains(canary));
            assert!(shown(&to_bob), "{reason:?} {way:?}: bob gets {to_bob}");
            assert!(!shown(&to_ada) || !reason.counts_for(way), "{reason:?} {way:?}: ada gets {to_ada}");
        }
        for path in ["/api/v1/status", "/api/v1/sessions", "/api/v1/tapes", "/api/v1/audit/status", "/metrics"] {
            let told = whole(&ada.web.get(path).await.unwrap());
            assert!(!CANARIES.iter().any(|canary| told.contains(canary)), "{reason:?} {path}: {told}");
        }
    }
}

/// What belongs to another caller is in nothing that a caller receives, though nothing limits either.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_another_callers_is_in_nothing_that_the_caller_receives() {
    const SECRET: &str = "canary of bob";
    let backends = backends();
    let gateway = GatewayProcess::serve(&format!(
        "[mcp.protocol.security]\nrequire_authentication = true\n{backends}[backends.tapes]\nbuiltin = 'tapes'\n"
    ))
    .await
    .unwrap();
    gateway.ready().await.unwrap();
    let (ada, bob) = (Caller::of(&gateway, "ada").await, Caller::of(&gateway, "bob").await);
    let stream = bob.session.clone().with("accept", "text/event-stream");
    let called = call(1, "greet", &json!({"name": SECRET})).to_string();
    let answer = stream.send(Method::POST, "/mcp", Bytes::from(called)).await.unwrap();
    let answer = String::from_utf8_lossy(&answer.body).into_owned();
    let event = answer.lines().find_map(|line| line.strip_prefix("id:")).unwrap_or("1").trim().to_owned();
    let wish = json!({"name": "task", "arguments": {"ms": 1}, "task": {"ttl": 30_000}});
    let made = bob.session.request(2, "tools/call", wish).await.unwrap();
    let task = made["result"]["task"]["taskId"].clone();
    assert!(answer.contains(SECRET) && task.is_string(), "{answer} {made}");
    let own = async || {
        let found = bob.old("tools/call", json!({"name": "tapes_search", "arguments": {"tool": "greet"}})).await;
        found.contains("greet").then_some(())
    };
    eventually("bob's call is on the tape", own).await.unwrap();

    let theirs = bob.session.session_id().unwrap().to_owned();
    let thief = ada.web.clone().with("mcp-session-id", &theirs).with("mcp-protocol-version", "2025-11-25");
    let mut told = String::new();
    for search in [json!({}), json!({"tool": "greet"}), json!({"principal": "key:bob"})] {
        told += &ada.old("tools/call", json!({"name": "tapes_search", "arguments": search})).await;
    }
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        told += &ada.old(method, json!({"taskId": task})).await;
        told += &whole(
            &thief
                .post(&json!({"jsonrpc": "2.0", "id": 3, "method": method, "params": {"taskId": task}}).to_string())
                .await
                .unwrap(),
        );
    }
    told += &ada.old("tasks/list", json!({})).await;
    for client in [thief, ada.session.clone()] {
        let back = client.with("accept", "text/event-stream").with("last-event-id", &event);
        let mut body = back.open(Method::GET, "/mcp", Bytes::new()).await.unwrap().into_body();
        while let Ok(Some(Ok(frame))) = tokio::time::timeout(Duration::from_millis(700), body.frame()).await {
            write!(told, "{}", String::from_utf8_lossy(&frame.into_data().unwrap_or_default())).unwrap();
        }
    }
    for path in ["/api/v1/status", "/api/v1/sessions", "/api/v1/tapes", "/api/v1/audit", "/metrics"] {
        told += &whole(&ada.web.get(path).await.unwrap());
    }
    assert!(!told.contains(SECRET) && !told.contains("task done"), "{told}");
}
