//! Dialogues of a client, a browser and the server, with time and randomness in hand.

mod providers;
mod scene;

use crate::*;
use scene::*;
use serde_json::{Value, json};
use signalbox_oauth_client::form;
use std::net::IpAddr;

#[test]
fn the_metadata_say_what_mcp_clients_look_for() {
    let scene = Scene::new();
    let document = json_of(&scene.server.metadata());
    assert_eq!(document["issuer"], ISSUER);
    assert_eq!(document["code_challenge_methods_supported"], json!(["S256"]));
    for flag in ["client_id_metadata_document_supported", "authorization_response_iss_parameter_supported"] {
        assert_eq!(document[flag], true, "{flag}");
    }
    for endpoint in ["authorization", "token", "registration", "revocation"] {
        let address = document[format!("{endpoint}_endpoint")].as_str().unwrap();
        assert!(address.starts_with(ISSUER), "{endpoint}: {address}");
    }
    let unread = Scene::with(ServerSettings { client_documents: false, ..settings() }, "");
    assert_eq!(json_of(&unread.server.metadata())["client_id_metadata_document_supported"], false);
    let reply = unread.asked(DOCUMENT, &[]);
    assert!(reply.status == 400 && reply.body.contains("are not read here"), "{reply:?}");
    let closed = Scene::with(ServerSettings { registration: false, ..settings() }, "");
    assert_eq!(json_of(&closed.server.metadata()).get("registration_endpoint"), None);
    assert_eq!(closed.register(&[BACK]).status, 403);
}

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

/// A user who is switched off neither signs in nor gets tokens, and each attempt is told of with the name.
#[test]
fn a_user_who_is_switched_off_does_not_sign_in() {
    let refused = |reply: &Reply| {
        reply.event.as_ref().is_some_and(|event| {
            event.person.as_deref() == Some("ada")
                && event.refused.as_ref().is_some_and(|why| why.contains("switched off"))
        })
    };
    let mut scene = Scene::new();
    let client = scene.client();
    let (_, refresh) = scene.tokens(&client);
    let code = scene.code(&client);
    let signed_in = scene.begin(&client);
    assert_eq!(scene.sign_in(&signed_in, "ada", PASSWORD).status, 200);
    scene.off.set(true);
    let consented = scene.consent(&signed_in, "allow");
    assert!(refused(&consented) && query_of(&consented, "code").is_none(), "{consented:?}");
    assert_eq!(query_of(&consented, "error").as_deref(), Some("access_denied"));
    let fresh = scene.begin(&client);
    let page = scene.sign_in(&fresh, "ada", PASSWORD);
    assert!(page.status == 403 && refused(&page), "{page:?}");
    assert_eq!(scene.sign_in(&fresh, "ada", "wrong").status, 401, "only who knows the password is told");
    assert_eq!(scene.consent(&fresh, "allow").status, 400, "nobody is signed in");
    for reply in [scene.redeem(&client, &code, &[]), scene.refresh(&client, &refresh)] {
        assert!(reply.status == 400 && refused(&reply), "{reply:?}");
    }
    scene.off.set(false);
    assert_eq!(scene.refresh(&client, &refresh).status, 200, "the grant was kept");
    assert_eq!(scene.sign_in(&fresh, "ada", PASSWORD).status, 200);
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
    // A ticket of somebody else's browser is worth nothing in this one.
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

#[test]
fn a_client_by_metadata_document_is_who_publishes_at_that_address() {
    let mut scene = Scene::new();
    assert!(matches!(scene.ask(DOCUMENT, &[]), Authorize::Document(url) if url == DOCUMENT));
    let document = json!({"client_id": DOCUMENT, "client_name": "Editor", "redirect_uris": [BACK]});
    let changed = |name: &str, value: Value| {
        let mut document = document.clone();
        document[name] = value;
        document.to_string()
    };
    for bad in [
        changed("client_id", json!("https://editor.example/other.json")),
        changed("client_id", json!("https://EDITOR.example/client.json")),
        changed("client_id", Value::Null),
        changed("client_name", Value::Null),
        changed("redirect_uris", json!([])),
        changed("redirect_uris", json!(["https://evil.example#x"])),
        changed("client_secret", json!("x")),
        changed("token_endpoint_auth_method", json!("client_secret_basic")),
        changed("logo_uri", json!("x".repeat(20_000))),
        "<html>".to_owned(),
    ] {
        scene.server.learn(DOCUMENT, Ok(bad.as_bytes()), scene.now.get());
        let reply = scene.asked(DOCUMENT, &[]);
        assert_eq!((reply.status, reply.header("location")), (400, None), "{bad}");
    }
    scene.server.learn(DOCUMENT, Err(DocumentError::Unreachable("connection refused".to_owned())), scene.now.get());
    let reply = scene.asked(DOCUMENT, &[]);
    assert!(
        reply.status == 400 && reply.body.contains(DOCUMENT) && reply.body.contains("connection refused"),
        "{reply:?}"
    );
    scene.server.learn(DOCUMENT, Ok(document.to_string().as_bytes()), scene.now.get());
    let reply = scene.asked(DOCUMENT, &[("redirect_uri", "https://evil.example/back")]);
    assert_eq!((reply.status, reply.header("location")), (400, None));
    let (access, refresh) = scene.tokens(DOCUMENT);
    assert_eq!(claims(&access)["client_id"], DOCUMENT);
    assert_eq!(scene.refresh(DOCUMENT, &refresh).status, 200);
    // What was read is read again after a while.
    scene.pass(3_600);
    assert!(matches!(scene.ask(DOCUMENT, &[]), Authorize::Document(_)));
    for not_fetched in ["http://editor.example/client.json", "https://editor.example/", "https://editor.example/a/../b"]
    {
        assert_eq!(scene.asked(not_fetched, &[]).status, 400, "{not_fetched}");
    }
}

#[test]
fn refresh_tokens_are_rotated_and_one_that_comes_twice_ends_all_tokens_of_its_grant() {
    let mut scene = Scene::new();
    let client = scene.client();
    let (_, first) = scene.tokens(&client);
    let (access, second) = pair_of(&scene.refresh(&client, &first));
    assert_ne!(first, second);
    let (_, third) = pair_of(&scene.refresh(&client, &second));
    // Somebody has kept the second one.
    assert_eq!(error_of(&scene.refresh(&client, &second)), "invalid_grant");
    assert_eq!(error_of(&scene.refresh(&client, &third)), "invalid_grant", "the client's own is over too");
    let revoked: Vec<String> = scene.server.revoked().into_iter().map(|(id, _)| id).collect();
    assert!(revoked.contains(&claims(&access)["jti"].as_str().unwrap().to_owned()));
    // Another grant is not touched by that, and another client cannot use it.
    let (_, other) = scene.tokens(&client);
    assert_eq!(error_of(&scene.refresh("somebody", &other)), "invalid_grant");
    assert_eq!(scene.refresh(&client, &other).status, 200);
    assert_eq!(error_of(&scene.refresh(&client, "nonsense")), "invalid_grant");
}

#[test]
fn a_code_is_good_once_for_a_minute_and_only_with_its_verifier() {
    let mut scene = Scene::new();
    let client = scene.client();
    let code = scene.code(&client);
    let reply = scene.redeem(&client, &code, &[]);
    let (access, refresh) = pair_of(&reply);
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let said = claims(&access);
    assert_eq!((&said["iss"], &said["aud"], &said["sub"]), (&json!(ISSUER), &json!(RESOURCE), &json!("ada")));
    assert_eq!((&said["scope"], &json_of(&reply)["expires_in"]), (&json!("mcp files:write"), &json!(600)));
    // The code again: whoever has it has stolen it, or was stolen from.
    assert_eq!(error_of(&scene.redeem(&client, &code, &[])), "invalid_grant");
    assert_eq!(error_of(&scene.refresh(&client, &refresh)), "invalid_grant");
    for (name, value, error) in [
        ("code_verifier", "x".repeat(43), "invalid_grant"),
        ("code_verifier", "short".to_owned(), "invalid_grant"),
        ("code_verifier", String::new(), "invalid_request"),
        ("redirect_uri", "http://127.0.0.1:3001/callback".to_owned(), "invalid_grant"),
        ("redirect_uri", String::new(), "invalid_grant"),
        ("client_id", "somebody".to_owned(), "invalid_grant"),
        ("client_id", String::new(), "invalid_request"),
        ("resource", "https://other.example".to_owned(), "invalid_target"),
        ("grant_type", "password".to_owned(), "unsupported_grant_type"),
    ] {
        let code = scene.code(&client);
        assert_eq!(error_of(&scene.redeem(&client, &code, &[(name, &value)])), error, "{name}={value}");
        if error == "invalid_grant" {
            assert_eq!(error_of(&scene.redeem(&client, &code, &[])), error, "a code is not tried twice");
        }
    }
    let code = scene.code(&client);
    scene.pass(60);
    assert_eq!(error_of(&scene.redeem(&client, &code, &[])), "invalid_grant");
}

#[test]
fn sign_ins_are_limited_per_user_and_per_address_and_tell_nothing_of_who_exists() {
    let mut scene = Scene::new();
    let client = scene.client();
    let ticket = scene.begin(&client);
    let wrong = scene.sign_in(&ticket, "ada", "wrong password");
    let nobody = scene.sign_in(&ticket, "eve", "wrong password");
    assert_eq!((wrong.status, &wrong.body), (nobody.status, &nobody.body));
    assert_eq!(wrong.status, 401);
    let address = |n: u8| IpAddr::from([192, 0, 2, n]);
    for n in 0..9 {
        assert_eq!(scene.sign_in_from(address(n), &ticket, "ada", "wrong password").status, 401, "{n}");
    }
    assert_eq!(scene.sign_in_from(address(20), &ticket, "ada", PASSWORD).status, 429, "not even the right one");
    for n in 0..28 {
        scene.sign_in_from(address(99), &ticket, &format!("user{n}"), "");
    }
    for n in 28..30 {
        scene.sign_in_from(address(99), &ticket, &format!("user{n}"), "");
    }
    assert_eq!(scene.sign_in_from(address(99), &ticket, "grace", "wrong password").status, 429);
    scene.pass(15 * 60);
    let ticket = scene.begin(&client);
    assert_eq!(scene.sign_in(&ticket, "ada", PASSWORD).status, 200);
}

#[test]
fn registration_is_bounded_in_rate_count_and_size() {
    let scene = Scene::new();
    for n in 0..20 {
        assert_eq!(scene.register(&[BACK]).status, 201, "{n}");
    }
    assert_eq!(scene.register(&[BACK]).status, 429);
    // From many addresses: the count is bounded, and clients that nobody used give way after a day.
    let from = |n: u32| {
        let body = json!({"redirect_uris": [BACK]}).to_string();
        scene.server.register(body.as_bytes(), Some(IpAddr::from(n.to_be_bytes())), &scene.moment()).status
    };
    let many: Vec<u16> = (1..1_200).map(from).collect();
    assert!(many.contains(&201) && many.last() == Some(&429), "{:?}", many.last());
    scene.pass(24 * 3_600);
    assert_eq!(from(5_000), 201);
    let bad = |body: &str| scene.server.register(body.as_bytes(), Some(IpAddr::from([9, 9, 9, 9])), &scene.moment());
    assert_eq!(bad("[]").status, 400);
    assert_eq!(bad(r#"{"redirect_uris":["http://evil.example/"]}"#).status, 400);
}

#[test]
fn whoever_opens_a_page_for_one_caller_has_to_sign_in_as_that_caller() {
    const NOBODY: [&str; 0] = [];
    let mut scene = Scene::new();
    let client = scene.client();
    let reply = scene.server.visit("/auth/connect/abc", false, Some(HERE), &scene.moment());
    assert!(reply.status == 200 && !reply.body.contains("wants to use"), "{reply:?}");
    scene.cookies = reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let ticket = ticket(&reply);
    assert_eq!(scene.server.visitors(&scene.cookies, scene.now.get()), NOBODY, "a cookie alone is nobody");
    let back = scene.sign_in(&ticket, "ada", PASSWORD);
    assert_eq!((back.status, back.header("location")), (303, Some("/auth/connect/abc")));
    assert_eq!(scene.server.visitors(&scene.cookies, scene.now.get()), ["ada"]);
    assert_eq!(scene.consent(&ticket, "allow").status, 400, "a visit gives nothing to any client");
    // Another browser is not the visitor, and whoever signs in for a client is none.
    let visit = scene.cookies.clone();
    for foreign in ["", &visit[..visit.len() - 1], "signalbox-abcdefgh=x"] {
        assert_eq!(scene.server.visitors(foreign, scene.now.get()), NOBODY, "{foreign}");
    }
    let ticket = scene.begin(&client);
    scene.sign_in(&ticket, "ada", PASSWORD);
    assert_eq!(scene.server.visitors(&scene.cookies, scene.now.get()), NOBODY);
    scene.pass(600);
    assert_eq!(scene.server.visitors(&visit, scene.now.get()), NOBODY, "a visit is over after a while");
}

#[test]
fn rfc_7009_a_refresh_token_that_is_given_back_ends_its_grant_and_an_access_token_itself() {
    let mut scene = Scene::new();
    let client = scene.client();
    let (access, refresh) = scene.tokens(&client);
    let revoke = |token: &str| scene.server.revoke(&form::write(&[("token", token), ("client_id", &client)])).status;
    assert_eq!((revoke("nonsense"), revoke("a.b.c")), (200, 200));
    assert!(scene.server.revoked().is_empty());
    assert_eq!(revoke(&access), 200);
    assert_eq!(scene.server.revoked()[0].0, claims(&access)["jti"]);
    let (access, refresh) = pair_of(&scene.refresh(&client, &refresh));
    assert_eq!(revoke(&refresh), 200);
    assert_eq!(error_of(&scene.refresh(&client, &refresh)), "invalid_grant");
    assert!(scene.server.revoked().iter().any(|(id, _)| claims(&access)["jti"] == **id));
    assert_eq!(scene.server.revoke("").status, 400);
}

/// RFC 7009, section 2.1: a client cannot end a token of another client, nor any token without saying for which
/// client.
#[test]
fn a_client_revokes_its_own_tokens_only() {
    let mut scene = Scene::new();
    let (client, other) = (scene.client(), scene.client());
    assert_ne!(client, other);
    let (access, refresh) = scene.tokens(&client);
    for token in [&access, &refresh] {
        for (form, error) in [
            (form::write(&[("token", token), ("client_id", &other)]), "invalid_grant"),
            (form::write(&[("token", token), ("client_id", "made-up")]), "invalid_grant"),
            (form::write(&[("token", token)]), "invalid_request"),
        ] {
            let reply = scene.server.revoke(&form);
            assert_eq!((reply.status, error_of(&reply).as_str()), (400, error), "{form}");
            assert!(reply.event.is_some(), "refusals are recorded");
        }
    }
    assert!(scene.server.revoked().is_empty());
    assert_eq!(scene.refresh(&client, &refresh).status, 200, "the grant is still there");
}

#[test]
fn clients_grants_and_revoked_tokens_outlive_the_process_and_secrets_are_not_in_what_is_kept() {
    let mut scene = Scene::new();
    let client = scene.client();
    let (access, refresh) = scene.tokens(&client);
    let stored = scene.server.unsaved().unwrap().unwrap();
    assert_eq!(scene.server.unsaved().unwrap(), None);
    for secret in [&access, &refresh, &refresh.split('.').next_back().unwrap().to_owned(), &PASSWORD.to_owned()] {
        assert!(!stored.contains(secret.as_str()));
    }
    let next = Scene::with(settings(), &stored);
    next.seed.set(100);
    assert_eq!(next.asked(&client, &[]).status, 200);
    assert_eq!(next.refresh(&client, &refresh).status, 200);
    assert_eq!(next.server.replace_users(LocalUsers::default()), (1, vec!["ada".to_owned()]));
    assert_eq!(next.server.revoked().len(), 2, "a user who is gone takes the tokens along");
    assert!(AuthorizationServer::new(settings(), TokenSigner::new(&[7; 32]).unwrap(), "{", users()).is_err());
    assert!(TokenSigner::new(&[1]).is_err());
}

#[test]
fn a_refresh_token_that_nobody_uses_expires() {
    let mut scene = Scene::new();
    let client = scene.client();
    let (_, refresh) = scene.tokens(&client);
    scene.pass(3_599);
    let (_, refresh) = pair_of(&scene.refresh(&client, &refresh));
    scene.pass(3_600);
    assert_eq!(error_of(&scene.refresh(&client, &refresh)), "invalid_grant");
}

/// Users among whom `ada` is another account of that name, with the same password.
fn users_with_another_ada() -> LocalUsers {
    let mut users = LocalUsers::default();
    users.set("ada", PASSWORD, &[4; 16], 0).unwrap();
    users
}

#[test]
fn users_who_left_while_the_gateway_was_down_stay_gone_with_all_tokens() {
    for (now_known, what) in [(LocalUsers::default(), "removed"), (users_with_another_ada(), "removed and added again")]
    {
        let mut scene = Scene::new();
        let client = scene.client();
        let (access, refresh) = scene.tokens(&client);
        let stored = scene.server.unsaved().unwrap().unwrap();
        let next = Scene::started(settings(), &stored, now_known);
        next.seed.set(100);
        assert_eq!(error_of(&next.refresh(&client, &refresh)), "invalid_grant", "{what}");
        assert!(next.server.revoked().iter().any(|(id, _)| claims(&access)["jti"] == **id), "{what}");
        let stored = next.server.unsaved().unwrap().expect("the end of a grant is kept");
        // The former account comes back, as from a backup of the file of users.
        let later = Scene::started(settings(), &stored, users());
        later.seed.set(200);
        assert_eq!(error_of(&later.refresh(&client, &refresh)), "invalid_grant", "{what}");
        assert!(later.server.revoked().iter().any(|(id, _)| claims(&access)["jti"] == **id), "{what}");
    }
}

#[test]
fn another_account_of_the_same_name_inherits_nothing() {
    let mut scene = Scene::new();
    let client = scene.client();
    let (access, refresh) = scene.tokens(&client);
    let code = scene.code(&client);
    let ticket = scene.begin(&client);
    assert_eq!(scene.sign_in(&ticket, "ada", PASSWORD).status, 200);
    assert_eq!(scene.server.replace_users(users_with_another_ada()), (1, vec!["ada".to_owned()]));
    assert!(scene.server.revoked().iter().any(|(id, _)| claims(&access)["jti"] == **id));
    assert_eq!(error_of(&scene.refresh(&client, &refresh)), "invalid_grant");
    assert_eq!(error_of(&scene.redeem(&client, &code, &[])), "invalid_grant", "a code of before");
    let reply = scene.consent(&ticket, "allow");
    let code = query_of(&reply, "code");
    assert!(code.is_none_or(|code| scene.redeem(&client, &code, &[]).status == 400), "a sign-in of before: {reply:?}");
    let (_, refresh) = scene.tokens(&client);
    assert_eq!(scene.refresh(&client, &refresh).status, 200, "the account that is there now signs in");
}

#[test]
fn a_password_that_is_replaced_while_it_is_checked_signs_nobody_in() {
    let mut scene = Scene::new();
    let client = scene.client();
    let ticket = scene.begin(&client);
    let typed = form::write(&[("ticket", &ticket), ("user", "ada"), ("password", PASSWORD)]);
    let SignInStep::Check(check) = scene.server.sign_in(&typed, &scene.cookies, Some(HERE), &scene.moment()) else {
        panic!()
    };
    let is_good = check.check.is_good();
    scene.server.replace_users(users_with_another_ada());
    assert!(is_good && scene.server.checked(&check, is_good, &|_| false, scene.now.get()).status == 401);
}

#[test]
fn access_tokens_that_outlive_their_refresh_token_end_with_their_user() {
    let mut settings = settings();
    settings.refresh_lifetime = std::time::Duration::from_secs(60);
    let mut scene = Scene::with(settings, "");
    let client = scene.client();
    let (access, refresh) = scene.tokens(&client);
    scene.pass(61);
    assert_eq!(error_of(&scene.refresh(&client, &refresh)), "invalid_grant");
    scene.server.replace_users(LocalUsers::default());
    assert!(scene.server.revoked().iter().any(|(id, _)| claims(&access)["jti"] == **id));
}
