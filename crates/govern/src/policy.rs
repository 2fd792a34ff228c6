//! Cedar policies: which callers may use which entries, with which arguments.
//!
//! A bundle is all `*.cedar` files of a folder. It is loaded as a whole or not at all. For each caller and entry, the
//! policies that could apply (a slice) are selected once, together with the Cedar entities of both. If none of them
//! looks at the context, the verdict is known at once. [`crate::permissions`] caches what is prepared.
//!
//! ```text
//! (caller, entry) ─► PreparedPolicies { slice, parties, listed, constant verdict? }
//! arguments ───────► known for the same values? else only those that the slice mentions become values of Cedar
//!                    └─► authorizer ─► Permit · Ask (every `forbid` that holds has `@ask`) · Forbid
//! ```
//!
//! # Invariants
//!
//! - Nothing is permitted without a `permit`, and a `forbid` outweighs every `permit`.
//! - **An error denies and is named.** Cedar itself skips a policy that fails, so a `forbid` that looks at an absent
//!   argument would let the call through.
//! - An entry is listed if some arguments could make it usable; see [`conditions`].

pub mod check;
pub mod conditions;
pub mod entities;
mod readings;
pub mod rule;
pub mod values;

pub use check::{KnownTool, PolicyWarning};
pub use entities::{BASE_SCHEMA, Circumstances, EntityAttributes};
pub use readings::PreparedReadings;
pub use rule::{AskOf, BundleError, PolicyRule};

use cedar_policy::{AuthorizationError, Authorizer, Context, Decision, EvaluationError, PolicySet, Request, Response};
use conditions::Mentions;
use entities::Parties;
use signalbox_engine::Caller;
use signalbox_engine::catalog::EntryRef;
use signalbox_engine::keys::TextMap;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_wire::json;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use values::ValueError;

/// Maximum number of cached verdicts per caller and entry.
pub const MAX_VERDICTS: usize = 64;
/// Maximum size of the arguments that form the cache key of a verdict, in bytes.
const MAX_KEY: usize = 512;

/// Decision of the policies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PolicyVerdict {
    /// Permitted by this policy.
    Permit(Arc<str>),
    Forbid(Grounds),
    /// Permitted once a person has approved it.
    Ask(Asking),
}

/// Approval that a role or policy requires.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asking {
    /// The requiring role or policy, and the reason.
    pub grounds: Grounds,
    /// Person whose consent is needed.
    pub of: AskOf,
}

/// Policy that decided, and its reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grounds {
    /// The deciding policy; `None` if no policy permits the use.
    pub policy: Option<Arc<str>>,
    /// The reason, for the caller.
    pub reason: String,
}

/// Reason given when no policy permits a use.
const NOT_PERMITTED: &str = "no policy permits it";

impl Grounds {
    /// Returns true if a permission is missing, as opposed to a use that is forbidden or cannot be judged. A grant
    /// makes up for it.
    #[must_use]
    pub fn is_lack(&self) -> bool {
        self.policy.is_none() && self.reason == NOT_PERMITTED
    }
}

/// Visibility of an entry in lists.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Listing {
    Shown,
    /// No policy permits the entry, whatever the arguments.
    Lacking,
    /// A policy forbids the entry whatever the arguments, or cannot be evaluated.
    Barred,
}

/// Policies of a bundle, indexed by the entry or backend they name.
#[derive(Debug, Default)]
pub struct Policies {
    rules: Vec<PolicyRule>,
    ids: HashMap<Arc<str>, usize>,
    /// Policies that name an entry or a backend.
    named: HashMap<(String, String), Vec<usize>>,
    /// Policies that name neither.
    general: Vec<usize>,
}

/// Policies prepared for a caller and an entry, before the arguments are known.
#[derive(Debug)]
pub struct PreparedPolicies {
    parties: Parties,
    policies: PolicySet,
    /// Policies that a person cannot lift, if there are others.
    firm: Option<PolicySet>,
    mentions: Mentions,
    listing: Listing,
    constant: Option<PolicyVerdict>,
    /// Cached verdicts, by the arguments that the policies look at.
    verdicts: Mutex<TextMap<Box<[u8]>, PolicyVerdict>>,
}

impl PreparedPolicies {
    /// Returns the part of the arguments that the verdict depends on, as cache key. `None` if it is too large, or if
    /// the verdict depends on more than arguments.
    fn key(&self, arguments: &[u8]) -> Option<Box<[u8]>> {
        if self.mentions.circumstances || self.mentions.all_arguments {
            return None;
        }
        let mut key = Vec::new();
        for member in json::members(arguments) {
            let name = json::string(member.key.of(arguments))?;
            if self.mentions.arguments.contains(&*name) {
                key.extend_from_slice(&member.key.of(arguments).len().to_ne_bytes());
                key.extend_from_slice(member.key.of(arguments));
                key.extend_from_slice(member.value.of(arguments));
            }
            if key.len() > MAX_KEY {
                return None;
            }
        }
        Some(key.into())
    }

    /// Returns true if the caller finds the entry in lists.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        self.listing == Listing::Shown
    }

    /// Returns true if no grant can show the entry: a policy forbids it, whatever the arguments.
    #[must_use]
    pub fn is_barred(&self) -> bool {
        self.listing == Listing::Barred
    }
}

impl Policies {
    /// Loads the policies of these files, as (name, text).
    ///
    /// # Errors
    /// The error of the first file that cannot be used.
    pub fn load(files: &[(String, String)]) -> Result<Self, BundleError> {
        let mut bundle = Self::default();
        for (file, text) in files {
            for rule in PolicyRule::all(file, text)? {
                bundle.add(rule)?;
            }
        }
        check::against_base(&bundle.rules)?;
        Ok(bundle)
    }

    fn add(&mut self, rule: PolicyRule) -> Result<(), BundleError> {
        let place = self.rules.len();
        if self.ids.insert(Arc::clone(&rule.id), place).is_some() {
            return Err(BundleError::SameId { file: rule.file.to_string(), id: rule.id.to_string() });
        }
        match rule.named() {
            Some(name) => self.named.entry(name).or_default().push(place),
            None => self.general.push(place),
        }
        self.rules.push(rule);
        Ok(())
    }

    /// Returns all policies, in the order of the files.
    #[must_use]
    pub fn rules(&self) -> &[PolicyRule] {
        &self.rules
    }

    /// Decides about a use of a prepared entry with these arguments, a JSON object.
    #[must_use]
    pub fn decide(
        &self,
        prepared: &PreparedPolicies,
        arguments: Option<&[u8]>,
        around: &Circumstances,
    ) -> PolicyVerdict {
        if let Some(constant) = &prepared.constant {
            return constant.clone();
        }
        let arguments = arguments.unwrap_or(b"{}");
        let key = prepared.key(arguments);
        let known = key.as_ref().and_then(|key| prepared.verdicts.lock().unpoisoned().get(key).cloned());
        if let Some(known) = known {
            return known;
        }
        let verdict = match context(&prepared.mentions, arguments, around) {
            Ok(context) => self.judge(prepared, context),
            Err(error) => forbid(None, error.to_string()),
        };
        if let Some(key) = key {
            let mut verdicts = prepared.verdicts.lock().unpoisoned();
            if verdicts.len() >= MAX_VERDICTS {
                verdicts.clear();
            }
            verdicts.insert(key, verdict.clone());
        }
        verdict
    }

    /// Selects the policies that could apply when this caller uses this entry, whose name or URI reads as `read`.
    /// `None` if Cedar cannot represent the names.
    #[must_use]
    pub fn prepare(
        &self,
        caller: &Caller,
        entry: &EntryRef<'_>,
        read: &str,
        known: &EntityAttributes<'_>,
    ) -> Option<PreparedPolicies> {
        let parties = Parties::new(caller, entry, read, known)?;
        let rules: Vec<&PolicyRule> = self.slice(entry).collect();
        let set = |wanted: &dyn Fn(&PolicyRule) -> bool| {
            let mut set = PolicySet::new();
            for rule in rules.iter().filter(|rule| wanted(rule)) {
                set.add(rule.policy.clone()).ok()?;
            }
            Some(set)
        };
        let mut mentions = Mentions::default();
        rules.iter().for_each(|rule| mentions.add(&rule.mentions));
        let lifted = rules.iter().any(|rule| rule.ask.is_some());
        let mut prepared = PreparedPolicies {
            listing: listing(&parties, &rules)?,
            policies: set(&|_| true)?,
            firm: if lifted { Some(set(&|rule| rule.ask.is_none())?) } else { None },
            parties,
            mentions,
            constant: None,
            verdicts: Mutex::default(),
        };
        if !prepared.mentions.context {
            prepared.constant = Some(self.judge(&prepared, Context::empty()));
        }
        Some(prepared)
    }

    /// Returns the policies that could apply to an entry.
    fn slice<'a>(&'a self, entry: &'a EntryRef<'_>) -> impl Iterator<Item = &'a PolicyRule> {
        let (type_name, _) = entities::words(entry.kind);
        let of = |type_name: &str, id: String| self.named.get(&(type_name.to_owned(), id)).into_iter().flatten();
        let own = of(type_name, entities::entry_id(entry.backend, entry.name));
        let places = own.chain(of("Backend", entry.backend.to_owned())).chain(&self.general);
        places.filter_map(|place| self.rules.get(*place)).filter(move |rule| rule.is_for(entry))
    }

    fn judge(&self, prepared: &PreparedPolicies, context: Context) -> PolicyVerdict {
        let Some(request) = request(&prepared.parties, context) else {
            return forbid(None, "it cannot be judged".to_owned());
        };
        let entities = &prepared.parties.entities;
        let response = Authorizer::new().is_authorized(&request, &prepared.policies, entities);
        match self.verdict(&response) {
            PolicyVerdict::Ask(asking) => {
                // A person can lift the policies that ask, but cannot make up for a missing permission.
                let Some(firm) = &prepared.firm else { return PolicyVerdict::Ask(asking) };
                let without = Authorizer::new().is_authorized(&request, firm, entities);
                match self.verdict(&without) {
                    PolicyVerdict::Permit(_) => PolicyVerdict::Ask(asking),
                    other => other,
                }
            }
            other => other,
        }
    }

    fn verdict(&self, response: &Response) -> PolicyVerdict {
        if let Some(error) = response.diagnostics().errors().next() {
            let AuthorizationError::PolicyEvaluationError(error) = error;
            let id = self.rule(error.policy_id().as_ref()).map(|rule| Arc::clone(&rule.id));
            return forbid(id, format!("the policy cannot be evaluated: {}", without_values(error.inner())));
        }
        let mut deciding: Vec<&PolicyRule> =
            response.diagnostics().reason().filter_map(|id| self.rule(id.as_ref())).collect();
        // Policies that cannot be lifted go first, then those that need an approver.
        deciding.sort_by_key(|rule| (rule.ask.is_some(), rule.ask_of, Arc::clone(&rule.id)));
        match (response.decision(), deciding.first()) {
            (Decision::Allow, Some(rule)) => PolicyVerdict::Permit(Arc::clone(&rule.id)),
            (Decision::Allow | Decision::Deny, None) => forbid(None, NOT_PERMITTED.to_owned()),
            (Decision::Deny, Some(rule)) => {
                let policy = Some(Arc::clone(&rule.id));
                match &rule.ask {
                    Some(ask) => {
                        let grounds = Grounds { policy, reason: ask.to_string() };
                        PolicyVerdict::Ask(Asking { grounds, of: rule.ask_of })
                    }
                    None => {
                        let told = rule.reason.as_ref().map(|reason| reason.to_string());
                        forbid(policy, told.unwrap_or_else(|| format!("the policy `{}` forbids it", rule.id)))
                    }
                }
            }
        }
    }

    fn rule(&self, id: &str) -> Option<&PolicyRule> {
        self.rules.get(*self.ids.get(id)?)
    }
}

/// Describes an error without values of the call: it is recorded where arguments are not.
fn without_values(error: &EvaluationError) -> String {
    use EvaluationError as Error;
    match error {
        // These name types, and what the policy itself names.
        Error::RecordAttrDoesNotExist(_)
        | Error::TypeError(_)
        | Error::FailedExtensionFunctionLookup(_)
        | Error::WrongNumArguments(_)
        | Error::UnlinkedSlot(_)
        | Error::RecursionLimit(_) => error.to_string(),
        Error::EntityDoesNotExist(_) | Error::EntityAttrDoesNotExist(_) => {
            "the caller or the entry lacks an attribute or tag".to_owned()
        }
        Error::IntegerOverflow(_) => "integer overflow".to_owned(),
        Error::FailedExtensionFunctionExecution(_) => "an extension function cannot use its argument".to_owned(),
        _ => "it fails".to_owned(),
    }
}

fn forbid(policy: Option<Arc<str>>, reason: String) -> PolicyVerdict {
    PolicyVerdict::Forbid(Grounds { policy, reason })
}

fn request(parties: &Parties, context: Context) -> Option<Request> {
    let Parties { principal, action, resource, .. } = parties.clone();
    Request::new(principal, action, resource, context, None).ok()
}

/// Reason why the arguments of a call cannot be judged.
#[derive(Debug, thiserror::Error)]
enum ContextError {
    #[error("the argument `{name}` cannot be judged: {error}")]
    Argument { name: String, error: ValueError },
    /// An argument that no policy names. Its name is the caller's text.
    #[error("an argument cannot be judged: {0}")]
    Unnamed(ValueError),
    #[error("the arguments cannot be judged")]
    Unfit,
}

/// Builds the context of a request from the arguments that policies look at.
fn context(mentions: &Mentions, arguments: &[u8], around: &Circumstances) -> Result<Context, ContextError> {
    let mut pairs = Vec::new();
    for member in json::members(arguments) {
        let Some(name) = json::string(member.key.of(arguments)) else { continue };
        if !mentions.all_arguments && !mentions.arguments.contains(&*name) {
            continue;
        }
        let value =
            values::value(member.value.of(arguments)).map_err(|error| match mentions.arguments.contains(&*name) {
                true => ContextError::Argument { name: name.to_string(), error },
                false => ContextError::Unnamed(error),
            })?;
        pairs.extend(value.map(|value| (name.into_owned(), value)));
    }
    entities::context(pairs, around).ok_or(ContextError::Unfit)
}

/// Decides by the weaker forms of the policies whether lists show the entry. A weakened `permit` that fails to evaluate
/// counts as satisfied: with some arguments, Cedar may not evaluate the failing part.
fn listing(parties: &Parties, rules: &[&PolicyRule]) -> Option<Listing> {
    let mut set = PolicySet::new();
    let mut weaker = HashSet::new();
    for rule in rules {
        let Some(policy) = &rule.listing else { continue };
        if rule.mentions.context {
            weaker.insert(policy.id().to_string());
        }
        set.add(policy.clone()).ok()?;
    }
    let response = Authorizer::new().is_authorized(&request(parties, Context::empty())?, &set, &parties.entities);
    let errors: Vec<String> = response
        .diagnostics()
        .errors()
        .map(|AuthorizationError::PolicyEvaluationError(error)| error.policy_id().to_string())
        .collect();
    if errors.iter().any(|id| !weaker.contains(id)) {
        return Some(Listing::Barred);
    }
    let allowed = response.decision() == Decision::Allow;
    Some(match response.diagnostics().reason().next().is_some() {
        true if !allowed => Listing::Barred,
        _ if allowed || !errors.is_empty() => Listing::Shown,
        _ => Listing::Lacking,
    })
}

#[cfg(test)]
mod tests;
