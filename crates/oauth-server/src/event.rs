//! Events of replies for the audit log.

use crate::reply::Reply;
use serde_json::Value;

/// Event for the audit log. It contains no secret, code or token, and a name that failed to sign in only if it is that
/// of a user: any other might be a password.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct AuthEvent {
    /// Name of the authenticated person.
    pub person: Option<String>,
    /// Name of the user whose password failed.
    pub tried: Option<String>,
    /// Client id; as in the request, if it was refused.
    pub client: Option<String>,
    /// Details, as a JSON object.
    pub about: Value,
    /// Reason of the refusal; `None` for a success.
    pub refused: Option<String>,
}

impl AuthEvent {
    /// Creates the event of a person's action with a client.
    pub(crate) fn of(person: &str, client: Option<&str>) -> Self {
        Self { person: Some(person.to_owned()), client: client.map(str::to_owned), ..Self::default() }
    }

    pub(crate) fn refused(why: impl Into<String>) -> Self {
        Self { refused: Some(why.into()), ..Self::default() }
    }
}

impl Reply {
    pub(crate) fn with_event(self, event: AuthEvent) -> Self {
        Self { event: Some(Box::new(event)), ..self }
    }

    /// Sets the client of the event, if there is an event.
    pub(crate) fn with_client(mut self, client: Option<&str>) -> Self {
        if let Some(event) = &mut self.event {
            event.client = client.map(str::to_owned);
        }
        self
    }

    /// Sets the user whose password failed, if there is an event.
    pub(crate) fn with_tried(mut self, user: Option<&str>) -> Self {
        if let Some(event) = &mut self.event {
            event.tried = user.map(str::to_owned);
        }
        self
    }

    /// Sets the person of the event, if there is an event.
    pub(crate) fn with_person(mut self, person: Option<String>) -> Self {
        if let Some(event) = &mut self.event {
            event.person = person;
        }
        self
    }
}
