//! Authentication of callers as configured: the ordered authenticators, and the task that keeps their keys up to date.
//!
//! ```text
//! keys.json, users.json, key sets ──(read before use, and twice a second)──► SharedKeys, TokenIssuer ◄── used by the
//! authenticators
//! reload ──► Directory: replaced at once; tokens of removed issuers are revoked, all else needs a restart
//! ```

mod key_source;

use crate::assemble::App;
use crate::auth_file::FileStamp;
use crate::authorization::{AuthServerError, Authorization};
use crate::key_file::{KeyFile, KeyFileFault};
use crate::protected_resource;
use crate::reload::Follower;
use crate::seal_folder::SealFolder;
use key_source::KeySource;
use signalbox_config::{Auth, Config, Issuer, MemberConfig};
use signalbox_engine::authenticator::{AssumedPrincipal, Authenticator, Authenticators, OwnerAuthenticator};
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::resource_address::ResourceAddress;
use signalbox_engine::{Caller, Principal, Proof};
use signalbox_govern::directory::{Directory, DirectoryClaims, Grant};
use signalbox_govern::jwks::JsonWebKeySetError;
use signalbox_govern::key_authenticator::Refresh;
use signalbox_govern::token_authenticator::{KeyRefreshReason, KeySupply};
use signalbox_govern::{
    CertificateAuthenticator, CertificateRule, IssuerRules, KeyAuthenticator, ProtectedResource, SharedKeys,
    TokenAuthenticator, TokenIssuer,
};
use signalbox_oauth_client::OauthClientState;
use signalbox_oauth_client::outbound::OutboundSettings;
use signalbox_runtime::Gateway;
use signalbox_runtime::clock::unix_millis;
use signalbox_seal::KeyRole;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;

/// Interval between looks at the key files. A revoked key must end within a second.
const LOOK: Duration = Duration::from_millis(500);

/// Reason why authentication cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// The file of API keys cannot be used.
    #[error(transparent)]
    Keys(#[from] KeyFileFault),
    /// The keys of an issuer cannot be used.
    #[error("auth.jwt.{issuer}: {why}")]
    KeySet {
        issuer: String,
        /// Error in the key set.
        why: JsonWebKeySetError,
    },
    /// The file with the keys of an issuer cannot be read.
    #[error("auth.jwt.{issuer}: {}: {why}", path.display())]
    File { issuer: String, path: PathBuf, why: std::io::Error },
    /// The gateway's own authorization server cannot be set up.
    #[error(transparent)]
    Server(#[from] AuthServerError),
}

/// Authenticators of one process, with their keys and the authorization server.
pub struct Authentication {
    authenticators: Authenticators,
    key_store: Arc<KeyStore>,
    issuers: Arc<[KeySource]>,
    tokens: Option<Arc<TokenAuthenticator>>,
    certificates: Arc<CertificateAuthenticator>,
    resource: Option<Arc<ProtectedResource>>,
    server: Option<Arc<Authorization>>,
    oauth: Arc<OauthClientState>,
    outbound: OutboundSettings,
    required: bool,
}

impl Authentication {
    /// Sets up authentication. `url` is the address of the MCP endpoint for clients. Callers without a proof become
    /// `anonymous`, if the configuration admits them.
    ///
    /// # Errors
    /// If keys cannot be read.
    pub fn load(
        config: &Config,
        data_dir: &Path,
        url: &str,
        anonymous: Principal,
        app: &App,
    ) -> Result<Self, AuthError> {
        let auth = &config.auth;
        let resource = protected_resource::address(config, url);
        let directory = Arc::clone(&app.directory);
        let key_store = KeyStore::load(KeyFile::of(data_dir))?;
        let issuers = auth.issuers.iter().map(|issuer| KeySource::load(issuer, rules(issuer, &resource)));
        let issuers: Arc<[KeySource]> = issuers.collect::<Result<Vec<_>, _>>()?.into();
        let sources = Arc::clone(&issuers);
        let supply: KeySupply = Box::new(move |issuer, wanted| {
            let source = sources.iter().find(|source| std::ptr::eq(&*source.issuer, issuer));
            // `follow_files` revokes the tokens of a withdrawn key.
            match wanted {
                KeyRefreshReason::BeforeUse => source.map(KeySource::refresh_now),
                KeyRefreshReason::Unknown => source.map(KeySource::want),
            };
        });
        let server = auth.server.as_ref();
        let server =
            server.map(|server| Authorization::load(auth, server, data_dir, &resource, &directory, &config.outbound));
        let server = server.transpose()?.map(Arc::new);
        let mut all: Vec<Arc<TokenIssuer>> = issuers.iter().map(|source| Arc::clone(&source.issuer)).collect();
        all.extend(server.iter().map(|server| Arc::clone(server.issuer())));
        let tokens = (!all.is_empty()).then(|| {
            let tokens =
                TokenAuthenticator::new(all, Arc::clone(&directory), supply).keeping(Arc::clone(&app.oauth.callers));
            Arc::new(match &server {
                Some(server) => tokens.refreshed_by(look_at_users(server)),
                None => tokens,
            })
        });
        if let (Some(server), Some(tokens)) = (&server, &tokens) {
            server.verified_by(tokens);
        }
        let rules = auth.certificates.iter().map(certificate_rule).collect();
        let certificates = Arc::new(CertificateAuthenticator::new(rules, Arc::clone(&directory)));
        let keys = KeyAuthenticator::new(Arc::clone(&key_store.keys), directory);
        let ways = Ways {
            keys: Arc::new(keys),
            has_keys: !key_store.keys.is_empty(),
            tokens: tokens.as_ref(),
            certificates: &certificates,
            anonymous,
            has_signatures: signatures(config, data_dir),
        };
        Ok(Self {
            authenticators: order(auth, ways),
            key_store,
            issuers,
            tokens,
            certificates,
            resource: protected_resource::protected(auth, server.as_deref(), resource).map(Arc::new),
            server,
            oauth: Arc::clone(&app.oauth),
            outbound: config.outbound.clone(),
            required: auth.required,
        })
    }

    /// Returns the authenticators in their order.
    #[must_use]
    pub fn authenticators(&self) -> &Authenticators {
        &self.authenticators
    }

    /// Returns the MCP endpoint as a protected resource, if clients can get tokens for it.
    #[must_use]
    pub fn resource(&self) -> Option<&Arc<ProtectedResource>> {
        self.resource.as_ref()
    }

    /// Returns the gateway's own authorization server, if it is on.
    #[must_use]
    pub fn server(&self) -> Option<&Arc<Authorization>> {
        self.server.as_ref()
    }

    /// Returns `true` if callers without a proof are refused.
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.required
    }

    /// Makes every caller be identified anew at its next request, after the directory has changed.
    fn forget_standings(&self) {
        self.key_store.keys.forget_standings();
        self.certificates.forget_standings();
        if let Some(tokens) = &self.tokens {
            tokens.tokens().outdate();
        }
    }

    /// Revokes the tokens of issuers that the configuration no longer has.
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

    /// Revokes the tokens of people whose OpenID provider was removed or has another address.
    fn keep_provider(&self, auth: &Auth, gateway: &Gateway) {
        let provider = auth.server.as_ref().and_then(|server| server.openid.as_ref());
        let Some(server) = &self.server else { return };
        let ended = server.keep_provider(provider.map(|provider| provider.issuer.as_str()));
        if ended > 0 {
            let sessions = gateway.end_lapsed(unix_millis());
            tracing::info!(ended, sessions, "an OpenID provider is trusted no more");
        }
    }

    /// Keeps the keys up to date and ends sessions whose credentials have ended, until the set is dropped. The task
    /// sleeps while no caller has a credential that could end; keys are checked before each use in any case.
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
                next_look(&gateway).await;
                this.follow_files(&gateway).await;
            }
        });
        tasks
    }

    /// Reads keys and users again if their files have changed, and ends the sessions of callers whose credentials have
    /// ended. Returns the number of sessions.
    pub async fn follow_files(&self, gateway: &Gateway) -> usize {
        self.key_store.refresh();
        self.refresh_issuers();
        let mut gone = Vec::new();
        if let Some(server) = &self.server {
            server.refresh_users();
            gone = server.take_gone();
            server.renew_key();
            // A failure is logged, and the next look retries it.
            server.save().await;
        }
        let ended = gateway.end_lapsed(unix_millis());
        // Comes after `end_lapsed`, so that calls end with the true reason rather than with their connection.
        for account in &gone {
            self.oauth.forget_sign_ins(account);
            gateway.forget_account(account);
        }
        if ended > 0 {
            tracing::info!(sessions = ended, "ended the streams of callers whose credentials have ended");
        }
        ended
    }

    /// Reads the keys of issuers again if their files have changed.
    fn refresh_issuers(&self) {
        let Some(tokens) = &self.tokens else { return };
        for source in self.issuers.iter().filter(|source| source.refresh()) {
            let ended = tokens.withdraw_keys(&source.issuer);
            tracing::info!(issuer = source.issuer.rules.name, ended, "read the keys of an issuer of tokens");
        }
    }
}

/// Waits for the next look at credentials. While no caller has one that could end, it waits for the first.
async fn next_look(gateway: &Gateway) {
    if gateway.presence.is_empty() {
        gateway.presence.noted().await;
    }
    tokio::time::sleep(LOOK).await;
}

/// Ends sessions whose credentials have ended, until the set is dropped. For a process whose client owns its pipe,
/// where only signatures prove a caller.
#[must_use]
pub fn end_lapsed(gateway: &Arc<Gateway>) -> JoinSet<()> {
    let (gateway, mut tasks) = (Arc::clone(gateway), JoinSet::new());
    tasks.spawn(async move {
        loop {
            next_look(&gateway).await;
            gateway.end_lapsed(unix_millis());
        }
    });
    tasks
}

/// Returns the follower that takes over users, groups, roles and the removal of issuers at a reload. It ends
/// connections, streams and calls whose callers have changed rights.
pub fn follower(app: &App, authentication: Option<&Arc<Authentication>>) -> Follower {
    let (directory, gateway) = (Arc::clone(&app.directory), Arc::downgrade(&app.gateway));
    let authentication = authentication.cloned();
    Box::new(move |config: &Config| {
        let (directory, gateway) = (Arc::clone(&directory), gateway.clone());
        let (authentication, auth) = (authentication.clone(), config.auth.clone());
        Ok(Box::new(move || {
            let Some(gateway) = gateway.upgrade() else { return };
            if let Some(authentication) = &authentication {
                authentication.remove_issuers(&auth, &gateway);
                authentication.keep_provider(&auth, &gateway);
            }
            let (before, next) = (directory.load_full(), Arc::new(self::directory(&auth)));
            if before == next {
                return;
            }
            directory.store(Arc::clone(&next));
            if let Some(authentication) = &authentication {
                authentication.forget_standings();
            }
            let ended = gateway.end_changed(|caller| has_changed(caller, &before, &next));
            if ended > 0 {
                tracing::info!(
                    sessions = ended,
                    "ended what callers held open whose roles, groups, trust or resources have changed"
                );
            }
        }))
    })
}

/// Returns `true` if a proved caller has other rights under `next` than under `before`. The rights of a caller without
/// a standing, such as the owner of a pipe, are looked up at each request.
fn has_changed(caller: &Caller, before: &Directory, next: &Directory) -> bool {
    let (identity, principal) = (caller.identity(), caller.principal().as_str());
    let Some(known) = identity.standing.as_ref().filter(|_| identity.proof != Proof::Unproved) else { return false };
    let differ = |groups: Vec<String>| {
        let said = DirectoryClaims { groups, ..DirectoryClaims::default() };
        before.standing(principal, said.clone(), None) != next.standing(principal, said, None)
    };
    let groups = known.groups.iter().map(|group| group.to_string());
    // It is unknown which groups the credential names as well, so the groups given by the directory are tried both
    // ways.
    let given = before.groups_of(principal);
    differ(groups.clone().collect()) || differ(groups.filter(|group| !given.contains(group)).collect())
}

/// Returns the check of the user file that runs before a token is honoured, because the token's user may have been
/// removed.
fn look_at_users(server: &Arc<Authorization>) -> Refresh {
    let server = Arc::downgrade(server);
    Box::new(move || {
        if let Some(server) = server.upgrade() {
            server.refresh_users();
        }
    })
}

/// API keys of the process, with the file that they follow.
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

    /// Reads the file again if it has changed. An unreadable file changes nothing.
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

/// Authenticators that the configured order can select.
struct Ways<'a> {
    keys: Arc<KeyAuthenticator>,
    has_keys: bool,
    tokens: Option<&'a Arc<TokenAuthenticator>>,
    certificates: &'a Arc<CertificateAuthenticator>,
    /// Principal of callers without a proof, if the configuration admits them.
    anonymous: Principal,
    has_signatures: bool,
}

/// Returns the authenticators in the configured order. Ends with one for callers without a proof, unless a proof is
/// required.
fn order(auth: &Auth, ways: Ways<'_>) -> Authenticators {
    let mut list: Vec<Arc<dyn Authenticator>> = Vec::new();
    for way in &auth.order {
        match way.as_str() {
            // Authentication is off and there is no key, so a header of another program is ignored.
            "key" if auth.required || ways.has_keys => list.push(Arc::clone(&ways.keys) as _),
            "token" => list.extend(ways.tokens.map(|tokens| Arc::clone(tokens) as Arc<dyn Authenticator>)),
            "certificate" => list.push(Arc::clone(ways.certificates) as _),
            "local" => list.push(Arc::new(OwnerAuthenticator)),
            _ => {}
        }
    }
    match (auth.required, ways.has_signatures) {
        (false, _) => list.push(Arc::new(AssumedPrincipal(ways.anonymous))),
        // The message itself must prove its caller, in the second stage.
        (true, true) => list.push(Arc::new(AssumedPrincipal(Principal::named("unproved")))),
        (true, false) => {}
    }
    Authenticators::new(list)
}

/// Returns `true` if messages can prove their caller: the configuration lists signatures explicitly, or a client's key
/// is trusted at the start. Otherwise no message of a caller without a credential is read.
fn signatures(config: &Config, data_dir: &Path) -> bool {
    let listed = config.auth.order.iter().any(|way| way == "signature");
    let trusted = || {
        let keys = SealFolder::of(data_dir).key_set();
        keys.is_ok_and(|keys| keys.iter().any(|key| key.roles.contains(&KeyRole::Client)))
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

/// Builds the directory of users, groups and scopes from the configuration.
pub(crate) fn directory(auth: &Auth) -> Directory {
    let grant = |(name, member): &(String, MemberConfig)| {
        let MemberConfig { roles, groups, trust, resources } = member.clone();
        (name.clone(), Grant { roles, groups, trust, resources })
    };
    let all = |members: &[(String, MemberConfig)]| members.iter().map(grant).collect();
    let directory = Directory::new(all(&auth.users), all(&auth.groups), auth.default_trust);
    directory.with_scopes(auth.scope_hierarchy.iter().cloned().collect())
}

fn rules(issuer: &Issuer, resource: &ResourceAddress) -> IssuerRules {
    let audiences = if issuer.audience.is_empty() { resource.audiences() } else { issuer.audience.clone() };
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

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::caller::Identity;
    use std::collections::HashMap;

    #[test]
    fn a_caller_has_other_rights_once_its_entry_or_a_group_of_it_says_something_else() {
        let texts = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let of = |roles: &[&str], groups: &[&str], of_group: &[&str]| {
            let ada = Grant { roles: texts(roles), groups: texts(groups), ..Grant::default() };
            let ops = Grant { roles: texts(of_group), ..Grant::default() };
            let all = |name: &str, grant| HashMap::from([(name.to_owned(), grant)]);
            Directory::new(all("user:ada", ada), all("ops", ops), Default::default())
        };
        let before = of(&["r"], &["ops"], &["admin"]);
        let caller = |principal: &str, proof| {
            let standing = Some(before.standing(principal, DirectoryClaims::default(), None));
            let caller = Caller::of(Principal::named(principal), proof, "http");
            Caller::new(Identity { standing, ..caller.identity().clone() })
        };
        let ada = caller("user:ada", Proof::ApiKey);
        assert!(!has_changed(&ada, &before, &before));
        for next in [of(&[], &["ops"], &["admin"]), of(&["r"], &[], &["admin"]), of(&["r"], &["ops"], &[])] {
            assert!(has_changed(&ada, &before, &next), "{next:?}");
            assert!(!has_changed(&caller("user:eve", Proof::ApiKey), &before, &next));
            assert!(!has_changed(&caller("user:ada", Proof::Unproved), &before, &next));
        }
        let owner = Caller::of(Principal::named("user:ada"), Proof::LocalUser, "stdio");
        assert!(!has_changed(&owner, &before, &of(&[], &[], &[])));
    }
}
