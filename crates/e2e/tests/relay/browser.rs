//! The relay's demo page in a real Chromium, and the agents that use its tools: MCP of two eras, and the legacy routes.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
#![expect(clippy::print_stdout, reason = "what is skipped is said")]

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::{Value, json};
use signalbox_testkit::browser::Browser;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::scene::eventually;
use std::path::Path;
use std::process::Command;

/// All calls of the CODAP tools (the first 34 lines), in an order in which each succeeds.
const CALLS: &str = include_str!("../../../../web/relay/test/calls.json");
const QUICK_START: &str = include_str!("../../../../docs/relay-pages.md");
const DOCUMENT_CALLS: usize = 34;
const CONFIG: &str =
    "[relay]\nenabled = true\n[relay.limits]\nrequests_per_minute = 10000\nmcp_requests_per_minute = 10000\n";

/// The ways an agent calls the tools of a page.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Way {
    Mcp2025,
    Mcp2026,
    Rest,
}

/// An agent that has the code of a session.
struct Agent {
    way: Way,
    client: HttpClient,
    code: String,
    /// The stream of results, for those that read one.
    results: Option<Results>,
}

impl Agent {
    async fn join(gateway: &GatewayProcess, way: Way, code: &str) -> Self {
        let client = HttpClient::new(gateway.address());
        let mut agent = Self { way, client, code: code.to_owned(), results: None };
        match way {
            Way::Mcp2025 => {
                let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
                    "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}});
                let answer = agent.post(&hello).await;
                let session = answer.headers["mcp-session-id"].to_str().unwrap().to_owned();
                agent.client = agent.client.with("mcp-session-id", &session).with("mcp-protocol-version", "2025-06-18");
                agent.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
                agent.call("connect_to_session", json!({"sessionId": code})).await;
            }
            Way::Mcp2026 => {}
            Way::Rest => {
                let asking = agent.client.clone().with("accept", "text/event-stream").with("x-session-code", code);
                let opened = asking.open(Method::GET, "/api/stream?role=client", Bytes::new()).await.unwrap();
                assert_eq!(opened.status(), 200);
                agent.results = Some(Results { body: opened.into_body(), unread: String::new() });
            }
        }
        agent
    }

    async fn post(&self, message: &Value) -> signalbox_testkit::http_client::HttpAnswer {
        self.client.send(Method::POST, "/api/mcp", Bytes::from(message.to_string())).await.unwrap()
    }

    /// Calls a tool, which must succeed; returns the text of its result.
    async fn call(&mut self, tool: &str, mut arguments: Value) -> String {
        let answer = match self.way {
            Way::Rest => return self.call_by_rest(tool, &arguments).await,
            Way::Mcp2025 => {
                self.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                    "params": {"name": tool, "arguments": arguments}}))
                    .await
            }
            Way::Mcp2026 => {
                arguments["sessionCode"] = json!(self.code);
                let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
                let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                    "params": {"name": tool, "arguments": arguments, "_meta": meta}});
                let client =
                    self.client.clone().with("mcp-protocol-version", "2026-07-28").with("mcp-method", "tools/call");
                let client = client.with("mcp-name", tool);
                client.send(Method::POST, "/api/mcp", Bytes::from(message.to_string())).await.unwrap()
            }
        };
        let answer = answer.message().unwrap();
        let result = &answer["result"];
        assert!(result["isError"] != true && result["content"].is_array(), "{:?} {tool}: {answer}", self.way);
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    async fn call_by_rest(&mut self, tool: &str, arguments: &Value) -> String {
        let asked = json!({"sessionCode": self.code, "tool": tool, "arguments": arguments});
        let answer = self.client.send(Method::POST, "/api/request", Bytes::from(asked.to_string())).await.unwrap();
        assert_eq!(answer.status, 202, "{tool}: {answer:?}");
        let id = answer.message().unwrap()["id"].as_str().unwrap().to_owned();
        self.results.as_mut().unwrap().of(&id).await
    }
}

/// The results on the stream of a legacy client.
struct Results {
    body: Incoming,
    unread: String,
}

impl Results {
    /// The result of one request, as it was written: `data: {"tool":…,"result":…,"requestId":…}`.
    async fn of(&mut self, id: &str) -> String {
        let reading = async {
            loop {
                while let Some(end) = self.unread.find("\n\n") {
                    let event: String = self.unread.drain(..end + 2).collect();
                    let Some(data) = event.lines().find_map(|line| line.strip_prefix("data: ")) else { continue };
                    let said: Value = serde_json::from_str(data).unwrap();
                    if said["requestId"] != id || event.lines().any(|line| line.starts_with("event:")) {
                        continue;
                    }
                    assert!(said.get("error").is_none(), "{data}");
                    let from = data.find("\"result\":").unwrap() + "\"result\":".len();
                    return data[from..data.rfind(",\"requestId\"").unwrap()].to_owned();
                }
                let frame = self.body.frame().await.unwrap().unwrap();
                self.unread.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(60), reading).await.unwrap()
    }
}

/// A gateway with a browser; `None` where there is no browser.
async fn scene() -> Option<(GatewayProcess, Browser)> {
    let Some(browser) = Browser::start().await.unwrap() else {
        println!("SKIP the demo page in a browser: run script/install-test-deps");
        return None;
    };
    let gateway = GatewayProcess::serve(CONFIG).await.unwrap();
    gateway.ready().await.unwrap();
    Some((gateway, browser))
}

/// Opens the demo page in a new tab, starts a session by its button, and returns the code that it shows.
async fn new_session(gateway: &GatewayProcess, browser: &mut Browser, tab: &str) -> String {
    browser.open(tab, &format!("http://{}/relay/demo/", gateway.address())).await.unwrap();
    browser.look(tab, "document.getElementById('create').click()").await.unwrap();
    browser.wait_state(tab, "connected", false).await.unwrap();
    let code = browser.look(tab, "document.getElementById('shown-code').textContent").await.unwrap();
    code.as_str().unwrap().to_owned()
}

/// Replaces `$n.path` by what the nth call answered.
fn filled(value: &Value, answers: &[Value]) -> Value {
    match value {
        Value::String(text) if text.starts_with('$') => {
            let (number, path) = text[1..].split_once('.').unwrap();
            answers[number.parse::<usize>().unwrap()].pointer(&format!("/{}", path.replace('.', "/"))).unwrap().clone()
        }
        Value::Array(values) => values.iter().map(|value| filled(value, answers)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), filled(value, answers)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

/// Agents of three kinds each make a data set, a table and a graph, and the page shows it.
/// Proves C-25.
#[tokio::test(flavor = "multi_thread")]
async fn agents_of_every_kind_work_on_the_page_that_shows_it() {
    let Some((gateway, mut browser)) = scene().await else { return };
    for way in [Way::Mcp2025, Way::Mcp2026, Way::Rest] {
        let tab = format!("{way:?}");
        let code = new_session(&gateway, &mut browser, &tab).await;
        let mut agent = Agent::join(&gateway, way, &code).await;
        agent.call("create_data_context", json!({"name": "Planets", "title": format!("Planets by {way:?}")})).await;
        let attributes = json!([{"name": "Planet", "type": "categorical"}, {"name": "Distance", "type": "numeric"}, {"name": "Year", "type": "numeric"}]);
        let planets = json!({"dataContextName": "Planets", "collectionName": "Planets", "attributes": attributes});
        agent.call("create_collection", planets).await;
        let items: Vec<_> = [("Mercury", 0.39, 0.24), ("Venus", 0.72, 0.62), ("Earth", 1.0, 1.0), ("Mars", 1.52, 1.88)]
            .map(|(planet, distance, year)| json!({"Planet": planet, "Distance": distance, "Year": year}))
            .into();
        agent
            .call("create_items", json!({"dataContextName": "Planets", "collectionName": "Planets", "items": items}))
            .await;
        let criteria = json!({"attributeName": "Distance", "value": 0.9, "operator": "greaterThan"});
        let wanted = json!({"dataContextName": "Planets", "collectionName": "Planets", "searchCriteria": criteria});
        let found: Value = serde_json::from_str(&agent.call("search_cases", wanted).await).unwrap();
        let ids: Vec<_> = found["cases"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect();
        assert_eq!(ids.len(), 2, "{found}");
        agent.call("select_cases", json!({"dataContextName": "Planets", "caseIds": ids})).await;
        agent.call("create_table", json!({"dataContextName": "Planets", "title": "The planets"})).await;
        let graph =
            json!({"dataContextName": "Planets", "xAttribute": "Distance", "yAttribute": "Year", "title": "Years"});
        agent.call("create_graph", graph).await;

        browser
            .wait(&tab, "document.querySelectorAll('[data-type=caseTable] tbody tr.chosen').length === 2")
            .await
            .unwrap();
        browser.wait(&tab, "document.querySelectorAll('[data-type=graph] circle').length === 4").await.unwrap();
        let table = "[...document.querySelectorAll('tbody tr')].map((row) => row.innerText.trim().split(/\\s+/))";
        let rows = browser.look(&tab, table).await.unwrap();
        assert_eq!(
            rows,
            json!([
                ["Mercury", "0.39", "0.24"],
                ["Venus", "0.72", "0.62"],
                ["Earth", "1", "1"],
                ["Mars", "1.52", "1.88"]
            ])
        );
        let chosen = "[...document.querySelectorAll('tr.chosen')].map((row) => row.cells[1].textContent)";
        assert_eq!(browser.look(&tab, chosen).await.unwrap(), json!(["Earth", "Mars"]));
        let told = browser
            .look(&tab, "document.querySelector('[data-type=graph] svg').getAttribute('aria-label')")
            .await
            .unwrap();
        assert!(told.as_str().unwrap().starts_with("Years. Year against Distance: 4 cases, 2 selected."), "{told}");
        let said = browser.tell("said", &tab, json!({})).await.unwrap();
        assert_eq!(said, json!([]), "nothing was blocked by the policy, and nothing went wrong");
        let picture = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("relay-demo-{way:?}.png"));
        browser.picture(&tab, &picture).await.unwrap();
        assert!(std::fs::metadata(&picture).unwrap().len() > 10_000);
        println!("picture: {}", picture.display());
    }
    browser.stop().await.unwrap();
}

/// All 33 tools by MCP of both eras and by the legacy routes, each in a page of its own: the results are the same.
/// Proves C-21, C-25 and CO-15.
#[tokio::test(flavor = "multi_thread")]
async fn all_tools_answer_alike_by_mcp_and_by_rest() {
    let Some((gateway, mut browser)) = scene().await else { return };
    let calls: Vec<(String, Value)> = serde_json::from_str(CALLS).unwrap();
    let calls = &calls[..DOCUMENT_CALLS];
    assert_eq!(calls.iter().map(|(tool, _)| tool).collect::<std::collections::BTreeSet<_>>().len(), 33);
    let mut texts: Vec<Vec<String>> = Vec::new();
    for way in [Way::Mcp2025, Way::Mcp2026, Way::Rest] {
        let code = new_session(&gateway, &mut browser, &format!("{way:?}")).await;
        let mut agent = Agent::join(&gateway, way, &code).await;
        let (mut answers, mut said) = (Vec::new(), Vec::new());
        for (tool, arguments) in calls {
            let text = agent.call(tool, filled(arguments, &answers)).await;
            answers.push(serde_json::from_str(&text).unwrap());
            said.push(text);
        }
        texts.push(said);
    }
    for (number, (tool, _)) in calls.iter().enumerate() {
        assert_eq!(texts[0][number], texts[1][number], "{tool} by 2025 and by 2026");
        assert_eq!(texts[0][number], texts[2][number], "{tool} by MCP and by REST");
    }
    browser.stop().await.unwrap();
}

/// A page that is reloaded, cut off, closed or killed in the middle of a call. No call runs twice, none hangs.
/// Proves C-23.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_goes_away_and_comes_back_runs_each_call_once() {
    let Some((gateway, mut browser)) = scene().await else { return };
    let code = new_session(&gateway, &mut browser, "first").await;
    let mut agent = Agent::join(&gateway, Way::Mcp2025, &code).await;
    agent.call("create_data_context", json!({"name": "Kept"})).await;
    browser.tell("reload", "first", json!({})).await.unwrap();
    browser.wait_state("first", "connected", false).await.unwrap();
    assert!(agent.call("get_data_contexts", json!({})).await.contains("Kept"));

    // Without a network the call waits; with it, it is answered, and has run once.
    browser.tell("offline", "first", json!({"on": true})).await.unwrap();
    let calling = tokio::spawn(async move {
        let items = json!({"dataContextName": "Kept", "collectionName": "Cases", "items": [{}]});
        agent.call("create_items", items).await;
        agent
    });
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    browser.tell("offline", "first", json!({"on": false})).await.unwrap();
    let mut agent = calling.await.unwrap();
    let items: Value =
        serde_json::from_str(&agent.call("get_items", json!({"dataContextName": "Kept"})).await).unwrap();
    assert_eq!(items["total"], 1, "{items}");

    // A second tab of the same browser stands by, and serves when the first is killed.
    let joined = format!("http://{}/relay/demo/#{code}", gateway.address());
    browser.open("second", &joined).await.unwrap();
    browser.wait_state("second", "disconnected", true).await.unwrap();
    browser.tell("crash", "first", json!({})).await.unwrap();
    browser.wait_state("second", "connected", false).await.unwrap();
    let served = eventually("the second tab serves", async || {
        browser
            .look("second", "document.getElementById('state').dataset.standby")
            .await
            .ok()
            .filter(|told| told == "false")
    });
    served.await.unwrap();
    assert!(agent.call("get_data_contexts", json!({})).await.contains("\"count\":0"), "it is another document");
    browser.stop().await.unwrap();
}

/// Two browsers have one session: the gateway lets the second wait, and it serves when the first is gone.
/// Proves C-23.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_browser_waits_until_the_first_is_gone() {
    let Some((gateway, mut first)) = scene().await else { return };
    let mut second = Browser::start().await.unwrap().unwrap();
    let code = new_session(&gateway, &mut first, "page").await;
    let link = first.look("page", "document.getElementById('join-address').href").await.unwrap();
    second.open("page", link.as_str().unwrap()).await.unwrap();
    second.wait_state("page", "connected", true).await.unwrap();
    assert_eq!(
        second.look("page", "location.hash").await.unwrap(),
        format!("#{code}"),
        "no token stays in the address"
    );
    let mut agent = Agent::join(&gateway, Way::Rest, &code).await;
    agent.call("create_data_context", json!({"name": "First"})).await;
    first.stop().await.unwrap();
    second.wait_state("page", "connected", false).await.unwrap();
    assert!(agent.call("get_data_contexts", json!({})).await.contains("\"count\":0"), "it is another document");
    second.stop().await.unwrap();
}

/// A page with two tools that run until somebody calls `finish`; how often they ran is counted over reloads.
const SLOW_PAGE: &str = r"(async () => {
    const { connect } = await import('/relay/worker.js');
    const run = async () => {
        localStorage.ran = Number(localStorage.ran ?? 0) + 1;
        const number = localStorage.ran;
        await new Promise((done) => { window.finish = done; });
        return `run ${number}`;
    };
    const tool = (name, idempotentHint) =>
        ({ name, description: name, inputSchema: { type: 'object' }, annotations: { idempotentHint }, handler: run });
    const worker = connect({ tools: [tool('change', false), tool('look', true)], backoff: { min: 100, max: 1000 } });
    return (await worker.ready).code;
})()";

/// Calls a tool of the slow page, and returns when it runs for the nth time.
async fn begin(
    gateway: &GatewayProcess,
    browser: &mut Browser,
    code: &str,
    tool: &'static str,
    run: u32,
) -> tokio::task::JoinHandle<Value> {
    let agent = Agent::join(gateway, Way::Mcp2025, code).await;
    let listed = eventually("the tool is listed", async || {
        let answer = agent.post(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})).await.message().ok()?;
        answer["result"]["tools"].as_array()?.iter().any(|listed| listed["name"] == tool).then_some(())
    });
    listed.await.unwrap();
    let calling = tokio::spawn(async move {
        let call =
            json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": tool, "arguments": {}}});
        agent.post(&call).await.message().unwrap()["result"].clone()
    });
    browser.wait("page", &format!("localStorage.ran === '{run}' && window.finish")).await.unwrap();
    calling
}

/// A network that is gone for 30 s and reloads in the middle of calls. What ran is not run again.
/// Proves C-23.
#[tokio::test(flavor = "multi_thread")]
async fn calls_that_lose_their_network_or_their_page_have_a_defined_outcome() {
    let Some(mut browser) = Browser::start().await.unwrap() else {
        println!("SKIP a page that is reloaded: run script/install-test-deps");
        return;
    };
    let gateway = GatewayProcess::serve(&format!("{CONFIG}request_timeout = '300s'\n")).await.unwrap();
    gateway.ready().await.unwrap();
    browser.open("page", &format!("http://{}/relay/demo/", gateway.address())).await.unwrap();
    let code = browser.look("page", SLOW_PAGE).await.unwrap().as_str().unwrap().to_owned();
    let text = |result: &Value| result["content"][0]["text"].as_str().unwrap().to_owned();

    let cut = begin(&gateway, &mut browser, &code, "change", 1).await;
    browser.tell("offline", "page", json!({"on": true})).await.unwrap();
    browser.look("page", "window.finish()").await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(30)).await;
    assert!(!cut.is_finished());
    browser.tell("offline", "page", json!({"on": false})).await.unwrap();
    assert_eq!(text(&cut.await.unwrap()), "run 1");

    let lost = begin(&gateway, &mut browser, &code, "change", 2).await;
    browser.tell("reload", "page", json!({})).await.unwrap();
    assert_eq!(browser.look("page", SLOW_PAGE).await.unwrap(), code, "the tab goes on with its session");
    let lost = lost.await.unwrap();
    assert!(lost["isError"] == true && text(&lost).contains("whether it took effect is not known"), "{lost}");
    assert_eq!(browser.look("page", "localStorage.ran").await.unwrap(), "2");

    let repeated = begin(&gateway, &mut browser, &code, "look", 3).await;
    browser.tell("reload", "page", json!({})).await.unwrap();
    browser.look("page", SLOW_PAGE).await.unwrap();
    browser.wait("page", "localStorage.ran === '4' && window.finish").await.unwrap();
    browser.look("page", "window.finish()").await.unwrap();
    assert_eq!(text(&repeated.await.unwrap()), "run 4");
    browser.stop().await.unwrap();
}

/// The quick start of docs/relay-pages.md, as it stands there: a page offers a tool of its own, and an agent finds and
/// calls it.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_offers_a_tool_of_its_own_in_ten_lines() {
    let Some((gateway, mut browser)) = scene().await else { return };
    let script = QUICK_START.split_once("<script type=\"module\">").unwrap().1.split_once("</script>").unwrap().0;
    assert_eq!(script.trim().lines().count(), 8);
    let from = "import { connect } from \"https://gateway.example/relay/worker.js\";";
    assert!(script.contains(from));
    let script = script.replace(from, "const { connect } = await import('/relay/worker.js');");
    browser.open("page", &format!("http://{}/relay/demo/", gateway.address())).await.unwrap();
    let run = format!("(async () => {{ {script}; return (await worker.ready).code; }})()");
    let code = browser.look("page", &run).await.unwrap().as_str().unwrap().to_owned();
    let mut agent = Agent::join(&gateway, Way::Mcp2025, &code).await;
    let listed = eventually("the tool is listed", async || {
        let answer = agent.post(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})).await.message().ok()?;
        let tools = answer["result"]["tools"].as_array()?.clone();
        tools.into_iter().find(|tool| tool["name"] == "set_title")
    });
    assert_eq!(listed.await.unwrap()["description"], "Changes the title of the page.");
    let said = agent.call("set_title", json!({"title": "Called by an agent"})).await;
    assert_eq!(said, "The page is called Called by an agent now.");
    assert_eq!(browser.look("page", "document.title").await.unwrap(), "Called by an agent");
    browser.stop().await.unwrap();
}

/// The files that the gateway serves are what their sources build, and the library holds against a relay with faults.
#[test]
fn the_pages_are_what_their_sources_build_and_their_tests_pass() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/relay/test/run");
    let output = Command::new(script).output().unwrap();
    if output.status.code() == Some(77) {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "the packages of web/relay are not installed");
        println!("SKIP the sources of the pages: run script/install-test-deps");
        return;
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
