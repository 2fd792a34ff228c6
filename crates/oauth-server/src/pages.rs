//! HTML pages for people. They have no scripts, images or external resources.

use crate::authorization_request::AuthorizationRequest;
use crate::client::{form_target, host};
use crate::event::AuthEvent;
use crate::metadata::{CONSENT, SIGN_IN};
use crate::reply::Reply;
use signalbox_oauth_client::browser_page;
pub use signalbox_oauth_client::browser_page::escaped;

/// Renders the sign-in page, for a client or for the gateway itself.
pub(crate) fn sign_in(ticket: &str, client: Option<&str>, provider: Option<&str>, wrong: Option<(u16, &str)>) -> Reply {
    let why = match client {
        Some(name) => format!("<b>{}</b> wants to use the tools of this gateway on your behalf.", escaped(name)),
        None => "This page is only for the person who was sent to it.".to_owned(),
    };
    let (status, told) = match wrong {
        Some((status, text)) => (status, format!("<p class=\"bad\" role=\"alert\">{}</p>", escaped(text))),
        None => (200, String::new()),
    };
    let hidden = hidden(ticket);
    let elsewhere = provider.map_or_else(String::new, |provider| {
        format!(
            "<form method=\"post\" action=\"{SIGN_IN}\">{hidden}\
             <button name=\"provider\" value=\"1\">Sign in with {}</button></form>",
            escaped(provider)
        )
    });
    let body = format!(
        "<h1>Sign in</h1><p>{why}</p>{told}\
         <form method=\"post\" action=\"{SIGN_IN}\">{hidden}\
         <label>User<input name=\"user\" autocomplete=\"username\" autocapitalize=\"none\" required autofocus></label>\
         <label>Password<input name=\"password\" type=\"password\" autocomplete=\"current-password\" required></label>\
         <button>Sign in</button></form>{elsewhere}"
    );
    let page = page(status, "Sign in", &body, "'self'");
    match wrong {
        Some((_, why)) => page.with_event(AuthEvent::refused(why)),
        None => page,
    }
}

/// Renders a page that forwards the browser to the provider. A redirect in response to a form would not work for every
/// provider: the page's policy covers the redirects too.
pub(crate) fn forward(url: &str) -> Reply {
    let url = escaped(url);
    let body = format!(
        "<meta http-equiv=\"refresh\" content=\"0;url={url}\"><h1>Sign in</h1><p><a href=\"{url}\">Go on to sign in</a></p>"
    );
    page(200, "Sign in", &body, "'none'")
}

/// Person who is asked for consent.
pub(crate) enum Asking<'a> {
    /// A local user who has signed in.
    User(&'a str),
    /// A person who will sign in at this provider.
    Provider(&'a str),
}

/// Renders the question whether the client may have access.
pub(crate) fn consent(ticket: &str, asked: &AuthorizationRequest, asking: &Asking<'_>) -> Reply {
    let who = match asking {
        Asking::User(user) => format!("You are signed in as <b>{}</b>.", escaped(user)),
        Asking::Provider(name) => format!("If you allow it, you go on to sign in with <b>{}</b>.", escaped(name)),
    };
    let scopes = match asked.scopes.is_empty() {
        true => "the tools, prompts and resources that are open to you".to_owned(),
        false => asked.scopes.iter().map(|scope| escaped(scope)).collect::<Vec<_>>().join(", "),
    };
    let known_by = match asked.client.id.starts_with("https://") {
        true => format!("published at {}", escaped(&asked.client.id)),
        false => "as it calls itself; the name is not verified".to_owned(),
    };
    let body = format!(
        "<h1>Allow access?</h1><p>{who}</p><dl><dt>Application</dt><dd><b>{}</b> ({known_by})</dd><dt>May use</dt><dd>{scopes}</dd>\
         <dt>Goes on to</dt><dd>{}</dd></dl><form method=\"post\" action=\"{CONSENT}\">{}\
         <button name=\"answer\" value=\"allow\">Allow</button><button name=\"answer\" value=\"deny\">Deny</button></form>",
        escaped(&asked.client.name),
        escaped(&host(&asked.redirect_uri)),
        hidden(ticket),
    );
    page(200, "Allow access?", &body, &format!("'self' {}", form_target(&asked.redirect_uri)))
}

/// Renders an error page.
pub(crate) fn stop(status: u16, text: &str) -> Reply {
    let body = format!("<h1>This did not work</h1><p>{}</p>", escaped(text));
    page(status, "This did not work", &body, "'none'").with_event(AuthEvent::refused(text))
}

/// Renders a page of the gateway. `body` is HTML; untrusted text in it must be [`escaped`]. `forms` is the
/// `form-action` of the content security policy.
#[must_use]
pub fn page(status: u16, title: &str, body: &str, forms: &str) -> Reply {
    let (html, style) = (browser_page::document(title, body), browser_page::style_source());
    Reply::page(status, html, &style, forms)
}

fn hidden(ticket: &str) -> String {
    format!("<input type=\"hidden\" name=\"ticket\" value=\"{}\">", escaped(ticket))
}
