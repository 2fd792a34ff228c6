//! The server: its state, its clients, and the authorization endpoint.

use crate::access_token::TokenSigner;
use crate::attempts::Attempts;
use crate::authorization_request::{AuthorizationRequest, Parameters};
use crate::client::Client;
use crate::event::AuthEvent;
use crate::grants::StoredState;
use crate::moment::Moment;
use crate::password::LocalUsers;
use crate::reply::{OauthRefusal, Reply};
use crate::settings::ServerSettings;
use crate::sign_in::SignIns;
use crate::tokens::Codes;
use crate::{metadata, pages};
use core::net::IpAddr;
use serde_json::{Value, json};
use signalbox_engine::bounded::make_room;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::rate::address_key;
use signalbox_oauth_client::client_identity::is_client_metadata_url;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

/// Lifetime of a cached metadata document, in milliseconds.
const DOCUMENT_LIFETIME: u64 = 5 * 60 * 1_000;
/// Maximum number of cached metadata documents.
const MAX_DOCUMENTS: usize = 200;
/// Maximum size of a metadata document, in bytes.
pub const MAX_DOCUMENT: usize = 16 * 1024;

/// Error for a client's metadata document.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DocumentError {
    /// The request for it failed.
    #[error("{0}")]
    Unreachable(String),
    /// The response has another status than 200.
    #[error("it is answered with status {0}")]
    Status(u16),
    /// The document does not describe a valid client.
    #[error("{}", .0.why)]
    Malformed(#[from] OauthRefusal),
}

/// Error for a malformed state file.
#[derive(Debug, thiserror::Error)]
#[error("what the authorization server has kept is damaged: {0}")]
pub struct ServerStateError(#[from] serde_json::Error);

/// Outcome of an authorization request.
#[derive(Debug)]
pub enum Authorize {
    /// The reply to send.
    Reply(Reply),
    /// The metadata document at this URL is needed first: call [`AuthorizationServer::learn`], then repeat the request.
    Document(String),
}

/// Authorization server of the gateway.
#[derive(Debug)]
pub struct AuthorizationServer {
    pub(crate) settings: ServerSettings,
    signer: RwLock<Arc<TokenSigner>>,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub stored: StoredState,
    pub unsaved: bool,
    pub users: LocalUsers,
    /// Issuer of the trusted provider.
    pub provider: Option<String>,
    pub codes: Codes,
    pub sign_ins: SignIns,
    documents: HashMap<String, (u64, Result<Client, DocumentError>)>,
    registrations: Attempts,
    fetches: Attempts,
}

impl AuthorizationServer {
    /// Creates a server from its stored state; an empty text starts a new one. Ends the grants of users who have left
    /// meanwhile.
    ///
    /// # Errors
    /// If the state is malformed.
    pub fn new(
        settings: ServerSettings,
        signer: TokenSigner,
        stored: &str,
        users: LocalUsers,
    ) -> Result<Self, ServerStateError> {
        let mut stored: StoredState =
            if stored.is_empty() { StoredState::default() } else { serde_json::from_str(stored)? };
        let provider = settings.provider.as_ref().map(|provider| provider.issuer.clone());
        let ended = stored.end_gone(&users, provider.as_deref());
        let inner = Inner {
            stored,
            unsaved: ended > 0,
            users,
            provider,
            codes: Codes::default(),
            sign_ins: SignIns::default(),
            documents: HashMap::new(),
            registrations: Attempts::new(20, 3_600),
            fetches: Attempts::new(30, 60),
        };
        Ok(Self { settings, signer: RwLock::new(Arc::new(signer)), inner: Mutex::new(inner) })
    }

    pub(crate) fn signer(&self) -> Arc<TokenSigner> {
        Arc::clone(&self.signer.read().unpoisoned())
    }

    /// Replaces the signing key.
    pub fn replace_signer(&self, signer: TokenSigner) {
        *self.signer.write().unpoisoned() = Arc::new(signer);
    }

    pub(crate) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unpoisoned()
    }

    /// Returns the settings of the server.
    #[must_use]
    pub fn settings(&self) -> &ServerSettings {
        &self.settings
    }

    /// Returns the metadata document of RFC 8414.
    #[must_use]
    pub fn metadata(&self) -> Reply {
        metadata::document(&self.settings)
    }

    /// Returns the public keys that verify its tokens.
    #[must_use]
    pub fn key_set(&self) -> Reply {
        Reply::document(&self.signer().key_set())
    }

    /// Returns the state to store, if it has changed since the last call.
    ///
    /// # Errors
    /// If it cannot be written as JSON.
    pub fn unsaved(&self) -> Result<Option<String>, ServerStateError> {
        let mut inner = self.inner();
        if !std::mem::take(&mut inner.unsaved) {
            return Ok(None);
        }
        Ok(Some(serde_json::to_string(&inner.stored)?))
    }

    /// Marks the state as unsaved again, after it could not be stored.
    pub fn not_saved(&self) {
        self.inner().unsaved = true;
    }

    /// Returns the ids of revoked access tokens that have not expired, with their expiry.
    #[must_use]
    pub fn revoked(&self) -> Vec<(String, u64)> {
        self.inner().stored.revoked.iter().map(|(id, expires)| (id.clone(), *expires)).collect()
    }

    /// Returns true if there is a local user of this name.
    #[must_use]
    pub fn has_user(&self, name: &str) -> bool {
        self.inner().users.knows(name)
    }

    /// Replaces the users. Ends the grants of accounts that no longer exist. Returns the number of grants and the names
    /// of these accounts.
    pub fn replace_users(&self, users: LocalUsers) -> (usize, Vec<String>) {
        let mut inner = self.inner();
        let Inner { stored, provider, .. } = &mut *inner;
        let ended = stored.end_gone(&users, provider.as_deref());
        inner.unsaved |= ended > 0;
        let before = std::mem::replace(&mut inner.users, users);
        let names = before.iter().map(|(name, _)| name);
        let gone = names.filter(|name| before.account(name) != inner.users.account(name));
        let people = inner.users.ended_people().filter(|name| before.ended(name) != inner.users.ended(name));
        (ended, gone.chain(people).map(str::to_owned).collect())
    }

    /// Stops trusting the provider that people signed in at, unless it has this issuer. Ends the grants of its people
    /// and returns their number.
    pub fn keep_provider(&self, issuer: Option<&str>) -> usize {
        let mut inner = self.inner();
        let Inner { stored, provider, users, .. } = &mut *inner;
        if provider.as_deref() != issuer {
            *provider = None;
        }
        let ended = stored.end_gone(users, provider.as_deref());
        inner.unsaved |= ended > 0;
        ended
    }

    /// Returns the creation time of a local user's account, in milliseconds since 1970.
    #[must_use]
    pub fn user_created(&self, name: &str) -> Option<u64> {
        self.inner().users.created(name)
    }

    /// Handles an authorization request.
    pub fn authorize(&self, query: &str, address: Option<IpAddr>, moment: &Moment) -> Authorize {
        let stop = |status, text: &str| Authorize::Reply(pages::stop(status, text));
        let Some(parameters) = Parameters::read(query) else {
            return stop(400, "The application sent a request that cannot be read.");
        };
        let Some(id) = parameters.get("client_id") else {
            return stop(400, "The application did not say which one it is.");
        };
        let mut inner = self.inner();
        let client = match inner.client(id, moment.now) {
            ClientLookup::Client(client) => client,
            ClientLookup::Unread | ClientLookup::Refused(_) if !self.settings.client_documents => {
                let text = "This application is known by the document at its address only, and such documents are not read here. \
                            Let it register itself, or ask who runs this gateway.";
                return stop(400, text);
            }
            ClientLookup::Unread if inner.fetches.admit(&address_key(address), moment.now) => {
                return Authorize::Document(id.to_owned());
            }
            ClientLookup::Unread => {
                return stop(429, "Too many applications were named from your network; try again in a minute.");
            }
            ClientLookup::Refused(why) => {
                return stop(
                    400,
                    &format!("What the application publishes about itself at {id} cannot be used: {why}."),
                );
            }
            ClientLookup::Unknown => {
                return stop(
                    400,
                    "This application is not known here. It may have to register again: sign out and in there.",
                );
            }
        };
        let asked = match AuthorizationRequest::read(&parameters, client, &self.settings) {
            Ok(asked) => asked,
            Err(reply) => return Authorize::Reply(*reply),
        };
        Authorize::Reply(inner.sign_ins.begin(asked, &self.settings, address, moment))
    }

    /// Caches the metadata document of a client, or the error of fetching it.
    pub fn learn(&self, url: &str, document: Result<&[u8], DocumentError>, now: u64) {
        let client = document.and_then(|document| Ok(read_document(url, document, now)?));
        let mut inner = self.inner();
        inner.documents.retain(|_, (read, _)| read.saturating_add(DOCUMENT_LIFETIME) > now);
        make_room(&mut inner.documents, MAX_DOCUMENTS, |(read, _)| *read);
        inner.documents.insert(url.to_owned(), (now, client));
    }

    /// Registers a client (RFC 7591).
    pub fn register(&self, body: &[u8], address: Option<IpAddr>, moment: &Moment) -> Reply {
        if !self.settings.registration {
            return Reply::refusal(403, OauthRefusal::new("access_denied", "clients cannot register themselves here"));
        }
        let mut inner = self.inner();
        if !inner.registrations.admit(&address_key(address), moment.now) || !inner.stored.room_for_client(moment.now) {
            let refusal =
                OauthRefusal::new("temporarily_unavailable", "too many clients have registered; try again later");
            return Reply::refusal(429, refusal).with("retry-after", "3600".to_owned());
        }
        let document: Option<Value> = serde_json::from_slice(body).ok().filter(Value::is_object);
        let malformed = OauthRefusal::new("invalid_client_metadata", "the body is not a JSON object");
        let client = document.ok_or(malformed).and_then(|document| Client::read(moment.draw(), &document, moment.now));
        match client {
            Err(refusal) => Reply::refusal(400, refusal),
            Ok(client) => {
                let about = json!({"name": client.name, "redirect_uris": client.redirect_uris});
                let event = AuthEvent { client: Some(client.id.clone()), about, ..AuthEvent::default() };
                let reply = registered(&client).with_event(event);
                inner.stored.clients.insert(client.id.clone(), client);
                inner.unsaved = true;
                reply
            }
        }
    }
}

/// Result of a client lookup.
enum ClientLookup {
    Client(Client),
    /// The metadata document has not been read yet.
    Unread,
    /// The metadata document is unusable.
    Refused(DocumentError),
    Unknown,
}

impl Inner {
    fn client(&self, id: &str, now: u64) -> ClientLookup {
        if let Some(client) = self.stored.clients.get(id) {
            return ClientLookup::Client(client.clone());
        }
        if !is_client_metadata_url(id) {
            return ClientLookup::Unknown;
        }
        match self.documents.get(id).filter(|(read, _)| read.saturating_add(DOCUMENT_LIFETIME) > now) {
            None => ClientLookup::Unread,
            Some((_, Ok(client))) => ClientLookup::Client(client.clone()),
            Some((_, Err(why))) => ClientLookup::Refused(why.clone()),
        }
    }
}

const UNREAD: OauthRefusal = OauthRefusal::new("invalid_client", "it is not JSON");

/// Parses a metadata document. Its `client_id` must be the URL it was read from, so that a publisher controls only its
/// own clients.
fn read_document(url: &str, document: &[u8], now: u64) -> Result<Client, OauthRefusal> {
    let bad = |why| OauthRefusal::new("invalid_client", why);
    if document.len() > MAX_DOCUMENT {
        return Err(bad("the client's metadata document is too large"));
    }
    let document: Value = serde_json::from_slice(document).map_err(|_| UNREAD)?;
    if document.get("client_id").and_then(Value::as_str) != Some(url) {
        return Err(bad("the client_id of the metadata document is not its address"));
    }
    if document.get("client_name").and_then(Value::as_str).is_none_or(str::is_empty) {
        return Err(bad("the metadata document has no client_name"));
    }
    let method = document.get("token_endpoint_auth_method").and_then(Value::as_str);
    if document.get("client_secret").is_some() || method.is_some_and(|method| method != "none") {
        return Err(bad("the client is not a public one"));
    }
    Client::read(url.to_owned(), &document, now)
}

fn registered(client: &Client) -> Reply {
    let document = json!({
        "client_id": client.id,
        "client_id_issued_at": client.created / 1_000,
        "client_name": client.name,
        "redirect_uris": client.redirect_uris,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    });
    Reply::json(201, &document)
}
