//! Grants: what a person allowed a client, and the one refresh token of each that is good.

use crate::client::Client;
use crate::event::AuthEvent;
use crate::moment::{Moment, hashed, same};
use crate::password::LocalUsers;
use crate::reply::Refusal;
use crate::settings::Settings;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most clients that are registered, and the most grants that are kept.
pub const MAX_CLIENTS: usize = 1_000;
/// The most grants that are kept.
pub const MAX_GRANTS: usize = 10_000;
/// A client that nobody has used for so long makes room for others, in milliseconds.
const UNUSED: u64 = 24 * 3_600 * 1_000;

/// A person, as tokens name it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Person {
    /// The name of a local user, or one of a provider, which has a `:` in it as no local one has.
    pub name: String,
    /// The groups that a provider says it is in.
    pub groups: Vec<String>,
    /// The account of a local user ([`LocalUsers::account`]), so that a later user of the same name gets nothing of it.
    /// For a person of a provider its issuer, since another provider may use the same name.
    pub account: Option<String>,
    /// The time at which a person of a provider signed in, in milliseconds since 1970.
    pub since: u64,
}

impl Person {
    /// The person whom the OpenID provider of this issuer names at this time, in milliseconds since 1970.
    #[must_use]
    pub fn of_provider(issuer: &str, name: String, groups: Vec<String>, since: u64) -> Self {
        Self { name, groups, account: Some(issuer.to_owned()), since }
    }

    /// A local user.
    pub(crate) fn local(name: &str, account: &str) -> Self {
        Self { name: name.to_owned(), groups: Vec::new(), account: Some(account.to_owned()), since: 0 }
    }

    /// True if its account is no longer there, or its provider is not this one any more.
    pub(crate) fn is_gone(&self, users: &LocalUsers, provider: Option<&str>) -> bool {
        is_gone((&self.name, self.since), self.account.as_deref(), users, provider)
    }
}

/// True if this is a local user whose account is no longer there, or a person of a provider that is not trusted any
/// more or whose tokens were ended since. One without an account was noted by an earlier version, which did not tell
/// users of the same name apart.
fn is_gone((name, since): (&str, u64), account: Option<&str>, users: &LocalUsers, provider: Option<&str>) -> bool {
    let Some(account) = account else { return true };
    match name.contains(':') {
        true => provider != Some(account) || users.ended(name).is_some_and(|ended| since <= ended),
        false => users.account(name).as_deref() != Some(account),
    }
}

/// What a person allowed a client.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Grant {
    pub client: String,
    /// The name of the person.
    pub user: String,
    /// The groups that a provider said the person is in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// The account of a local user, or the issuer of the person's provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The time at which a person of a provider signed in, in milliseconds since 1970.
    #[serde(default)]
    pub since: u64,
    pub scopes: Vec<String>,
    /// The hash of the refresh token that is good.
    pub refresh: String,
    /// When that expires.
    pub expires: u64,
    /// The access tokens that may still be good: id and expiry.
    pub tokens: Vec<(String, u64)>,
}

impl Grant {
    /// Something that happened to it.
    pub fn event(&self) -> AuthEvent {
        AuthEvent::of(&self.user, Some(&self.client))
    }
}

/// All that outlives the process.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub clients: BTreeMap<String, Client>,
    pub grants: BTreeMap<String, Grant>,
    /// Access tokens that are revoked and not expired: id and expiry.
    pub revoked: BTreeMap<String, u64>,
}

impl Kept {
    /// Makes room for one more client. False if all that there are may still be in use.
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

    /// A grant with its first refresh token.
    pub fn open(
        &mut self,
        client: &str,
        person: Person,
        scopes: Vec<String>,
        settings: &Settings,
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

    /// Takes a refresh token and gives the next one. A token that was used before means that two have it, and nobody can say
    /// which of them is the client: the grant ends.
    pub fn rotate(
        &mut self,
        token: &str,
        client: &str,
        settings: &Settings,
        moment: &Moment,
    ) -> Result<(String, String), Refusal> {
        self.sweep(moment.now);
        let gone = Refusal::new("invalid_grant", "the refresh token is not good, or no longer");
        let id = token.split_once('.').map(|(id, _)| id.to_owned()).ok_or(gone)?;
        let grant = self.grants.get_mut(&id).filter(|grant| grant.expires > moment.now).ok_or(gone)?;
        if !same(&grant.refresh, &hashed(token)) {
            self.end(&id);
            return Err(Refusal::new(
                "invalid_grant",
                "the refresh token was used before; all tokens of its grant are revoked",
            ));
        }
        if client != grant.client {
            return Err(Refusal::new("invalid_grant", "the refresh token was given to another client"));
        }
        let next = format!("{id}.{}", moment.draw());
        grant.refresh = hashed(&next);
        grant.expires = moment.after(settings.refresh_lifetime.as_secs());
        Ok((id, next))
    }

    /// Ends a grant, and the access tokens that were given for it.
    pub fn end(&mut self, id: &str) {
        if let Some(grant) = self.grants.remove(id) {
            self.revoked.extend(grant.tokens);
        }
    }

    /// Ends the grants of local users whose accounts are gone, and of people whose provider is not this one any more.
    /// Returns the number of ended grants.
    pub fn end_gone(&mut self, users: &LocalUsers, provider: Option<&str>) -> usize {
        let is_gone = |grant: &Grant| is_gone((&grant.user, grant.since), grant.account.as_deref(), users, provider);
        let ended: Vec<String> =
            self.grants.iter().filter(|(_, grant)| is_gone(grant)).map(|(id, _)| id.clone()).collect();
        ended.iter().for_each(|id| self.end(id));
        ended.len()
    }

    /// Forgets what is over. A grant is kept as long as one of its access tokens, which can be revoked only by it.
    fn sweep(&mut self, now: u64) {
        self.revoked.retain(|_, expires| *expires > now);
        for grant in self.grants.values_mut() {
            grant.tokens.retain(|(_, expires)| *expires > now);
        }
        self.grants.retain(|_, grant| grant.expires > now || !grant.tokens.is_empty());
    }
}
