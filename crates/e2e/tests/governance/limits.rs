//! How often callers may call, at a real gateway.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use serde_json::{Value, json};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::process::built;
use signalbox_testkit::scene::{call, child, eventually, signalbox, text};
use std::time::{SystemTime, UNIX_EPOCH};

const VERSION: &str = "2025-06-18";

fn config(limits: &str) -> String {
    format!(
        "[mcp.protocol.security]\nrequire_authentication = true\n[mcp.protocol.rate_limits]\n{limits}\n{}",
        child("one", ServedEra::Old, "").unwrap()
    )
}

/// A session of somebody who has a key.
async fn session(gateway: &GatewayProcess, name: &str) -> HttpClient {
    begin(&keyed(gateway, &new_key(gateway, name).await)).await
}

async fn new_key(gateway: &GatewayProcess, name: &str) -> String {
    signalbox(&gateway.data_dir(), &["keys", "new", name]).await.unwrap().trim().to_owned()
}

fn keyed(gateway: &GatewayProcess, key: &str) -> HttpClient {
    HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {key}"))
}

/// Begins a session, once the key is known.
async fn begin(client: &HttpClient) -> HttpClient {
    let begin = async || client.initialize(VERSION, json!({})).await.ok();
    eventually("the key is known", begin).await.unwrap()
}

async fn greet(client: &HttpClient, tool: &str) -> Value {
    client.post(&call(1, tool, &json!({"name": "Ada"})).to_string()).await.unwrap().message().unwrap()
}

/// The limit that refused a call; `None` if it was answered.
fn refused(answer: &Value) -> Option<String> {
    if text(answer).is_some() {
        return None;
    }
    let error = &answer["error"];
    assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32004), &json!("rate_limited")), "{answer}");
    assert!(error["message"].as_str().unwrap().contains(" in a minute; try again in "), "{answer}");
    let wait = error["data"]["retryAfter"].as_u64().unwrap();
    assert!((1..=60).contains(&wait), "{answer}");
    Some(error["data"]["limit"].as_str().unwrap().to_owned())
}

/// Each caller and each tool has a limit of its own, and whoever is refused has taken nothing.
/// Proves G-36, G-37 and NO-8.
#[tokio::test(flavor = "multi_thread")]
async fn callers_and_tools_have_limits_of_their_own() {
    let limits = "user_requests_per_minute = 5\ntool_requests_per_minute = 6\nuser_tool_requests_per_minute = 4";
    let gateway = GatewayProcess::serve(&config(limits)).await.unwrap();
    gateway.ready().await.unwrap();
    let (ada, eve) = (session(&gateway, "ada").await, session(&gateway, "eve").await);
    let mut said = Vec::new();
    for (client, tool) in [(&ada, "greet"); 6].into_iter().chain([(&ada, "count"); 2]).chain([(&eve, "greet"); 3]) {
        said.push(refused(&greet(client, tool).await));
    }
    let [pass, both, user, tool] = [None, Some("user_and_tool"), Some("user"), Some("tool")];
    let expected = [pass, pass, pass, pass, both, both, pass, user, pass, pass, tool];
    assert_eq!(said.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
    // Whoever is refused can still be there.
    assert!(
        ada.post(r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#).await.unwrap().message().unwrap()["result"].is_object()
    );
}

/// Unknown names and hidden tools share one count, so that probing costs, and so that reaching a limit does not reveal
/// which of them exist.
#[tokio::test(flavor = "multi_thread")]
async fn unknown_and_hidden_names_share_one_bucket() {
    let limits = "tool_requests_per_minute = 3";
    let roles = "[permissions]\ndefault_role = \"all\"\n[roles.all]\nallow = [\"one/*\"]\ndeny = [\"one/count\"]\n";
    let gateway = GatewayProcess::serve(&format!("{}\n{roles}", config(limits))).await.unwrap();
    gateway.ready().await.unwrap();
    let ada = session(&gateway, "ada").await;
    let hidden = greet(&ada, "count").await;
    let unknown = greet(&ada, "nothing").await;
    let unnamed = |answer: &Value, name: &str| answer.to_string().replace(name, "NAME");
    assert_eq!(unnamed(&hidden, "count"), unnamed(&unknown, "nothing"));
    assert_ne!(hidden["error"]["data"]["reason"], "rate_limited");
    assert_ne!(greet(&ada, "nowhere").await["error"]["data"]["reason"], "rate_limited");
    for name in ["count", "nothing", "elsewhere"] {
        assert_eq!(refused(&greet(&ada, name).await).as_deref(), Some("tool"), "{name}");
    }
    assert_eq!(refused(&greet(&ada, "greet").await), None, "a tool that it may use has a bucket of its own");
}

/// Limits are tried on the past too, by the clock of the tape.
#[tokio::test(flavor = "multi_thread")]
async fn limits_are_tried_on_the_past() {
    let gateway = GatewayProcess::serve(&config("user_requests_per_minute = 3")).await.unwrap();
    gateway.ready().await.unwrap();
    let ada = session(&gateway, "ada").await;
    for number in 0..5 {
        assert_eq!(refused(&greet(&ada, "greet").await).is_some(), number >= 3);
    }
    let file = gateway.config_file().to_str().unwrap().to_owned();
    for (limits, changed, by) in [
        ("user_requests_per_minute = 3", 0, "limit:user"),
        ("", 2, ""),
        ("user_tool_requests_per_minute = 1", 2, "limit:user_and_tool"),
    ] {
        std::fs::write(gateway.config_file(), config(limits)).unwrap();
        let look = async || {
            let words = ["policy", "backtest", "last", "--json", "-c", &file];
            let told: Value = serde_json::from_str(&signalbox(&gateway.data_dir(), &words).await.ok()?).ok()?;
            // The last entries may not be written yet.
            (told["calls"] == 5).then_some(told)
        };
        let told = eventually("all calls are on the tape", look).await.unwrap();
        assert_eq!(told["changed"], changed, "{limits}: {told}");
        assert!(told["decisions"].as_array().unwrap().iter().any(|row| row["policy"] == by), "{limits}: {told}");
    }
}

/// A tool may have a time of its own, shorter than that of its backend; a reload changes it.
/// Proves GO-10.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_has_a_time_of_its_own() {
    let text = |limits: &str| format!("{}\n{limits}", config(""));
    let gateway = GatewayProcess::serve(&text("[limits.'one/slow']\ntimeout = 1\n")).await.unwrap();
    gateway.ready().await.unwrap();
    let ada = session(&gateway, "ada").await;
    let slow =
        async |ms: u64| ada.post(&call(1, "slow", &json!({ "ms": ms })).to_string()).await.unwrap().message().unwrap();
    assert_eq!(slow(600_000).await["error"]["data"]["reason"], "timed_out");
    std::fs::write(gateway.config_file(), text("")).unwrap();
    signalbox(&gateway.data_dir(), &["reload"]).await.unwrap();
    assert_eq!(text_of(&slow(1_500).await), "slept 1500 ms");
}

fn text_of(answer: &Value) -> String {
    text(answer).unwrap_or_else(|| answer.to_string())
}

/// Everybody together; a changed file is taken over.
/// Proves G-35 and NO-11.
#[tokio::test(flavor = "multi_thread")]
async fn all_callers_share_the_global_limit_and_a_reload_changes_it() {
    let gateway = GatewayProcess::serve(&config("global_requests_per_minute = 3")).await.unwrap();
    gateway.ready().await.unwrap();
    let (ada, eve) = (session(&gateway, "ada").await, session(&gateway, "eve").await);
    for (client, expected) in [(&ada, None), (&eve, None), (&ada, None), (&eve, Some("global")), (&ada, Some("global"))]
    {
        assert_eq!(refused(&greet(client, "greet").await).as_deref(), expected);
    }
    std::fs::write(gateway.config_file(), config("")).unwrap();
    signalbox(&gateway.data_dir(), &["reload"]).await.unwrap();
    for _ in 0..10 {
        assert_eq!(refused(&greet(&ada, "greet").await), None);
    }
}

/// Bounds of one tool: the same call in a row, the size of a result, and what a caller may spend in a day.
#[tokio::test(flavor = "multi_thread")]
async fn loops_large_results_and_spending_are_bounded() {
    let bounds = "user_budget_per_day = 5\n[limits.'one/greet']\nmax_repeats = 2\n[limits.'one/count']\nprice = 3\n";
    let gateway = GatewayProcess::serve(&config(bounds)).await.unwrap();
    gateway.ready().await.unwrap();
    let (ada, eve) = (session(&gateway, "ada").await, session(&gateway, "eve").await);
    let told = async |client: &HttpClient, tool: &str, name: &str| {
        let request = call(1, tool, &json!({"name": name})).to_string();
        let answer = client.post(&request).await.unwrap().message().unwrap();
        answer["error"]["data"]["limit"].as_str().map(ToOwned::to_owned)
    };
    assert_eq!(told(&ada, "greet", "Ada").await, None);
    assert_eq!(told(&ada, "greet", "Ada").await, None);
    assert_eq!(told(&ada, "greet", "Ada").await.as_deref(), Some("repeats"));
    assert_eq!(told(&eve, "greet", "Ada").await, None, "another caller does not go round in circles");
    assert_eq!(told(&ada, "greet", "Eve").await, None, "neither does another call");
    assert_eq!(told(&ada, "greet", "Ada").await, None);
    assert_eq!(told(&ada, "count", "Ada").await, None);
    assert_eq!(told(&ada, "count", "Ada").await.as_deref(), Some("budget"));
    assert_eq!(told(&eve, "count", "Ada").await, None);
    std::fs::write(gateway.config_file(), config("[limits.one]\nmax_result = 20\n")).unwrap();
    signalbox(&gateway.data_dir(), &["reload"]).await.unwrap();
    assert_eq!(told(&ada, "greet", "Ada").await.as_deref(), Some("result"));
}

/// Returns the number of the day by UTC, at whose end budgets begin anew.
fn today() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / 86_400
}

/// Spends a budget of 5 over three processes with one data folder, of which the second is killed. Returns the bound
/// that refused each call.
async fn spend_across_restarts() -> [Option<String>; 5] {
    let bounds = "user_budget_per_day = 5\n[limits.'one/count']\nprice = 3\n[limits.'one/greet']\nprice = 1\n";
    let config = config(bounds);
    let told = async |client: &HttpClient, tool: &str| {
        greet(client, tool).await["error"]["data"]["limit"].as_str().map(ToOwned::to_owned)
    };
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    gateway.ready().await.unwrap();
    let key = new_key(&gateway, "ada").await;
    let first = told(&begin(&keyed(&gateway, &key)).await, "count").await;

    let gateway = GatewayProcess::serve_in(gateway.terminate().await.unwrap(), &config).await.unwrap();
    gateway.ready().await.unwrap();
    let (client, file) = (begin(&keyed(&gateway, &key)).await, gateway.data_dir().join("auth/budgets.json"));
    let kept = std::fs::read(&file).unwrap();
    let (second, third) = (told(&client, "count").await, told(&client, "greet").await);
    let written = async || (std::fs::read(&file).unwrap() != kept).then_some(());
    eventually("what was spent is written", written).await.unwrap();

    let gateway = GatewayProcess::serve_in(gateway.stop().await.unwrap(), &config).await.unwrap();
    gateway.ready().await.unwrap();
    let client = begin(&keyed(&gateway, &key)).await;
    [first, second, third, told(&client, "greet").await, told(&client, "greet").await]
}

/// A restart gives no budget of the day back, in good order or by SIGKILL.
#[tokio::test(flavor = "multi_thread")]
async fn a_spent_budget_of_the_day_survives_restarts() {
    let refusals = loop {
        let day = today();
        let refusals = spend_across_restarts().await;
        if today() == day {
            break refusals;
        }
    };
    let refusals = refusals.each_ref().map(Option::as_deref);
    assert_eq!(refusals, [None, Some("budget"), None, None, Some("budget")]);
}

/// A tool's own rate takes the place of the default, be it lower or higher.
/// Proves NO-8.
#[tokio::test(flavor = "multi_thread")]
async fn a_rate_of_one_tool_may_exceed_the_default() {
    let rates = "user_tool_requests_per_minute = 2\n[limits.'*/greet']\ncalls_per_minute = 5\n\
                 [limits.'*/whoami']\ncalls_per_minute = 1\n";
    let gateway = GatewayProcess::serve(&config(rates)).await.unwrap();
    gateway.ready().await.unwrap();
    let ada = keyed(&gateway, &new_key(&gateway, "ada").await);
    own_rates_hold(&begin(&ada).await).await;
    let modern = ada.modern(9, "tools/call", json!({"name": "greet", "arguments": {"name": "Ada"}})).await;
    let error = modern.unwrap().message().unwrap()["error"].clone();
    assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(4290), &json!("rate_limited")), "{error}");
    assert!(error["data"]["retryAfter"].as_u64().is_some_and(|wait| (1..=60).contains(&wait)), "{error}");
}

/// Makes one call more than each tool may have, and sees that one refused.
async fn own_rates_hold(client: &HttpClient) {
    for (tool, may) in [("greet", 5), ("count", 2), ("whoami", 1)] {
        for number in 0..=may {
            let expected = (number == may).then_some("user_and_tool");
            assert_eq!(refused(&greet(client, tool).await).as_deref(), expected, "{tool} {number}");
        }
    }
}

/// The rates of an imported file hold at the gateway that runs with the import.
/// Proves NO-15.
#[tokio::test(flavor = "multi_thread")]
async fn rates_of_an_imported_file_hold() {
    let folder = tempfile::tempdir().unwrap();
    let program = json!(built("fixture-server").unwrap().to_str().unwrap());
    let sentinel = format!(
        "[gateway]\naudit_enabled = false\n[[backends]]\nname = 'one'\ntype = 'stdio'\ncommand = {program}\n\
         args = ['--stdio', '--era', 'old']\n[rate_limits]\ndefault_rpm = 2\nper_tool = {{ greet = 5, whoami = 1 }}\n"
    );
    let file = folder.path().join("sentinel.toml");
    std::fs::write(&file, sentinel).unwrap();
    let imported = signalbox(folder.path(), &["import", file.to_str().unwrap()]).await.unwrap();
    let gateway = GatewayProcess::serve(&imported).await.unwrap();
    gateway.ready().await.unwrap();
    let client = HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap();
    own_rates_hold(&client).await;
}

/// Under load, as many calls pass as the limit says, and none more. `MCP_TEST_LIMIT_SECONDS` makes it longer, and asks
/// that no more than 2 % of what may pass is refused, which a short run on a busy machine cannot promise.
/// Proves G-36.
#[tokio::test(flavor = "multi_thread")]
async fn under_load_a_limit_passes_what_it_says() {
    const LIMIT: f64 = 200.0;
    let asked: Option<u64> = std::env::var("MCP_TEST_LIMIT_SECONDS").ok().and_then(|text| text.parse().ok());
    let gateway = GatewayProcess::serve(&config("user_requests_per_second = 200")).await.unwrap();
    gateway.ready().await.unwrap();
    let ada = session(&gateway, "ada").await;
    // What the handshake took is back.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let start = std::time::Instant::now();
    let until = start + std::time::Duration::from_secs(asked.unwrap_or(1));
    let calling = (0..4).map(|_| {
        let ada = ada.clone();
        tokio::spawn(async move {
            let mut passed = 0;
            while std::time::Instant::now() < until {
                passed += u64::from(text(&greet(&ada, "greet").await).is_some());
            }
            passed
        })
    });
    let mut passed = 0;
    for one in calling.collect::<Vec<_>>() {
        passed += one.await.unwrap();
    }
    let may = LIMIT + LIMIT * start.elapsed().as_secs_f64();
    println!("limits: {passed} of {may:.0} calls passed");
    assert!((passed as f64) <= may + 1.0, "{passed} passed, {may} may");
    assert!(asked.is_none() || passed as f64 >= may * 0.98, "{passed} passed, {may} may");
}
