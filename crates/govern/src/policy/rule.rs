//! A policy of a bundle, with its inputs.

use super::conditions::{Mentions, for_listing};
use super::entities::words;
use cedar_policy::{ActionConstraint, Effect, Policy, PolicyId, PolicySet, ResourceConstraint};
use signalbox_engine::catalog::EntryRef;
use std::sync::Arc;

/// Error for a bundle that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    /// A file is not Cedar.
    #[error("{file}: {error}")]
    Syntax {
        file: String,
        /// Error of the parser, with its position.
        error: String,
    },
    /// Two policies have the same id.
    #[error("{file}: the id `{id}` is used by another policy already")]
    SameId {
        /// File of the second policy.
        file: String,
        id: String,
    },
    /// The file contains a template, which nothing links.
    #[error("{file}: `{id}` is a template; write it for a role or group instead of a slot")]
    Template {
        file: String,
        /// Id of the template.
        id: String,
    },
    /// A `permit` has `@ask`: it would be bypassed wherever another `permit` applies.
    #[error("{file}: `{id}`: `@ask` belongs on a `forbid`, which a person can then lift")]
    AskOnPermit { file: String, id: String },
    /// `@of` names neither the caller nor an approver.
    #[error("{file}: `{id}`: `@of` must be \"caller\" or \"approver\", on a policy with `@ask`")]
    AskOf { file: String, id: String },
    /// The schema makes the policy impossible.
    #[error("{file}: `{id}`: {error}")]
    Impossible {
        file: String,
        id: String,
        /// Error of the validator.
        error: String,
    },
}

/// Person whose approval a policy requests.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum AskOf {
    /// A person with the approver role.
    Approver,
    /// The caller or an approver, as configured.
    Configured,
    Caller,
}

/// A parsed policy with its annotations.
#[derive(Clone, Debug)]
pub struct PolicyRule {
    /// Id, shown in answers and logs.
    pub id: Arc<str>,
    /// File that contains it.
    pub file: Arc<str>,
    pub policy: Policy,
    /// Form that decides lists, if the policy affects them.
    pub listing: Option<Policy>,
    /// Inputs besides principal, action and resource.
    pub mentions: Mentions,
    /// Reason to request approval, if it is a `forbid` that a person can lift.
    pub ask: Option<Arc<str>>,
    /// Person to ask for that approval.
    pub ask_of: AskOf,
    /// The author's reason for the policy.
    pub reason: Option<Arc<str>>,
}

impl PolicyRule {
    /// Parses all policies of a file. A policy without an `@id` is named by its file and position.
    ///
    /// # Errors
    /// The first error in the file.
    pub fn all(file: &str, text: &str) -> Result<Vec<Self>, BundleError> {
        let set: PolicySet =
            text.parse().map_err(|error| BundleError::Syntax { file: file.to_owned(), error: parse_error(&error) })?;
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

    /// Returns the entry or backend that the policy names, as (type, id).
    #[must_use]
    pub fn named(&self) -> Option<(String, String)> {
        match self.policy.resource_constraint() {
            ResourceConstraint::Eq(uid) | ResourceConstraint::In(uid) | ResourceConstraint::IsIn(_, uid) => {
                Some((uid.type_name().to_string(), uid.id().unescaped().to_owned()))
            }
            ResourceConstraint::Any | ResourceConstraint::Is(_) => None,
        }
    }

    /// Returns false if the policy's action or resource type excludes entries of this kind.
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

/// Formats an error of the parser.
fn parse_error(error: &cedar_policy::ParseErrors) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_named_by_their_id_or_their_place() {
        let text = "@id(\"first\") permit(principal, action, resource);\npermit(principal, action, resource);";
        let rules = PolicyRule::all("a.cedar", text).unwrap();
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
            let error = PolicyRule::all("a.cedar", text).unwrap_err().to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
