//! Browser flow: a ticket with its cookie, the sign-in of a person, and the person's consent.
//!
//! Besides client requests, a person may visit a page of the gateway that is for one caller only, such as the URL by
//! which a call asks for a sign-in at a backend. A person who signs in for that is a visitor, in this browser and for
//! the lifetime of the sign-in.

use crate::attempts::Attempts;
use crate::authorization_request::{AuthorizationRequest, Parameters};
use crate::event::AuthEvent;
use crate::grants::Person;
use crate::moment::{Moment, hashed, same};
use crate::pages::{self, Asking};
use crate::password::PasswordCheck;
use crate::reply::{OauthRefusal, Reply};
use crate::server::{AuthorizationServer, Inner};
use crate::settings::ServerSettings;
use core::net::IpAddr;
use signalbox_engine::bounded::make_room;
use signalbox_engine::rate::address_key;
use std::collections::HashMap;

/// Lifetime of a sign-in, in seconds.
const TIME: u64 = 600;
/// Maximum number of pending sign-ins.
const MAX_SIGN_INS: usize = 1_000;

const LATE: &str = "This sign-in is over, or was begun in another browser. Start again in the application.";
const OFF: &str = "This user is switched off. Ask whoever runs the gateway.";
const WRONG: &str = "User or password is wrong.";
const TOO_MANY: &str = "Too many attempts. Try again in a quarter of an hour.";

/// Tells whether a switch of the gateway has turned the user with this name off.
pub type SwitchedOff<'a> = &'a (dyn Fn(&str) -> bool + Sync);

/// Purpose of a sign-in.
#[derive(Clone, Debug)]
enum Purpose {
    /// Authorization request of a client.
    Client(AuthorizationRequest),
    /// Page of the gateway itself, by its path.
    Visit(String),
}

impl Purpose {
    /// Returns the id of the client, if there is one.
    fn client(&self) -> Option<&str> {
        match self {
            Self::Client(asked) => Some(&asked.client.id),
            Self::Visit(_) => None,
        }
    }

    fn page(&self, ticket: &str, settings: &ServerSettings, wrong: Option<(u16, &str)>) -> Reply {
        let page = match self {
            Self::Client(asked) => pages::sign_in(
                ticket,
                Some(&asked.client.name),
                settings.provider.as_ref().map(|provider| provider.name.as_str()),
                wrong,
            ),
            Self::Visit(_) => pages::sign_in(ticket, None, None, wrong),
        };
        page.with_client(self.client())
    }
}

/// Pending sign-in of a person.
#[derive(Debug)]
struct SignIn {
    purpose: Purpose,
    /// Hash of the cookie that must accompany the ticket.
    cookie: String,
    expires: u64,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// No person has signed in yet.
    Fresh,
    /// This person has signed in and has not answered yet.
    SignedIn(Person),
    /// The person chose the provider, and has not given consent yet.
    Elsewhere,
    /// The person gave consent and was sent to the provider.
    Sent,
}

/// All pending sign-ins, by ticket.
#[derive(Debug)]
pub(crate) struct SignIns {
    open: HashMap<String, SignIn>,
    begun: Attempts,
    by_user: Attempts,
    by_address: Attempts,
}

impl Default for SignIns {
    fn default() -> Self {
        let quarter = 15 * 60;
        Self {
            open: HashMap::new(),
            begun: Attempts::new(100, 60),
            by_user: Attempts::new(10, quarter),
            by_address: Attempts::new(30, quarter),
        }
    }
}

/// Sign-in whose password is being verified.
#[derive(Debug)]
pub struct SignedIn {
    /// Verification of the password, which is slow.
    pub check: PasswordCheck,
    ticket: String,
    user: String,
}

impl SignedIn {
    /// Returns the user name that was entered.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }
}

/// Outcome of submitting a name and a password.
#[derive(Debug)]
pub enum SignInStep {
    /// The reply to send.
    Reply(Reply),
    /// The password has to be verified. Continue with [`AuthorizationServer::checked`].
    Check(Box<SignedIn>),
}

/// Outcome of a person's answer.
#[derive(Debug)]
pub enum ConsentOutcome {
    /// The reply to send.
    Reply(Reply),
    /// The person agreed and has to sign in at the provider. Continue with this ticket at
    /// [`AuthorizationServer::returned`].
    Forward(String),
}

impl SignIns {
    /// Begins a sign-in for a client's request.
    pub fn begin(
        &mut self,
        asked: AuthorizationRequest,
        settings: &ServerSettings,
        address: Option<IpAddr>,
        moment: &Moment,
    ) -> Reply {
        self.ask(Purpose::Client(asked), None, settings, address, moment)
    }

    fn ask(
        &mut self,
        purpose: Purpose,
        wrong: Option<(u16, &str)>,
        settings: &ServerSettings,
        address: Option<IpAddr>,
        moment: &Moment,
    ) -> Reply {
        if !self.begun.admit(&address_key(address), moment.now) {
            return pages::stop(429, "Too many sign-ins were begun from your network; try again in a minute.");
        }
        self.open.retain(|_, one| one.expires > moment.now);
        make_room(&mut self.open, MAX_SIGN_INS, |one| one.expires);
        let (ticket, secret) = (moment.draw(), moment.draw());
        let page = purpose.page(&ticket, settings, wrong);
        let cookie = set_cookie(settings, &ticket, &secret);
        let expires = moment.after(TIME);
        self.open.insert(ticket, SignIn { purpose, cookie: hashed(&secret), expires, stage: Stage::Fresh });
        page.with("set-cookie", cookie)
    }

    /// Returns the sign-in of a form, if it comes from the browser that began it.
    fn find(&mut self, ticket: &str, cookies: &str, settings: &ServerSettings, now: u64) -> Option<&mut SignIn> {
        let found = self.open.get_mut(ticket).filter(|one| one.expires > now)?;
        let name = cookie_name(settings, ticket);
        let mut values = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
        let value = values.find(|(known, _)| *known == name).map(|(_, value)| value)?;
        same(&hashed(value), &found.cookie).then_some(found)
    }

    /// Counts an attempt to sign in. Returns false if the limit is exceeded.
    fn admit(&mut self, user: &str, address: Option<IpAddr>, now: u64) -> bool {
        let by_address = self.by_address.admit(&address_key(address), now);
        by_address && self.by_user.admit(user, now)
    }
}

impl AuthorizationServer {
    /// Handles a submitted name and password.
    pub fn sign_in(&self, form: &str, cookies: &str, address: Option<IpAddr>, moment: &Moment) -> SignInStep {
        let late = || SignInStep::Reply(pages::stop(400, LATE));
        let Some(parameters) = Parameters::read(form) else {
            return late();
        };
        let ticket = parameters.get("ticket").unwrap_or_default();
        let mut inner = self.inner();
        let Inner { sign_ins, users, provider: trusted, .. } = &mut *inner;
        let Some(one) = sign_ins.find(ticket, cookies, &self.settings, moment.now) else {
            return late();
        };
        let purpose = one.purpose.clone();
        let is_withdrawn = parameters.get("provider").is_some() && trusted.is_none();
        if matches!(one.stage, Stage::Sent) || is_withdrawn {
            return late();
        }
        // A new attempt discards a previous sign-in in the same browser.
        one.stage = Stage::Fresh;
        if let (Some(provider), Some(_), Purpose::Client(asked)) =
            (&self.settings.provider, parameters.get("provider"), &purpose)
        {
            one.stage = Stage::Elsewhere;
            return SignInStep::Reply(pages::consent(ticket, asked, &Asking::Provider(&provider.name)));
        }
        let user = parameters.get("user").unwrap_or_default();
        let known = users.knows(user).then_some(user);
        let again = |status, text| {
            SignInStep::Reply(purpose.page(ticket, &self.settings, Some((status, text))).with_tried(known))
        };
        let Ok(check) = users.check(user, parameters.get("password").unwrap_or_default()) else {
            return again(401, WRONG);
        };
        if !sign_ins.admit(user, address, moment.now) {
            return again(429, TOO_MANY);
        }
        SignInStep::Check(Box::new(SignedIn { check, ticket: ticket.to_owned(), user: user.to_owned() }))
    }

    /// Continues after the password was verified.
    pub fn checked(&self, checked: &SignedIn, is_good: bool, off: SwitchedOff<'_>, now: u64) -> Reply {
        let mut inner = self.inner();
        let Inner { sign_ins, users, .. } = &mut *inner;
        let Some(one) = sign_ins.open.get_mut(&checked.ticket).filter(|one| one.expires > now) else {
            return pages::stop(400, LATE);
        };
        let person = checked.check.account.as_deref().map(|account| Person::local(&checked.user, account));
        // The password may have been replaced while it was being verified.
        let Some(person) = person.filter(|person| is_good && !person.is_gone(users, None)) else {
            let page = one.purpose.page(&checked.ticket, &self.settings, Some((401, WRONG)));
            return page.with_tried(users.knows(&checked.user).then_some(&checked.user));
        };
        if off(&person.name) {
            let page = one.purpose.page(&checked.ticket, &self.settings, Some((403, OFF)));
            return page.with_person(Some(person.name));
        }
        one.stage = Stage::SignedIn(person);
        let page = match &one.purpose {
            Purpose::Client(asked) => pages::consent(&checked.ticket, asked, &Asking::User(&checked.user)),
            Purpose::Visit(path) => Reply::redirect(path.clone()),
        };
        let event = AuthEvent::of(&checked.user, one.purpose.client());
        sign_ins.by_user.clear(&checked.user);
        page.with_event(event)
    }

    /// Replies that the password cannot be verified now, because too many others are.
    pub fn busy(&self, checked: &SignedIn) -> Reply {
        let inner = self.inner();
        let Some(one) = inner.sign_ins.open.get(&checked.ticket) else {
            return pages::stop(400, LATE);
        };
        let text = "Many people sign in right now. Try again in a moment.";
        one.purpose.page(&checked.ticket, &self.settings, Some((503, text)))
    }

    /// Begins a sign-in for a page of the gateway; afterwards the browser is sent back to `path`. With `is_other`, the
    /// person is signed in as another one than the page is for, and may sign in again.
    pub fn visit(&self, path: &str, is_other: bool, address: Option<IpAddr>, moment: &Moment) -> Reply {
        let wrong =
            is_other.then_some((403, "This page is for another user. Sign in as the person who was sent here."));
        self.inner().sign_ins.ask(Purpose::Visit(path.to_owned()), wrong, &self.settings, address, moment)
    }

    /// Returns the local users who have signed in in this browser to visit a page of the gateway.
    #[must_use]
    pub fn visitors(&self, cookies: &str, now: u64) -> Vec<String> {
        let mut inner = self.inner();
        let names: Vec<&str> = cookies.split(';').filter_map(|pair| Some(pair.trim().split_once('=')?.0)).collect();
        let is_named = |ticket: &str| names.contains(&cookie_name(&self.settings, ticket).as_str());
        let tickets: Vec<String> = inner.sign_ins.open.keys().filter(|ticket| is_named(ticket)).cloned().collect();
        let mut visitor = |ticket: &String| {
            let one = inner.sign_ins.find(ticket, cookies, &self.settings, now)?;
            match (&one.purpose, &one.stage) {
                (Purpose::Visit(_), Stage::SignedIn(person)) => Some(person.clone()),
                _ => None,
            }
        };
        let found: Vec<Person> = tickets.iter().filter_map(&mut visitor).collect();
        found.into_iter().filter(|person| !person.is_gone(&inner.users, None)).map(|person| person.name).collect()
    }

    /// Handles a person's answer to the consent page.
    pub fn consent(&self, form: &str, cookies: &str, off: SwitchedOff<'_>, moment: &Moment) -> ConsentOutcome {
        let late = || ConsentOutcome::Reply(pages::stop(400, LATE));
        let Some(parameters) = Parameters::read(form) else {
            return late();
        };
        let ticket = parameters.get("ticket").unwrap_or_default();
        let mut inner = self.inner();
        let Some(one) = inner.sign_ins.find(ticket, cookies, &self.settings, moment.now) else {
            return late();
        };
        let is_allowed = parameters.get("answer") == Some("allow");
        let (person, declined) = match (&one.stage, &one.purpose) {
            (Stage::Elsewhere, _) if is_allowed => {
                one.stage = Stage::Sent;
                return ConsentOutcome::Forward(ticket.to_owned());
            }
            (Stage::Elsewhere, Purpose::Client(_)) => (None, None),
            (Stage::SignedIn(person), Purpose::Client(_)) if is_allowed => (Some(person.clone()), None),
            (Stage::SignedIn(person), Purpose::Client(_)) => (None, Some(person.name.clone())),
            _ => return late(),
        };
        let reply = self.answered(&mut inner, ticket, person, off, moment);
        ConsentOutcome::Reply(match declined {
            Some(person) => reply.with_person(Some(person)),
            None => reply,
        })
    }

    /// Returns true if this browser was sent to the provider with this ticket.
    #[must_use]
    pub fn is_sent(&self, ticket: &str, cookies: &str, now: u64) -> bool {
        let mut inner = self.inner();
        let found = inner.sign_ins.find(ticket, cookies, &self.settings, now);
        found.is_some_and(|one| matches!(one.stage, Stage::Sent))
    }

    /// Continues when a person for whom [`Self::is_sent`] holds returns from the provider. `person` is `None` if the
    /// provider names none.
    pub fn returned(&self, ticket: &str, person: Option<Person>, off: SwitchedOff<'_>, moment: &Moment) -> Reply {
        self.answered(&mut self.inner(), ticket, person, off, moment)
    }

    /// Returns the page for a browser that returns too late, or was never sent.
    #[must_use]
    pub fn late(&self) -> Reply {
        pages::stop(400, LATE)
    }

    /// Returns the page that sends the browser to the provider.
    #[must_use]
    pub fn forward(&self, url: &str) -> Reply {
        pages::forward(url)
    }

    /// Ends a sign-in, with a code if the person allowed it.
    fn answered(
        &self,
        inner: &mut Inner,
        ticket: &str,
        person: Option<Person>,
        off: SwitchedOff<'_>,
        moment: &Moment,
    ) -> Reply {
        let Some(SignIn { purpose: Purpose::Client(asked), .. }) = inner.sign_ins.open.remove(ticket) else {
            return pages::stop(400, LATE);
        };
        let is_gone = |person: &Person| person.is_gone(&inner.users, inner.provider.as_deref());
        let reply = match person.filter(|person| !is_gone(person)) {
            Some(person) if off(&person.name) => {
                let refused =
                    asked.refused(&self.settings, OauthRefusal::new("access_denied", "the user is switched off"));
                refused.with_person(Some(person.name))
            }
            Some(person) => {
                let code = moment.draw();
                let event = AuthEvent::of(&person.name, Some(&asked.client.id));
                let reply = asked.answer(&self.settings, &[("code", &code)]).with_event(event);
                inner.codes.keep(&code, asked, person, moment);
                reply
            }
            None => asked.refused(&self.settings, OauthRefusal::new("access_denied", "the person did not allow it")),
        };
        reply.with("set-cookie", clear_cookie(&self.settings, ticket))
    }
}

/// Returns the cookie name of a ticket. A name per ticket lets a browser have several open. The `__Host-` prefix
/// requires TLS.
fn cookie_name(settings: &ServerSettings, ticket: &str) -> String {
    let prefix = if settings.is_secure() { "__Host-" } else { "" };
    let short: String = ticket.chars().take(8).collect();
    format!("{prefix}signalbox-{short}")
}

fn set_cookie(settings: &ServerSettings, ticket: &str, value: &str) -> String {
    let secure = if settings.is_secure() { "; Secure" } else { "" };
    format!("{}={value}; Path=/; Max-Age={TIME}; HttpOnly; SameSite=Lax{secure}", cookie_name(settings, ticket))
}

fn clear_cookie(settings: &ServerSettings, ticket: &str) -> String {
    set_cookie(settings, ticket, "").replace(&format!("Max-Age={TIME}"), "Max-Age=0")
}
