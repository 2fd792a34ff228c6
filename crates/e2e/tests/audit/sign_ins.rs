//! The pages and routes of the gateway's own authorization server, and those of sign-ins at backends, leave
//! records: who signed in, from where, with which client, and what came of it.

use crate::refusals::told;
use crate::{VERSION, log_of, records};
use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::{HttpAnswer, HttpClient};
use signalbox_testkit::ports::free_address;
use signalbox_testkit::process::built;
use signalbox_testkit::protected_server::{Demands, ProtectedServer};
use signalbox_testkit::scene::{child, eventually, signalbox};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

const PASSWORD: &str = "made-up correct horse";
const BACK: &str = "http://127.0.0.1:9/callback";
/// The verifier of RFC 7636, and its challenge.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// A program at one gateway, which is its own browser.
struct Browser {
    http: HttpClient,
    resource: String,
    client: String,
}

impl Browser {
    async fn new(gateway: &GatewayProcess) -> Self {
        let (http, resource) = (HttpClient::new(gateway.address()), gateway.url());
        let body = json!({"client_name": "Visitor", "redirect_uris": [BACK]}).to_string();
        let registered = http.send(Method::POST, "/auth/register", Bytes::from(body)).await.unwrap();
        assert_eq!(registered.status, 201, "{registered:?}");
        let client = document(&registered)["client_id"].as_str().unwrap().to_owned();
        Self { http, resource, client }
    }

    async fn form(&self, path: &str, form: &str, cookie: &str) -> HttpAnswer {
        let http = self.http.clone().with("content-type", "application/x-www-form-urlencoded").with("cookie", cookie);
        http.send(Method::POST, path, Bytes::copy_from_slice(form.as_bytes())).await.unwrap()
    }

    async fn open(&self, path: &str, cookie: &str) -> HttpAnswer {
        self.http.clone().with("cookie", cookie).get(path).await.unwrap()
    }

    async fn authorize(&self) -> HttpAnswer {
        let (client, resource) = (&self.client, &self.resource);
        let path = format!(
            "/auth/authorize?response_type=code&client_id={client}&redirect_uri={BACK}&state=st&scope=mcp\
             &code_challenge={CHALLENGE}&code_challenge_method=S256&resource={resource}"
        );
        self.open(&path, "").await
    }

    /// Gives a name and a password to a page that asks for them: the next page, the ticket and the cookie.
    async fn sign_in(&self, page: &HttpAnswer, user: &str, password: &str) -> (HttpAnswer, String, String) {
        let cookie = cookie(page);
        let html = String::from_utf8(page.body.to_vec()).unwrap();
        let ticket = html.split("name=\"ticket\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
        let form = format!("ticket={ticket}&user={user}&password={}", password.replace(' ', "+"));
        (self.form("/auth/sign-in", &form, &cookie).await, ticket, cookie)
    }

    /// The answer to a person who signs in and then says this.
    async fn consent(&self, answer: &str) -> HttpAnswer {
        let (_, ticket, cookie) = self.sign_in(&self.authorize().await, "ada", PASSWORD).await;
        self.form("/auth/consent", &format!("ticket={ticket}&answer={answer}"), &cookie).await
    }

    async fn redeem(&self, code: &str) -> HttpAnswer {
        let (client, resource) = (&self.client, &self.resource);
        let form = format!(
            "grant_type=authorization_code&client_id={client}&code={code}&code_verifier={VERIFIER}&redirect_uri={BACK}&resource={resource}"
        );
        self.form("/auth/token", &form, "").await
    }
}

fn header<'a>(answer: &'a HttpAnswer, name: &str) -> &'a str {
    answer.headers.get(name).unwrap_or_else(|| panic!("no {name}: {answer:?}")).to_str().unwrap()
}

fn cookie(page: &HttpAnswer) -> String {
    header(page, "set-cookie").split(';').next().unwrap().to_owned()
}

fn document(answer: &HttpAnswer) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{answer:?}"))
}

fn add_user(data: &Path, name: &str) {
    let mut command = Command::new(built("signalbox").unwrap());
    command.args(["users", "add", name, "--data-dir"]).arg(data).current_dir(data);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("{PASSWORD}\n").as_bytes()).unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
}

/// A gateway with an audit log, an authorization server and the users `ada` and `eve`.
async fn gateway(more: &str) -> GatewayProcess {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    ["ada", "eve"].iter().for_each(|name| add_user(&data, name));
    let text = format!(
        "[mcp.protocol.audit]\nenabled = true\n[mcp.protocol.security]\nrequire_authentication = true\n\
         [auth.server]\nenabled = true\n{more}\n{}",
        child("one", ServedEra::Both, "").unwrap()
    );
    let gateway = GatewayProcess::serve_at(free_address().unwrap(), folder, &text).await.unwrap();
    gateway.ready().await.unwrap();
    gateway
}

/// Returns the status, principal and client of each record of this action, after the gateway has ended.
fn acts(all: &[Value], action: &str) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let of = |one: &Value| {
        let details = &one["details"];
        assert!(one["user_context"]["address"].as_str().is_some_and(|at| at.starts_with("127.0.0.1:")), "{one}");
        (text(&details["status"]), text(&one["user_context"]["principal"]), text(&details["after"]["client"]))
    };
    all.iter().filter(|one| one["details"]["action"] == action).map(of).collect()
}

/// The records of refusals at this step.
fn refused<'a>(all: &'a [Value], action: &str) -> Vec<&'a Value> {
    let fits = |one: &&Value| one["details"]["error"].as_str().is_some_and(|error| error.starts_with(action));
    all.iter().filter(fits).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_step_of_a_sign_in_and_of_its_tokens_is_in_the_log() {
    let gateway = gateway("").await;
    let browser = Browser::new(&gateway).await;
    let secret_guess = "a guess that is nobody's";
    let (wrong, ..) = browser.sign_in(&browser.authorize().await, "ada", secret_guess).await;
    assert_eq!(wrong.status, 401);
    let (nobody, ..) = browser.sign_in(&browser.authorize().await, "mistyped-password", "x").await;
    assert_eq!(nobody.status, 401);
    assert_eq!(browser.consent("deny").await.status, 303);
    let allowed = browser.consent("allow").await;
    let code = header(&allowed, "location").split("code=").nth(1).unwrap().split('&').next().unwrap().to_owned();
    let tokens = document(&browser.redeem(&code).await);
    let refresh = tokens["refresh_token"].as_str().unwrap().to_owned();
    let form = format!("grant_type=refresh_token&client_id={}&refresh_token={refresh}", browser.client);
    let next = document(&browser.form("/auth/token", &form, "").await);
    let next = next["refresh_token"].as_str().unwrap().to_owned();
    let revoke = async |token: &str, client: &str| {
        browser.form("/auth/revoke", &format!("token={token}&client_id={client}"), "").await.status
    };
    assert_eq!(revoke(&next, "another").await, 400);
    assert_eq!(revoke(&next, &browser.client).await, 200);
    assert_eq!(revoke("guess", &browser.client).await, 200);
    assert_eq!(browser.redeem("guess").await.status, 400);
    assert_eq!(browser.form("/auth/consent", "ticket=guess&answer=allow", "").await.status, 400);
    assert_eq!(browser.http.send(Method::POST, "/auth/register", Bytes::from("{}")).await.unwrap().status, 400);
    assert_eq!(browser.open("/auth/authorize?client_id=guess", "").await.status, 400);

    let folder = gateway.terminate().await.unwrap();
    let all = records(&log_of(folder.path()));
    let by_ada = |status: &str| (status.to_owned(), "user:ada".to_owned(), browser.client.clone());
    let anonymous = &acts(&all, "client.register")[0];
    assert_eq!((anonymous.0.as_str(), &anonymous.2), ("success", &browser.client), "{anonymous:?}");
    assert_eq!(acts(&all, "sign_in.password"), [by_ada("success"), by_ada("success")]);
    assert_eq!(acts(&all, "sign_in.consent"), [by_ada("denied"), by_ada("success")]);
    assert_eq!(acts(&all, "token.issue"), [by_ada("success"), by_ada("success")]);
    assert_eq!(acts(&all, "token.revoke"), [by_ada("success")]);
    for (action, count) in [
        ("sign_in.password", 2),
        ("sign_in.consent", 1),
        ("sign_in.begin", 1),
        ("token.issue", 1),
        ("token.revoke", 2),
        ("client.register", 1),
    ] {
        assert_eq!(told(&refused(&all, action)), count, "{action}: {all:#?}");
    }
    let wrong = refused(&all, "sign_in.password");
    assert!(wrong.iter().all(|one| one["details"]["violation"] == "authentication_failed"), "{wrong:#?}");
    assert!(
        wrong[0].to_string().contains("user:ada") && wrong[0].to_string().contains(&browser.client),
        "{}",
        wrong[0]
    );
    assert_eq!(refused(&all, "token.issue")[0]["details"]["violation"], "authentication_failed");
    let text = std::fs::read_to_string(log_of(folder.path())).unwrap();
    let access = tokens["access_token"].as_str().unwrap();
    // What was typed in vain as a name may be a password.
    for secret in [PASSWORD, secret_guess, "mistyped-password", &code, &refresh, &next, access] {
        assert!(!text.contains(secret), "{secret}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_wrong_passwords_leaves_few_records() {
    const GUESSES: usize = 60;
    let gateway = gateway("").await;
    let browser = Browser::new(&gateway).await;
    let page = browser.authorize().await;
    let mut throttled = 0;
    for _ in 0..GUESSES {
        let (answer, ..) = browser.sign_in(&page, "ada", "wrong").await;
        throttled += usize::from(answer.status == 429);
    }
    let folder = gateway.terminate().await.unwrap();
    let all = records(&log_of(folder.path()));
    let wrong = refused(&all, "sign_in.password");
    assert_eq!(told(&wrong), GUESSES, "{wrong:#?}");
    let limited: Vec<&Value> =
        wrong.iter().copied().filter(|one| one["details"]["violation"] == "rate_limit_exceeded").collect();
    assert!(throttled > 20 && told(&limited) == throttled, "{throttled}: {limited:#?}");
    assert!(limited.len() < throttled, "a flood is counted: {}", limited.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_at_a_backend_is_in_the_log() {
    let server = ProtectedServer::start(Demands::TokenForCalls, None).await.unwrap();
    let more = format!(
        "[auth.outbound]\nallow = ['127.0.0.1']\n[backends.safe]\nurl = '{}'\n\
         [backends.safe.auth]\ntype = 'oauth'\nper_user = true",
        server.url()
    );
    let gateway = gateway(&more).await;
    let (browser, base) = (Browser::new(&gateway).await, format!("http://{}", gateway.address()));
    let allowed = browser.consent("allow").await;
    let code = header(&allowed, "location").split("code=").nth(1).unwrap().split('&').next().unwrap().to_owned();
    let access = document(&browser.redeem(&code).await)["access_token"].as_str().unwrap().to_owned();
    let client = browser.http.clone().with("authorization", &format!("Bearer {access}"));
    let client = client.initialize(VERSION, json!({})).await.unwrap();
    let work = async || client.request(2, "tools/call", json!({"name": "safe__work", "arguments": {}})).await.unwrap();
    let asked = async || work().await["error"]["data"]["url"].as_str().map(str::to_owned);
    let url = eventually("the call asks for a sign-in", asked).await.unwrap();
    let path = url.strip_prefix(&base).unwrap();
    // Eve opens the address that was made for ada, and guesses another.
    let (_, _, eve) = browser.sign_in(&browser.open(path, "").await, "eve", PASSWORD).await;
    assert_eq!(browser.open(path, &eve).await.status, 403);
    assert_eq!(browser.open("/auth/connect/guess", "").await.status, 404);
    assert_eq!(browser.open("/auth/callback?state=guess&code=x", "").await.status, 400);
    let (_, _, ada) = browser.sign_in(&browser.open(path, "").await, "ada", PASSWORD).await;
    let sent = browser.open(path, &ada).await;
    let there: http::Uri = header(&sent, "location").parse().unwrap();
    let there_client = HttpClient::new(there.authority().unwrap().as_str().parse().unwrap());
    let granted = there_client.get(there.path_and_query().unwrap().as_str()).await.unwrap();
    let back = header(&granted, "location").strip_prefix(&base).unwrap().to_owned();
    assert_eq!(browser.open(&back, &eve).await.status, 403);
    assert_eq!(browser.open(&back, &format!("{ada}; {}", cookie(&sent))).await.status, 200);

    let folder = gateway.terminate().await.unwrap();
    let all = records(&log_of(folder.path()));
    let logins = acts(&all, "backend.login");
    assert!(matches!(&logins[..], [(status, who, _)] if status == "success" && who == "user:ada"), "{logins:?}");
    let login = all.iter().find(|one| one["details"]["action"] == "backend.login").unwrap();
    assert_eq!((&login["details"]["target"], &login["details"]["origin"]), (&json!("safe"), &json!("api")), "{login}");
    let stray = refused(&all, "GET /auth/connect");
    assert!(matches!(&stray[..], [one] if one["details"]["violation"] == "authentication_failed"), "{stray:#?}");
    let refused = refused(&all, "backend.login");
    assert_eq!(refused.len(), 3, "{refused:#?}");
    let denied = refused.iter().filter(|one| one["details"]["violation"] == "permission_denied");
    assert_eq!(denied.filter(|one| one.to_string().contains("user:ada")).count(), 2, "{refused:#?}");
    let text = std::fs::read_to_string(log_of(folder.path())).unwrap();
    let ticket = path.rsplit('/').next().unwrap();
    let code = back.split("code=").nth(1).unwrap().split('&').next().unwrap();
    for secret in server.tokens().iter().map(String::as_str).chain([ticket, code, &access]) {
        let line = text.lines().find(|line| line.contains(secret));
        assert!(line.is_none(), "{secret} is in {line:?}");
    }
}

/// A user who is switched off signs in no more, by any step that was left to it, and each attempt is in the log.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_is_switched_off_cannot_sign_in() {
    let gateway = gateway("").await;
    let browser = Browser::new(&gateway).await;
    let code = |answer: &HttpAnswer| {
        let (_, code) = header(answer, "location").split_once("code=")?;
        code.split('&').next().map(str::to_owned)
    };
    let tokens = document(&browser.redeem(&code(&browser.consent("allow").await).unwrap()).await);
    let unused = code(&browser.consent("allow").await).unwrap();
    let (_, ticket, waiting) = browser.sign_in(&browser.authorize().await, "ada", PASSWORD).await;
    signalbox(&gateway.data_dir(), &["switch", "kill", "--principal", "user:ada"]).await.unwrap();
    let page = async || {
        let (page, ..) = browser.sign_in(&browser.authorize().await, "ada", PASSWORD).await;
        (page.status == 403).then_some(page)
    };
    let page = eventually("the switch is known", page).await.unwrap();
    assert!(String::from_utf8_lossy(&page.body).contains("switched off"), "{page:?}");
    let consented = browser.form("/auth/consent", &format!("ticket={ticket}&answer=allow"), &waiting).await;
    assert!(code(&consented).is_none() && header(&consented, "location").contains("access_denied"), "{consented:?}");
    assert_eq!(browser.redeem(&unused).await.status, 400);
    let (id, refresh) = (&browser.client, tokens["refresh_token"].as_str().unwrap());
    let form = format!("grant_type=refresh_token&client_id={id}&refresh_token={refresh}");
    assert_eq!(browser.form("/auth/token", &form, "").await.status, 400);
    assert_eq!(browser.sign_in(&browser.authorize().await, "eve", PASSWORD).await.0.status, 200);

    let folder = gateway.terminate().await.unwrap();
    let all = records(&log_of(folder.path()));
    let denied = |action: &str| {
        let acts = acts(&all, action);
        acts.iter().filter(|(status, who, _)| status == "denied" && who == "user:ada").count()
    };
    assert!(denied("sign_in.password") > 0, "{all:#?}");
    assert_eq!((denied("sign_in.consent"), denied("token.issue")), (1, 2), "{all:#?}");
}
