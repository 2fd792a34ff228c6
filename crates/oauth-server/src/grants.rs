//! Grants: what people allowed to clients, each with its current refresh token.

use crate::client::Client;
use crate::event::AuthEvent;
use crate::moment::{Moment, hashed, same};
use crate::password::LocalUsers;
use crate::reply::OauthRefusal;
use crate::settings::ServerSettings;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum number of registered clients.
pub const MAX_CLIENTS: usize = 1_000;
/// Maximum number of grants.
pub const MAX_GRANTS: usize = 10_000;
/// Time after which an unused client may be evicted, in milliseconds.
const UNUSED: u64 = 24 * 3_600 * 1_000;

/// Person as named by tokens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Person {
    /// Name of a local user; or that of a person of a provider, which contains a `:` unlike any local one.
    pub name: String,
    /// Groups according to the provider.
    pub groups: Vec<String>,
    /// Account of a local user ([`LocalUsers::account`]), so that a later user of the same name inherits nothing. For a
    /// person of a provider it is the issuer, since another provider may use the same name.
    pub account: Option<String>,
    /// Time of the sign-in at a provider, in milliseconds since 1970.
    pub since: u64,
}

impl Person {
    /// Creates the person that an OpenID provider names. `since` is the time of the sign-in, in milliseconds since
    /// 1970.
    #[must_use]
    pub fn of_provider(issuer: &str, name: String, groups: Vec<String>, since: u64) -> Self {
        Self { name, groups, account: Some(issuer.to_owned()), since }
    }

    /// Creates the person of a local user.
    pub(crate) fn local(name: &str, account: &str) -> Self {
        Self { name: name.to_owned(), groups: Vec::new(), account: Some(account.to_owned()), since: 0 }
    }

    /// Returns true if the account no longer exists, or the provider is not this one.
    pub(crate) fn is_gone(&self, users: &LocalUsers, provider: Option<&str>) -> bool {
        is_gone(&self.name, self.since, self.account.as_deref(), users, provider)
    }
}

/// Returns true for a local user whose account no longer exists, and for a person of a provider that is no longer
/// trusted or whose tokens were ended since. A grant without an account is from an earlier version, which did not
/// distinguish users of the same name.
fn is_gone(name: &str, since: u64, account: Option<&str>, users: &LocalUsers, provider: Option<&str>) -> bool {
    let Some(account) = account else { return true };
    match name.contains(':') {
        true => provider != Some(account) || users.ended(name).is_some_and(|ended| since <= ended),
        false => users.account(name).as_deref() != Some(account),
    }
}

/// Permission that a person gave to a client.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Grant {
    pub client: String,
    /// Name of the person.
    pub user: String,
    /// Groups according to the provider.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Account of a local user, or issuer of the person's provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Time of the sign-in at a provider, in milliseconds since 1970.
    #[serde(default)]
    pub since: u64,
    pub scopes: Vec<String>,
    /// Hash of the current refresh token.
    pub refresh: String,
    /// Expiry of the refresh token.
    pub expires: u64,
    /// Access tokens that may still be valid: id and expiry.
    pub tokens: Vec<(String, u64)>,
}

impl Grant {
    /// Creates an event about the grant.
    pub fn event(&self) -> AuthEvent {
        AuthEvent::of(&self.user, Some(&self.client))
    }
}

/// Persistent state of the server.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct StoredState {
    pub clients: BTreeMap<String, Client>,
    pub grants: BTreeMap<String, Grant>,
    /// Revoked access tokens that have not expired: id and expiry.
    pub revoked: BTreeMap<String, u64>,
}

impl StoredState {
    /// Makes room for one more client. Returns false if all clients may still be in use.
    pub fn room_for_client(&mut self, now: u64) -> bool {
        if self.clients.len() >= MAX_CLIENTS {
            let used: Vec<&String> = self.grants.values().map(|grant| &grant.client).collect();
            let idle = self.clients.values().filter(|client| !used.contains(&&client.id));
            let oldest =
                idle.filter(|client| client.created.saturating_add(UNUSED) <= now).min_by_key(|one| one.created);
            let oldest = oldest.map(|client| client.id.clone());
            oldest.map(|id| self.clients.remove(&id));
        }
        self.clients.len() < MAX_CLIENTS
    }

    /// Creates a grant with its first refresh token. Returns the id and the token.
    pub fn open(
        &mut self,
        client: &str,
        person: Person,
        scopes: Vec<String>,
        settings: &ServerSettings,
        moment: &Moment,
    ) -> (String, String) {
        self.sweep(moment.now);
        if self.grants.len() >= MAX_GRANTS {
            let first = self.grants.iter().min_by_key(|(_, grant)| grant.expires).map(|(id, _)| id.clone());
            if let Some(id) = first {
                self.end(&id);
            }
        }
        let id: String = moment.draw();
        let refresh = format!("{id}.{}", moment.draw());
        let expires = moment.after(settings.refresh_lifetime.as_secs());
        let grant = Grant {
            client: client.to_owned(),
            user: person.name,
            groups: person.groups,
            account: person.account,
            since: person.since,
            scopes,
            refresh: hashed(&refresh),
            expires,
            tokens: Vec::new(),
        };
        self.grants.insert(id.clone(), grant);
        (id, refresh)
    }

    /// Exchanges a refresh token for the next one. If a token is reused, two parties have it, and the client cannot be
    /// told from the thief: the grant ends.
    pub fn rotate(
        &mut self,
        token: &str,
        client: &str,
        settings: &ServerSettings,
        moment: &Moment,
    ) -> Result<(String, String), OauthRefusal> {
        self.sweep(moment.now);
        let gone = OauthRefusal::new("invalid_grant", "the refresh token is not good, or no longer");
        let id = token.split_once('.').map(|(id, _)| id.to_owned()).ok_or(gone)?;
        let grant = self.grants.get_mut(&id).filter(|grant| grant.expires > moment.now).ok_or(gone)?;
        if !same(&grant.refresh, &hashed(token)) {
            self.end(&id);
            return Err(OauthRefusal::new(
                "invalid_grant",
                "the refresh token was used before; all tokens of its grant are revoked",
            ));
        }
        if client != grant.client {
            return Err(OauthRefusal::new("invalid_grant", "the refresh token was given to another client"));
        }
        let next = format!("{id}.{}", moment.draw());
        grant.refresh = hashed(&next);
        grant.expires = moment.after(settings.refresh_lifetime.as_secs());
        Ok((id, next))
    }

    /// Returns the grant whose refresh token this is.
    pub fn grant_of(&self, token: &str) -> Option<&Grant> {
        let (id, _) = token.split_once('.')?;
        self.grants.get(id).filter(|grant| same(&grant.refresh, &hashed(token)))
    }

    /// Ends a grant and revokes its access tokens.
    pub fn end(&mut self, id: &str) {
        if let Some(grant) = self.grants.remove(id) {
            self.revoked.extend(grant.tokens);
        }
    }

    /// Ends the grants of local users whose accounts no longer exist, and of people of another provider. Returns the
    /// number of ended grants.
    pub fn end_gone(&mut self, users: &LocalUsers, provider: Option<&str>) -> usize {
        let is_gone = |grant: &Grant| is_gone(&grant.user, grant.since, grant.account.as_deref(), users, provider);
        let ended: Vec<String> =
            self.grants.iter().filter(|(_, grant)| is_gone(grant)).map(|(id, _)| id.clone()).collect();
        ended.iter().for_each(|id| self.end(id));
        ended.len()
    }

    /// Removes expired entries. A grant is kept as long as one of its access tokens, which can only be revoked through
    /// it.
    fn sweep(&mut self, now: u64) {
        self.revoked.retain(|_, expires| *expires > now);
        for grant in self.grants.values_mut() {
            grant.tokens.retain(|(_, expires)| *expires > now);
        }
        self.grants.retain(|_, grant| grant.expires > now || !grant.tokens.is_empty());
    }
}
