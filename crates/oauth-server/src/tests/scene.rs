//! A server with its clock, a browser with its cookies, and what they say to each other.

use crate::*;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use signalbox_engine::resource_address::ResourceAddress;
use signalbox_oauth_client::{form, pkce};
use std::cell::Cell;
use std::net::IpAddr;
use std::time::Duration;

pub(super) const ISSUER: &str = "https://box.example";
pub(super) const RESOURCE: &str = "https://box.example/mcp";
pub(super) const BACK: &str = "http://127.0.0.1:3000/callback";
pub(super) const DOCUMENT: &str = "https://editor.example/client.json";
pub(super) const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
pub(super) const PASSWORD: &str = "correct horse";

pub(super) fn settings() -> ServerSettings {
    ServerSettings {
        issuer: ISSUER.to_owned(),
        resource: ResourceAddress::fixed(RESOURCE),
        scopes: vec!["mcp".to_owned(), "files:write".to_owned()],
        default_scopes: vec!["mcp".to_owned()],
        registration: true,
        client_documents: true,
        access_lifetime: Duration::from_secs(600),
        refresh_lifetime: Duration::from_secs(3_600),
        provider: None,
    }
}

pub(super) fn users() -> LocalUsers {
    let mut users = LocalUsers::default();
    users.set("ada", PASSWORD, &[3; 16], 0).unwrap();
    users
}

/// A server with its clock, and a browser with its cookies.
pub(super) struct Scene {
    pub(super) server: AuthorizationServer,
    pub(super) now: Cell<u64>,
    pub(super) seed: Cell<u32>,
    pub(super) cookies: String,
    /// True while the user `ada` is switched off.
    pub(super) off: Cell<bool>,
}

impl Scene {
    pub(super) fn new() -> Self {
        Self::with(settings(), "")
    }

    pub(super) fn with(settings: ServerSettings, stored: &str) -> Self {
        Self::started(settings, stored, users())
    }

    /// A process that starts with these users and with what the one before has kept.
    pub(super) fn started(settings: ServerSettings, stored: &str, users: LocalUsers) -> Self {
        let signer = TokenSigner::new(&[7; 32]).unwrap();
        let server = AuthorizationServer::new(settings, signer, stored, users).unwrap();
        Self {
            server,
            now: Cell::new(1_700_000_000_000),
            seed: Cell::new(0),
            cookies: String::new(),
            off: Cell::new(false),
        }
    }

    pub(super) fn moment(&self) -> Moment {
        self.seed.set(self.seed.get().wrapping_add(1));
        let mut seed = [0; 32];
        seed[..4].copy_from_slice(&self.seed.get().to_be_bytes());
        Moment::new(self.now.get(), seed)
    }

    fn is_off(&self) -> impl Fn(&str) -> bool + Sync + use<> {
        let off = self.off.get();
        move |name| off && name == "ada"
    }

    pub(super) fn pass(&self, seconds: u64) {
        self.now.set(self.now.get() + seconds * 1_000);
    }

    pub(super) fn register(&self, redirects: &[&str]) -> Reply {
        let body =
            json!({"client_name": "Editor <b>", "redirect_uris": redirects, "token_endpoint_auth_method": "none"});
        self.server.register(body.to_string().as_bytes(), None, &self.moment())
    }

    pub(super) fn client(&self) -> String {
        let reply = self.register(&[BACK]);
        assert_eq!(reply.status, 201, "{reply:?}");
        json_of(&reply)["client_id"].as_str().unwrap().to_owned()
    }

    /// The request of a client, with some parameters changed; an empty value leaves one out.
    pub(super) fn ask(&self, client: &str, changed: &[(&str, &str)]) -> Authorize {
        let challenge = pkce::challenge(VERIFIER);
        let mut pairs = vec![
            ("response_type", "code"),
            ("client_id", client),
            ("redirect_uri", BACK),
            ("state", "s &1"),
            ("scope", "mcp files:write unknown"),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", RESOURCE),
        ];
        for (name, value) in changed {
            pairs.retain(|(known, _)| known != name);
            pairs.push((name, value));
        }
        pairs.retain(|(_, value)| !value.is_empty());
        self.server.authorize(&form::write(&pairs), Some(HERE), &self.moment())
    }

    pub(super) fn asked(&self, client: &str, changed: &[(&str, &str)]) -> Reply {
        match self.ask(client, changed) {
            Authorize::Reply(reply) => reply,
            Authorize::Document(url) => panic!("wants {url}"),
        }
    }

    /// Opens the first page in the browser and returns its ticket.
    pub(super) fn begin(&mut self, client: &str) -> String {
        let reply = self.asked(client, &[]);
        assert_eq!(reply.status, 200, "{reply:?}");
        let cookie = reply.header("set-cookie").unwrap();
        self.cookies = cookie.split(';').next().unwrap().to_owned();
        ticket(&reply)
    }

    pub(super) fn sign_in(&self, ticket: &str, user: &str, password: &str) -> Reply {
        self.sign_in_from(HERE, ticket, user, password)
    }

    pub(super) fn sign_in_from(&self, address: IpAddr, ticket: &str, user: &str, password: &str) -> Reply {
        let form = form::write(&[("ticket", ticket), ("user", user), ("password", password)]);
        match self.server.sign_in(&form, &self.cookies, Some(address), &self.moment()) {
            SignInStep::Reply(reply) => reply,
            SignInStep::Check(check) => {
                let is_good = check.check.is_good();
                self.server.checked(&check, is_good, &self.is_off(), self.now.get())
            }
        }
    }

    pub(super) fn consent(&self, ticket: &str, answer: &str) -> Reply {
        let form = form::write(&[("ticket", ticket), ("answer", answer)]);
        match self.server.consent(&form, &self.cookies, &self.is_off(), &self.moment()) {
            ConsentOutcome::Reply(reply) => reply,
            ConsentOutcome::Forward(ticket) => panic!("forwards {ticket}"),
        }
    }

    /// The whole way to a code.
    pub(super) fn code(&mut self, client: &str) -> String {
        let ticket = self.begin(client);
        assert_eq!(self.sign_in(&ticket, "ada", PASSWORD).status, 200);
        let reply = self.consent(&ticket, "allow");
        query_of(&reply, "code").unwrap_or_else(|| panic!("{reply:?}"))
    }

    pub(super) fn redeem(&self, client: &str, code: &str, changed: &[(&str, &str)]) -> Reply {
        let mut pairs = vec![
            ("grant_type", "authorization_code"),
            ("client_id", client),
            ("code", code),
            ("redirect_uri", BACK),
            ("code_verifier", VERIFIER),
            ("resource", RESOURCE),
        ];
        for (name, value) in changed {
            pairs.retain(|(known, _)| known != name);
            pairs.push((name, value));
        }
        pairs.retain(|(_, value)| !value.is_empty());
        self.server.token(&form::write(&pairs), &self.is_off(), &self.moment())
    }

    pub(super) fn refresh(&self, client: &str, token: &str) -> Reply {
        let pairs = [("grant_type", "refresh_token"), ("client_id", client), ("refresh_token", token)];
        self.server.token(&form::write(&pairs), &self.is_off(), &self.moment())
    }

    /// Access and refresh token of a new grant.
    pub(super) fn tokens(&mut self, client: &str) -> (String, String) {
        let code = self.code(client);
        pair_of(&self.redeem(client, &code, &[]))
    }
}

pub(super) const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

pub(super) fn json_of(reply: &Reply) -> Value {
    serde_json::from_str(&reply.body).unwrap_or_else(|_| panic!("{reply:?}"))
}

pub(super) fn pair_of(reply: &Reply) -> (String, String) {
    assert_eq!(reply.status, 200, "{reply:?}");
    let text = |name: &str| json_of(reply)[name].as_str().unwrap().to_owned();
    (text("access_token"), text("refresh_token"))
}

pub(super) fn claims(token: &str) -> Value {
    let part = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

pub(super) fn error_of(reply: &Reply) -> String {
    assert_eq!(reply.status, 400, "{reply:?}");
    json_of(reply)["error"].as_str().unwrap().to_owned()
}

pub(super) fn query_of(reply: &Reply, name: &str) -> Option<String> {
    let location = reply.header("location")?;
    let (_, query) = location.split_once('?')?;
    form::read(query)?.into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

pub(super) fn ticket(reply: &Reply) -> String {
    let (_, rest) = reply.body.split_once("name=\"ticket\" value=\"").unwrap_or_else(|| panic!("{reply:?}"));
    rest.split('"').next().unwrap().to_owned()
}
