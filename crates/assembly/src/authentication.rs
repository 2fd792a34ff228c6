//! The ways in which callers prove who they are, as configured: the authenticators in their order, and the task that
//! keeps them up to date.
//!
//! ```text
//! keys.json, users.json, key sets ──(looked at before use, and twice a second)──► SharedKeys, TokenIssuer ◄── asked by the authenticators
//! reload ──► Directory: put in place at once; tokens of issuers that are gone are revoked, all else needs a restart
//! ```

mod key_source;

use crate::auth_file::FileStamp;
use crate::authorization::{AuthServerError, Authorization};
use crate::key_file::{KeyFile, KeyFileFault};
use crate::seal_folder::SealFolder;
use arc_swap::ArcSwap;
use key_source::KeySource;
use signalbox_config::{Auth, Config, Issuer, Member};
use signalbox_engine::authenticator::{Authenticator, Authenticators, LocalUser, Unproved};
use signalbox_engine::caller_tokens::CallerTokens;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::{Caller, Principal, Proof};
use signalbox_govern::directory::{Directory, Grant, Said};
use signalbox_govern::jwks::KeySetError;
use signalbox_govern::key_authenticator::Refresh;
use signalbox_govern::token_authenticator::{KeySupply, KeysWanted};
use signalbox_govern::{
    CertificateAuthenticator, CertificateRule, IssuerRules, KeyAuthenticator, ProtectedResource, SharedKeys,
    TokenAuthenticator, TokenIssuer,
};
use signalbox_oauth::outbound::Outbound;
use signalbox_runtime::Gateway;
use signalbox_runtime::clock::unix_millis;
use signalbox_seal::Role;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;

/// How often files of keys are looked at. A revoked key must end within a second.
const LOOK: Duration = Duration::from_millis(500);

/// Why authentication cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// The file of API keys cannot be used.
    #[error(transparent)]
    Keys(#[from] KeyFileFault),
    /// The keys of an issuer cannot be used.
    #[error("auth.jwt.{issuer}: {why}")]
    KeySet {
        /// The issuer.
        issuer: String,
        /// Why not.
        why: KeySetError,
    },
    /// The file with the keys of an issuer cannot be read.
    #[error("auth.jwt.{issuer}: {}: {why}", path.display())]
    File {
        /// The issuer.
        issuer: String,
        /// The file.
        path: PathBuf,
        /// What the system says.
        why: std::io::Error,
    },
    /// The gateway's own authorization server cannot be set up.
    #[error(transparent)]
    Server(#[from] AuthServerError),
}

/// How callers of one process prove who they are.
pub struct Authentication {
    authenticators: Authenticators,
    directory: Arc<ArcSwap<Directory>>,
    key_store: Arc<KeyStore>,
    issuers: Arc<[KeySource]>,
    tokens: Option<Arc<TokenAuthenticator>>,
    resource: Option<Arc<ProtectedResource>>,
    server: Option<Arc<Authorization>>,
    outbound: Outbound,
    required: bool,
}

impl Authentication {
    /// Sets it up for clients that know the MCP endpoint by this address. Callers without a proof are `anonymous`,
    /// where the configuration lets them in at all.
    ///
    /// # Errors
    /// If keys cannot be read.
    pub fn load(
        config: &Config,
        data_dir: &Path,
        url: &str,
        anonymous: Principal,
        callers: Arc<CallerTokens>,
    ) -> Result<Self, AuthError> {
        let auth = &config.auth;
        let resource = auth.resource.clone().unwrap_or_else(|| url.to_owned());
        let directory = Arc::new(ArcSwap::from_pointee(directory(auth)));
        let key_store = KeyStore::load(KeyFile::of(data_dir))?;
        let issuers = auth.issuers.iter().map(|issuer| KeySource::load(issuer, rules(issuer, &resource)));
        let issuers: Arc<[KeySource]> = issuers.collect::<Result<Vec<_>, _>>()?.into();
        let sources = Arc::clone(&issuers);
        let supply: KeySupply = Box::new(move |issuer, wanted| {
            let source = sources.iter().find(|source| std::ptr::eq(&*source.issuer, issuer));
            // Tokens of a withdrawn key are revoked by the task that looks after credentials.
            match wanted {
                KeysWanted::BeforeUse => source.map(KeySource::refresh_now),
                KeysWanted::Unknown => source.map(KeySource::want),
            };
        });
        let server = auth.server.as_ref();
        let server =
            server.map(|server| Authorization::load(auth, server, data_dir, &resource, (&directory, &config.outbound)));
        let server = server.transpose()?.map(Arc::new);
        let mut all: Vec<Arc<TokenIssuer>> = issuers.iter().map(|source| Arc::clone(&source.issuer)).collect();
        all.extend(server.iter().map(|server| Arc::clone(server.issuer())));
        let tokens = (!all.is_empty()).then(|| {
            let tokens = TokenAuthenticator::new(all, Arc::clone(&directory), supply).keeping(callers);
            Arc::new(match &server {
                Some(server) => tokens.refreshed_by(look_at_users(server)),
                None => tokens,
            })
        });
        if let (Some(server), Some(tokens)) = (&server, &tokens) {
            server.verified_by(tokens);
        }
        let signatures = signatures(config, data_dir);
        let authenticators = order(auth, &key_store.keys, tokens.as_ref(), &directory, (anonymous, signatures));
        Ok(Self {
            authenticators,
            directory,
            key_store,
            issuers,
            tokens,
            resource: protected(auth, server.as_deref(), resource).map(Arc::new),
            server,
            outbound: config.outbound.clone(),
            required: auth.required,
        })
    }

    /// The authenticators in their order.
    #[must_use]
    pub fn authenticators(&self) -> &Authenticators {
        &self.authenticators
    }

    /// The MCP endpoint as a protected resource, if clients can get tokens for it.
    #[must_use]
    pub fn resource(&self) -> Option<&Arc<ProtectedResource>> {
        self.resource.as_ref()
    }

    /// The gateway's own authorization server, if it is on.
    #[must_use]
    pub fn server(&self) -> Option<&Arc<Authorization>> {
        self.server.as_ref()
    }

    /// Whether callers without a proof are refused.
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.required
    }

    /// Takes over what can change while the process runs: users, groups and their roles, and which issuers are trusted
    /// no more. Connections and streams end where the rights of their callers have changed.
    pub fn follow(&self, auth: &Auth, gateway: &Gateway) {
        self.remove_issuers(auth, gateway);
        let (before, next) = (self.directory.load_full(), Arc::new(directory(auth)));
        if before == next {
            return;
        }
        self.directory.store(Arc::clone(&next));
        self.key_store.keys.forget_standings();
        if let Some(tokens) = &self.tokens {
            tokens.tokens().outdate();
        }
        let ended = gateway.end_changed(|caller| has_changed(caller, &before, &next));
        if ended > 0 {
            tracing::info!(
                sessions = ended,
                "ended what callers held open whose roles, groups, trust or resources have changed"
            );
        }
    }

    /// Revokes the tokens of issuers that the configuration has no more.
    fn remove_issuers(&self, auth: &Auth, gateway: &Gateway) {
        let Some(tokens) = &self.tokens else { return };
        let is_gone = |source: &&KeySource| !auth.issuers.iter().any(|issuer| issuer.name == source.issuer.rules.name);
        for source in self.issuers.iter().filter(is_gone).filter(|source| source.remove()) {
            let ended = tokens.withdraw_keys(&source.issuer);
            let sessions = gateway.end_lapsed(unix_millis());
            let issuer = &source.issuer.rules.name;
            tracing::info!(issuer, ended, sessions, "an issuer of tokens is trusted no more");
        }
    }

    /// Keeps the keys up to date, and ends what callers hold open whose credentials have ended, until the set is
    /// dropped. It sleeps while no caller has a credential that could end: keys are looked at before each use.
    #[must_use]
    pub fn keep_up(self: &Arc<Self>, gateway: &Arc<Gateway>) -> JoinSet<()> {
        let (this, gateway) = (Arc::clone(self), Arc::clone(gateway));
        let mut tasks = JoinSet::new();
        for at in 0..self.issuers.len() {
            let this = Arc::clone(self);
            tasks.spawn(async move {
                if let Some(source) = this.issuers.get(at) {
                    source.follow(&this.outbound).await;
                }
            });
        }
        tasks.spawn(async move {
            loop {
                if gateway.presence.is_empty() {
                    gateway.presence.noted().await;
                }
                tokio::time::sleep(LOOK).await;
                this.follow_files(&gateway).await;
            }
        });
        tasks
    }

    /// Reads keys and users again where their files have changed, and ends the streams of callers whose credentials
    /// have ended. Returns how many sessions that were.
    pub async fn follow_files(&self, gateway: &Gateway) -> usize {
        self.key_store.refresh();
        self.refresh_issuers();
        if let Some(server) = &self.server {
            server.refresh_users();
            for account in server.take_gone() {
                gateway.forget_account(&account);
            }
            server.renew_key();
            // A failure is logged, and tried again at the next look.
            server.save().await;
        }
        let ended = gateway.end_lapsed(unix_millis());
        if ended > 0 {
            tracing::info!(sessions = ended, "ended the streams of callers whose credentials have ended");
        }
        ended
    }

    /// Reads the keys of issuers again where their files have changed.
    fn refresh_issuers(&self) {
        let Some(tokens) = &self.tokens else { return };
        for source in self.issuers.iter().filter(|source| source.refresh()) {
            let ended = tokens.withdraw_keys(&source.issuer);
            tracing::info!(issuer = source.issuer.rules.name, ended, "read the keys of an issuer of tokens");
        }
    }
}

/// True if a proved caller has other rights by the second directory than by the first.
fn has_changed(caller: &Caller, before: &Directory, next: &Directory) -> bool {
    let identity = caller.identity();
    let groups =
        identity.standing.iter().flat_map(|standing| &standing.groups).map(|group| group.to_string()).collect();
    let said = Said { groups, ..Said::default() };
    let standing = |directory: &Directory| directory.standing(caller.principal().as_str(), said.clone(), None);
    !matches!(identity.proof, Proof::Unproved | Proof::Gateway) && standing(before) != standing(next)
}

/// Looks at the file of users before a token is honoured: the one who shows it may have been removed.
fn look_at_users(server: &Arc<Authorization>) -> Refresh {
    let server = Arc::downgrade(server);
    Box::new(move || {
        if let Some(server) = server.upgrade() {
            server.refresh_users();
        }
    })
}

/// The API keys of the process, and the file that they are read from again when it changes.
struct KeyStore {
    keys: Arc<SharedKeys>,
    file: KeyFile,
    stamp: Mutex<Option<FileStamp>>,
}

impl KeyStore {
    fn load(file: KeyFile) -> Result<Arc<Self>, AuthError> {
        let stamp = Mutex::new(file.stamp());
        let keys = Arc::new(SharedKeys::default());
        keys.replace(file.load()?, unix_millis());
        let this = Arc::new(Self { keys, file, stamp });
        let weak = Arc::downgrade(&this);
        this.keys.refresh_by(Box::new(move || {
            if let Some(this) = weak.upgrade() {
                this.refresh();
            }
        }));
        Ok(this)
    }

    /// Reads the file again if it has changed. One that cannot be read changes nothing.
    fn refresh(&self) {
        let mut stamp = self.stamp.lock().unpoisoned();
        let now = self.file.stamp();
        if *stamp == now {
            return;
        }
        *stamp = now;
        match self.file.load() {
            Ok(keys) => self.keys.replace(keys, unix_millis()),
            Err(error) => tracing::error!(%error, "keeping the API keys that were read before"),
        }
    }
}

/// The authenticators that are asked, in this order. Nobody is let in without a proof where one is required.
fn order(
    auth: &Auth,
    keys: &Arc<SharedKeys>,
    tokens: Option<&Arc<TokenAuthenticator>>,
    directory: &Arc<ArcSwap<Directory>>,
    (anonymous, signatures): (Principal, bool),
) -> Authenticators {
    let mut list: Vec<Arc<dyn Authenticator>> = Vec::new();
    for way in &auth.order {
        match way.as_str() {
            // Where nobody has to prove anything and there is no key, a header of another program is not looked at.
            "key" if auth.required || !keys.is_empty() => {
                list.push(Arc::new(KeyAuthenticator::new(Arc::clone(keys), Arc::clone(directory))));
            }
            "token" => list.extend(tokens.map(|tokens| Arc::clone(tokens) as Arc<dyn Authenticator>)),
            "certificate" => {
                let rules = auth.certificates.iter().map(certificate_rule).collect();
                list.push(Arc::new(CertificateAuthenticator::new(rules, Arc::clone(directory))));
            }
            "local" => list.push(Arc::new(LocalUser)),
            _ => {}
        }
    }
    match (auth.required, signatures) {
        (false, _) => list.push(Arc::new(Unproved(anonymous))),
        // The message itself has to prove it, in the second stage.
        (true, true) => list.push(Arc::new(Unproved(Principal::named("unproved")))),
        (true, false) => {}
    }
    Authenticators::new(list)
}

/// True if messages can prove who calls: the configuration says so, or a client's key is trusted at the start.
/// Otherwise nothing is read of callers without a credential.
fn signatures(config: &Config, data_dir: &Path) -> bool {
    let listed = config.auth.order.iter().any(|way| way == "signature");
    let trusted = || {
        let keys = SealFolder::of(data_dir).key_set();
        keys.is_ok_and(|keys| keys.iter().any(|key| key.roles.contains(&Role::Client)))
    };
    listed && (config.auth.order_given || trusted())
}

fn certificate_rule(name: &signalbox_config::CertificateName) -> CertificateRule {
    CertificateRule {
        fingerprint: name.fingerprint.clone(),
        name: name.name.clone(),
        subject: name.subject.clone(),
        principal: name.principal.clone(),
        roles: name.roles.clone(),
    }
}

fn directory(auth: &Auth) -> Directory {
    let grant = |(name, member): &(String, Member)| {
        let Member { roles, groups, trust, resources } = member.clone();
        (name.clone(), Grant { roles, groups, trust, resources })
    };
    let all = |members: &[(String, Member)]| members.iter().map(grant).collect();
    Directory::new(all(&auth.users), all(&auth.groups), auth.default_trust)
}

fn rules(issuer: &Issuer, resource: &str) -> IssuerRules {
    let audiences = if issuer.audience.is_empty() { vec![resource.to_owned()] } else { issuer.audience.clone() };
    IssuerRules {
        name: issuer.name.clone(),
        issuer: issuer.issuer.clone(),
        audiences,
        algorithms: issuer.algorithms.iter().filter_map(|word| word.parse().ok()).collect(),
        skew: issuer.clock_skew.as_secs(),
        subject_claim: issuer.subject_claim.clone(),
        role_claims: issuer.role_claims.clone(),
        group_claims: issuer.group_claims.clone(),
        require_id: issuer.require_id,
    }
}

/// The protected resource, if there is anybody who gives out tokens for it.
fn protected(auth: &Auth, own: Option<&Authorization>, resource: String) -> Option<ProtectedResource> {
    let mut servers: Vec<String> = own.into_iter().map(|own| own.url().to_owned()).collect();
    let others = auth.authorization_servers.iter().filter(|other| own.is_none_or(|own| own.url() != *other));
    servers.extend(others.cloned());
    if servers.is_empty() {
        return None;
    }
    let mut scopes = auth.required_scopes.clone();
    scopes.extend(auth.scopes.iter().map(|(scope, _)| scope.clone()));
    Some(ProtectedResource {
        resource,
        authorization_servers: servers,
        required_scopes: auth.required_scopes.clone(),
        scopes_supported: scopes,
        documentation: None,
    })
}
