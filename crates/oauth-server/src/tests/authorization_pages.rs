//! Requests for authorization, and the pages on which a user consents.

use super::*;

#[test]
fn the_consent_page_shows_client_scopes_and_redirect_host_and_nothing_is_given_without_it() {
    let mut scene = Scene::new();
    let client = scene.client();
    let ticket = scene.begin(&client);
    // Before anybody has signed in, there is nothing to say yes to.
    assert_eq!(scene.consent(&ticket, "allow").status, 400);
    let ticket = scene.begin(&client);
    let page = scene.sign_in(&ticket, "ada", PASSWORD);
    for shown in ["Editor &lt;b&gt;", "mcp, files:write", "127.0.0.1:3000", "<b>ada</b>"] {
        assert!(page.body.contains(shown), "{shown}: {}", page.body);
    }
    assert!(!page.body.contains("<script") && !page.body.contains("unknown"));
    // The same person is asked again for the same client: there is no consent that another request could use.
    let denied = scene.consent(&ticket, "deny");
    assert_eq!((denied.status, query_of(&denied, "error").as_deref()), (303, Some("access_denied")));
    assert_eq!(scene.consent(&ticket, "allow").status, 400, "a ticket is good for one answer");
    let ticket = scene.begin(&client);
    assert!(scene.sign_in(&ticket, "ada", PASSWORD).body.contains("Allow access?"));
}

#[test]
fn pages_are_safe_against_csrf_and_framing() {
    let mut scene = Scene::new();
    let client = scene.client();
    let ticket = scene.begin(&client);
    let own = std::mem::take(&mut scene.cookies);
    // Another site can post the form, but not with the cookie of this ticket.
    for foreign in ["", "__Host-signalbox-00000000=x", &own[..own.len() - 1], &own.replace("__Host-", "")] {
        scene.cookies = foreign.to_owned();
        assert_eq!(scene.sign_in(&ticket, "ada", PASSWORD).status, 400, "{foreign}");
    }
    scene.cookies = format!("other=1; {own}; more=2");
    let page = scene.sign_in(&ticket, "ada", PASSWORD);
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("frame-ancestors 'none'") && policy.contains("default-src 'none'"), "{policy}");
    assert!(policy.contains("form-action 'self' http://127.0.0.1:3000;"), "{policy}");
    assert_eq!((page.header("x-frame-options"), page.header("cache-control")), (Some("DENY"), Some("no-store")));
    scene.cookies = String::new();
    assert_eq!(scene.consent(&ticket, "allow").status, 400);
    // A ticket of another browser is worth nothing in this one.
    let mine = scene.begin(&client);
    assert_eq!(scene.consent(&ticket, "allow").status, 400);
    assert_eq!(scene.sign_in(&mine, "ada", PASSWORD).status, 200);
}

#[test]
fn a_wrong_redirect_uri_is_told_to_the_person_and_never_followed() {
    let scene = Scene::new();
    let client = scene.client();
    for wrong in ["https://evil.example/callback", "http://127.0.0.1:3000/callback2", "javascript:alert(1)"] {
        let reply = scene.asked(&client, &[("redirect_uri", wrong)]);
        assert_eq!((reply.status, reply.header("location")), (400, None), "{wrong}");
    }
    assert_eq!(scene.asked(&client, &[("redirect_uri", "http://127.0.0.1:54321/callback")]).status, 200);
    assert_eq!(scene.asked(&client, &[("redirect_uri", "")]).status, 200, "there is only one");
    let reply = scene.asked("nobody", &[]);
    assert_eq!((reply.status, reply.header("location")), (400, None));
    let twice = format!("client_id={client}&client_id={client}");
    let Authorize::Reply(reply) = scene.server.authorize(&twice, None, &scene.moment()) else { panic!() };
    assert_eq!(reply.status, 400);
}

#[test]
fn cookies_are_bound_to_the_host_and_to_one_request() {
    let scene = Scene::new();
    let client = scene.client();
    let cookie = |reply: &Reply| reply.header("set-cookie").unwrap().to_owned();
    let (one, two) = (cookie(&scene.asked(&client, &[])), cookie(&scene.asked(&client, &[])));
    assert!(one.starts_with("__Host-signalbox-"), "{one}");
    for part in ["; Path=/", "; HttpOnly", "; SameSite=Lax", "; Secure"] {
        assert!(one.contains(part), "{one}");
    }
    assert!(!one.contains("Domain"));
    assert_ne!(one.split('=').next(), two.split('=').next(), "each request has a cookie of its own");
    let plain = Scene::with(ServerSettings { issuer: "http://127.0.0.1:8080".to_owned(), ..settings() }, "");
    let cookie = cookie(&plain.asked(&plain.client(), &[]));
    assert!(cookie.starts_with("signalbox-") && !cookie.contains("Secure"), "{cookie}");
}

#[test]
fn the_state_of_the_client_comes_back_with_the_issuer_in_every_answer() {
    let mut scene = Scene::new();
    let client = scene.client();
    let ticket = scene.begin(&client);
    scene.sign_in(&ticket, "ada", PASSWORD);
    let reply = scene.consent(&ticket, "allow");
    assert_eq!(query_of(&reply, "state").as_deref(), Some("s &1"));
    assert_eq!(query_of(&reply, "iss").as_deref(), Some(ISSUER));
    assert!(reply.header("set-cookie").unwrap().contains("Max-Age=0"));
    let refused = scene.asked(&client, &[("response_type", "token")]);
    assert_eq!(query_of(&refused, "error").as_deref(), Some("unsupported_response_type"));
    assert_eq!(
        (query_of(&refused, "state").as_deref(), query_of(&refused, "iss").as_deref()),
        (Some("s &1"), Some(ISSUER))
    );
}

#[test]
fn pkce_by_s256_is_required_and_the_resource_must_be_ours() {
    let scene = Scene::new();
    let client = scene.client();
    for (name, value, error) in [
        ("code_challenge_method", "plain", "invalid_request"),
        ("code_challenge_method", "", "invalid_request"),
        ("code_challenge", "", "invalid_request"),
        ("code_challenge", "short", "invalid_request"),
        ("response_mode", "fragment", "invalid_request"),
        ("resource", "https://other.example/mcp", "invalid_target"),
        ("resource", "https://box.example/mcp#x", "invalid_target"),
        ("request_uri", "https://evil.example/r", "request_not_supported"),
        ("prompt", "none", "login_required"),
    ] {
        let reply = scene.asked(&client, &[(name, value)]);
        assert_eq!(query_of(&reply, "error").as_deref(), Some(error), "{name}={value}");
        assert!(query_of(&reply, "code").is_none());
    }
    for same in ["https://BOX.example/mcp", "https://box.example/mcp/", ""] {
        assert_eq!(scene.asked(&client, &[("resource", same)]).status, 200, "{same}");
    }
}
