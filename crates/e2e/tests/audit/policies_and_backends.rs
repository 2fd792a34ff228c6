//! Refusals by scopes, policies, switches and breakers, and calls of backends that are down or
//! inside the process, by every way in.

use crate::refusals::{Person, Way, about};
use crate::{log_of, of_phase, records, search};
use http::Method;
use serde_json::{Value, json};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::frail_server::{FrailServer, Mood, Speaks};
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::scene::{child, eventually, remote, signalbox};

const POLICIES: &str = r#"
[mcp.protocol.security]
require_authentication = true
[mcp.protocol.audit]
enabled = true
[permissions]
policies = "policies"
[kill_switch]
quarantine = ["one/big"]
[roles.user]
allow = ["one/*", "frail/*", "gone/*"]
[auth.users.'key:ada']
roles = ["user"]
[auth.users.'key:dora']
roles = ["user"]
[auth.scopes]
'greet:use' = ['one/greet']
[backends.tapes]
builtin = "tapes"
"#;

const CEDAR: &str = "@id(\"all\") permit(principal, action, resource);\n@id(\"not seven\")\n\
    forbid(principal, action == Action::\"call\", resource == Tool::\"one/slow\") when { context.arguments.ms == 7 };";

/// A call that is refused: the name that its caller writes, its backend, its own name, its arguments, and its record.
struct Refused {
    who: &'static str,
    exposed: &'static str,
    tool: &'static str,
    arguments: Value,
    status: &'static str,
    violation: Option<&'static str>,
}

fn refused(who: &'static str, exposed: &'static str, status: &'static str, violation: Option<&'static str>) -> Refused {
    let tool = exposed.rsplit("__").next().unwrap_or(exposed);
    Refused { who, exposed, tool, arguments: json!({}), status, violation }
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_and_backends_leave_their_records_by_every_way() {
    let frail = FrailServer::start("frail", Speaks::Old).await.unwrap();
    let gone = FrailServer::start("gone", Speaks::Old).await.unwrap();
    let backends = [
        child("one", ServedEra::Old, "").unwrap(),
        remote("frail", &frail.address().to_string(), "era = \"old\"\nbreaker = { failures = 1, recovery = 600 }\n"),
        remote("gone", &gone.address().to_string(), "era = \"old\"\nbreaker = { failures = 1000 }\ntimeout = \"1s\"\n"),
    ];
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("policies")).unwrap();
    std::fs::write(folder.path().join("policies/a.cedar"), CEDAR).unwrap();
    let gateway = GatewayProcess::serve_in(folder, &format!("{POLICIES}{}", backends.concat())).await.unwrap();
    gateway.ready().await.unwrap();
    let people = [
        ("key:ada", Person::new(&gateway, "ada", &[]).await),
        ("key:dora", Person::new(&gateway, "dora", &["--scope", "other"]).await),
    ];
    let ada = &people[0].1;
    for tool in ["frail__run", "gone__run"] {
        let first = ada.session.request(1, "tools/call", json!({"name": tool, "arguments": {}})).await.unwrap();
        assert!(first["result"].is_object(), "{first}");
    }
    frail.calls(Mood::Status(500));
    drop(gone);
    ada.call(Way::Plain, "frail__run", &json!({})).await;
    let all = [
        Refused {
            arguments: json!({"name": "Ada"}),
            ..refused("key:dora", "greet", "denied", Some("permission_denied"))
        },
        Refused { arguments: json!({"ms": 7}), ..refused("key:ada", "slow", "denied", Some("permission_denied")) },
        Refused { arguments: json!({"bytes": 1}), ..refused("key:ada", "big", "killed", Some("policy_violation")) },
        refused("key:ada", "frail__run", "circuit_open", None),
        refused("key:ada", "gone__run", "error", None),
        refused("key:ada", "tapes_search", "denied", Some("permission_denied")),
    ];
    for way in Way::ALL {
        for one in &all {
            let (_, person) = people.iter().find(|(who, _)| *who == one.who).unwrap();
            person.call(way, one.exposed, &one.arguments).await;
        }
    }
    let folder = gateway.terminate().await.unwrap();
    let log = records(&log_of(folder.path()));
    for Refused { who, tool, status, violation, exposed, .. } in all {
        let own: Vec<Value> = about(&log, tool)
            .into_iter()
            .filter(|record| record["user_context"]["principal"] == who)
            .filter(|record| tool != "run" || exposed.starts_with(record["details"]["backend"].as_str().unwrap_or("-")))
            .cloned()
            .collect();
        let ends = of_phase(&own, "outcome").filter(|record| record["details"]["status"] == status).count();
        // The failure that opened the breaker is an error.
        assert_eq!(ends, Way::ALL.len(), "{who} {exposed}: {own:#?}");
        let violations = own.iter().filter(|record| record["event_type"] == "security_violation");
        let kinds: Vec<&Value> = violations.map(|record| &record["details"]["violation"]).collect();
        assert_eq!(kinds.len(), if violation.is_some() { Way::ALL.len() } else { 0 }, "{who} {exposed}: {own:#?}");
        assert!(kinds.iter().all(|kind| **kind == violation.unwrap_or_default()), "{who} {exposed}: {kinds:?}");
    }
}

/// A caller that is switched off and has no role is recorded as killed by every way: switches come before permissions.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_is_off_is_recorded_as_killed_without_a_role_too() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("policies")).unwrap();
    std::fs::write(folder.path().join("policies/a.cedar"), CEDAR).unwrap();
    let text = format!("{POLICIES}{}", child("one", ServedEra::Old, "").unwrap());
    let gateway = GatewayProcess::serve_in(folder, &text).await.unwrap();
    gateway.ready().await.unwrap();
    let eve = Person::new(&gateway, "eve", &[]).await;
    signalbox(&gateway.data_dir(), &["switch", "kill", "--principal", "key:eve"]).await.unwrap();
    for way in Way::ALL {
        eve.call(way, "greet", &json!({"name": "Ada"})).await;
    }
    let folder = gateway.terminate().await.unwrap();
    let log = records(&log_of(folder.path()));
    let own: Vec<Value> = about(&log, "greet").into_iter().cloned().collect();
    let killed = of_phase(&own, "outcome").filter(|record| record["details"]["status"] == "killed").count();
    assert_eq!(killed, Way::ALL.len(), "{own:#?}");
    assert!(own.iter().all(|record| record["details"]["reason"] != "hidden"), "{own:#?}");
}

/// The relay's MCP endpoint and its legacy route, for each reason.
#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_the_relay_by_both_routes_leave_records() {
    let user = "[auth.users.'key:ada']\nroles = ['user']\n[roles.user]\nallow = ['relay/*']\n";
    let forbid = "permit(principal, action, resource);\n\
        forbid(principal, action == Action::\"call\", resource == Tool::\"relay/get_items\");";
    let reasons = [
        ("[auth.users.'key:ada']\nroles = ['user']\n[roles.user]\nallow = ['one/greet']\n", "", "permission_denied"),
        (user, forbid, "permission_denied"),
        ("[kill_switch]\ntools = ['relay/get_items']\n", "", "policy_violation"),
        ("[kill_switch]\nprincipals = ['key:ada']\n", "", "policy_violation"),
        (
            "[[rules]]\nid = 'no'\nwhen = { tool = 'get_items' }\nthen = [{ block = 'nobody gets' }]\n",
            "",
            "policy_violation",
        ),
        ("[limits.'relay/get_items']\ncalls_per_day = 1\n", "", "rate_limit_exceeded"),
    ];
    for (settings, policy, violation) in reasons {
        let records = refused_by_relay(settings, policy).await;
        for one in records {
            assert_eq!(
                (&one["details"]["violation"], &one["user_context"]["principal"]),
                (&json!(violation), &json!("key:ada")),
                "{settings} {policy}: {one:#}"
            );
        }
    }
}

/// The violations that two refused calls of a page's tool leave, one of each kind of route.
async fn refused_by_relay(settings: &str, policy: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let mut text = format!(
        "[mcp.protocol.security]\nrequire_authentication = true\n[mcp.protocol.audit]\nenabled = true\n\
         [relay]\nenabled = true\n{settings}{}",
        child("one", ServedEra::Old, "").unwrap()
    );
    if !policy.is_empty() {
        std::fs::create_dir(folder.path().join("policies")).unwrap();
        std::fs::write(folder.path().join("policies/a.cedar"), policy).unwrap();
        text.push_str("[permissions]\npolicies = \"policies\"\n");
    }
    let gateway = GatewayProcess::serve_in(folder, &text).await.unwrap();
    gateway.ready().await.unwrap();
    let key = signalbox(&gateway.data_dir(), &["keys", "new", "ada"]).await.unwrap();
    let http = HttpClient::new(gateway.address())
        .with("authorization", &format!("Bearer {}", key.trim()))
        .with("content-type", "application/json");
    let made = async || http.send(Method::POST, "/api/sessions", "{}".into()).await.ok().filter(|it| it.status == 201);
    let made = eventually("the key is known", made).await.unwrap();
    let code = made.message().unwrap()["sessionCode"].as_str().unwrap_or("AAAAAAAA").to_owned();
    let ask = json!({"sessionCode": code, "tool": "get_items", "arguments": {"dataContextName": "a"}}).to_string();
    if settings.contains("calls_per_day") {
        // The one call that is allowed waits for a page.
        let first = http.send(Method::POST, "/api/request", ask.clone().into()).await.unwrap();
        assert_eq!(first.status, 202, "{first:?}");
        // It is counted when it is judged, and recorded after that.
        search(&gateway, &["--tool", "*get_items"], 1).await;
    }
    let params = json!({"name": "get_items", "arguments": {"sessionCode": code, "dataContextName": "a"},
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}});
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).to_string();
    let client = http.clone().with("mcp-protocol-version", "2026-07-28").with("mcp-method", "tools/call");
    let by_mcp = client.with("mcp-name", "get_items").send(Method::POST, "/api/mcp", message.into()).await.unwrap();
    assert!(by_mcp.message().unwrap()["error"].is_object(), "{settings}: {by_mcp:?}");
    let by_rest = http.send(Method::POST, "/api/request", ask.into()).await.unwrap();
    // It is queued, and judged then.
    assert_eq!(by_rest.status, 202, "{settings}: {by_rest:?}");
    search(&gateway, &["--type", "security_violation", "--tool", "*get_items"], 2).await
}
