//! One policy of a bundle, with what it depends on.

use super::conditions::{Mentions, for_listing};
use super::entities::words;
use cedar_policy::{ActionConstraint, Effect, Policy, PolicyId, PolicySet, ResourceConstraint};
use signalbox_engine::catalog::EntryRef;
use std::sync::Arc;

/// Why a bundle cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    /// A file is not Cedar.
    #[error("{file}: {error}")]
    Syntax {
        /// The file.
        file: String,
        /// What is wrong, and where.
        error: String,
    },
    /// Two policies have the same id.
    #[error("{file}: the id `{id}` is used by another policy already")]
    SameId {
        /// The file of the second.
        file: String,
        /// The id.
        id: String,
    },
    /// A template, which nothing links.
    #[error("{file}: `{id}` is a template; write it for a role or group instead of a slot")]
    Template {
        /// The file.
        file: String,
        /// The template.
        id: String,
    },
    /// A `permit` that asks: nobody would be asked where another `permit` holds too.
    #[error("{file}: `{id}`: `@ask` belongs on a `forbid`, which a person can then lift")]
    AskOnPermit {
        /// The file.
        file: String,
        /// The policy.
        id: String,
    },
    /// Somebody is to be asked who is neither the caller nor an approver.
    #[error("{file}: `{id}`: `@of` must be \"caller\" or \"approver\", on a policy with `@ask`")]
    AskOf {
        /// The file.
        file: String,
        /// The policy.
        id: String,
    },
    /// The schema makes it impossible.
    #[error("{file}: `{id}`: {error}")]
    Impossible {
        /// The file.
        file: String,
        /// The policy.
        id: String,
        /// What cannot be.
        error: String,
    },
}

/// Whom a policy has asked.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum AskOf {
    /// Somebody with the role of an approver.
    Approver,
    /// Whoever the configuration says.
    Configured,
    /// The caller.
    Caller,
}

/// One policy.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its id, by which it is named to people.
    pub id: Arc<str>,
    /// The file that it stands in.
    pub file: Arc<str>,
    /// The policy.
    pub policy: Policy,
    /// The form by which lists are decided, if it has a say in them.
    pub listing: Option<Policy>,
    /// What it looks at besides principal, action and resource.
    pub mentions: Mentions,
    /// Why somebody is asked, if it is a `forbid` that a person can lift.
    pub ask: Option<Arc<str>>,
    /// Who is asked then.
    pub ask_of: AskOf,
    /// Why, in the words of whoever wrote it.
    pub reason: Option<Arc<str>>,
}

impl Rule {
    /// All policies of a file. Without an `@id`, a policy is named by its file and its place in it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn all(file: &str, text: &str) -> Result<Vec<Self>, BundleError> {
        let set: PolicySet =
            text.parse().map_err(|error| BundleError::Syntax { file: file.to_owned(), error: told(&error) })?;
        if let Some(template) = set.templates().next() {
            return Err(BundleError::Template { file: file.to_owned(), id: template.id().to_string() });
        }
        let mut policies: Vec<&Policy> = set.policies().collect();
        // The parser numbers them in the order of the file.
        policies.sort_by_key(|policy| policy.id().to_string().trim_start_matches("policy").parse::<u64>().ok());
        policies.iter().enumerate().map(|(place, policy)| Self::new(file, place + 1, policy)).collect()
    }

    fn new(file: &str, place: usize, policy: &Policy) -> Result<Self, BundleError> {
        let id = policy.annotation("id").map_or_else(|| format!("{file}:{place}"), str::to_owned);
        let ask = policy.annotation("ask").map(Into::into);
        let is_permit = policy.effect() == Effect::Permit;
        if ask.is_some() && is_permit {
            return Err(BundleError::AskOnPermit { file: file.to_owned(), id });
        }
        let ask_of = match policy.annotation("of") {
            None => AskOf::Configured,
            Some("approver") if ask.is_some() => AskOf::Approver,
            Some("caller") if ask.is_some() => AskOf::Caller,
            Some(_) => return Err(BundleError::AskOf { file: file.to_owned(), id }),
        };
        let unreadable = |error: String| BundleError::Syntax { file: file.to_owned(), error };
        let policy = policy.new_id(PolicyId::new(&id));
        let form = policy.to_json().map_err(|error| unreadable(error.to_string()))?;
        let mentions = Mentions::of(&form);
        let listing = for_listing(&form, is_permit).filter(|_| ask.is_none());
        let listing = match listing {
            Some(form) => {
                let weaker = Policy::from_json(Some(PolicyId::new(&id)), form);
                Some(weaker.map_err(|error| unreadable(error.to_string()))?)
            }
            None => None,
        };
        Ok(Self {
            listing,
            reason: policy.annotation("reason").map(Into::into),
            id: id.into(),
            file: file.into(),
            policy,
            mentions,
            ask,
            ask_of,
        })
    }

    /// The entry or backend that it is for, as (type, id), where it names one.
    #[must_use]
    pub fn named(&self) -> Option<(String, String)> {
        match self.policy.resource_constraint() {
            ResourceConstraint::Eq(uid) | ResourceConstraint::In(uid) | ResourceConstraint::IsIn(_, uid) => {
                Some((uid.type_name().to_string(), uid.id().unescaped().to_owned()))
            }
            ResourceConstraint::Any | ResourceConstraint::Is(_) => None,
        }
    }

    /// False if its action or the type of its resource rules it out for entries of this kind.
    #[must_use]
    pub fn is_for(&self, entry: &EntryRef<'_>) -> bool {
        let (type_name, action) = words(entry.kind);
        let acts = match self.policy.action_constraint() {
            ActionConstraint::Any => true,
            ActionConstraint::Eq(uid) => uid.id().unescaped() == action,
            ActionConstraint::In(uids) => uids.iter().any(|uid| uid.id().unescaped() == action),
        };
        acts && match self.policy.resource_constraint() {
            ResourceConstraint::Is(of) | ResourceConstraint::IsIn(of, _) => of.to_string() == type_name,
            _ => true,
        }
    }
}

/// An error of the parser with its place.
fn told(error: &cedar_policy::ParseErrors) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_named_by_their_id_or_their_place() {
        let text = "@id(\"first\") permit(principal, action, resource);\npermit(principal, action, resource);";
        let rules = Rule::all("a.cedar", text).unwrap();
        let names: Vec<&str> = rules.iter().map(|rule| &*rule.id).collect();
        assert_eq!(names, ["first", "a.cedar:2"]);
    }

    #[test]
    fn what_cannot_be_used_is_named_with_its_file() {
        for (text, told) in [
            ("permit(principal, action", "a.cedar: "),
            ("permit(principal == ?principal, action, resource);", "is a template"),
            ("@ask(\"sure?\") permit(principal, action, resource);", "`@ask` belongs on a `forbid`"),
            (
                "@ask(\"sure?\") @of(\"me\") forbid(principal, action, resource);",
                "`@of` must be \"caller\" or \"approver\"",
            ),
            ("@of(\"caller\") forbid(principal, action, resource);", "on a policy with `@ask`"),
        ] {
            let error = Rule::all("a.cedar", text).unwrap_err().to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
