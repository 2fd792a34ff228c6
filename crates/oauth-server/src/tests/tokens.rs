//! Codes and tokens: how they are redeemed, rotated, revoked, kept and how they expire.

use super::*;

#[test]
fn refresh_tokens_are_rotated_and_one_that_comes_twice_ends_all_tokens_of_its_grant() {
    let mut scene = Scene::new();
    let client = scene.client();
    let (_, first) = scene.tokens(&client);
    let (access, second) = pair_of(&scene.refresh(&client, &first));
    assert_ne!(first, second);
    let (_, third) = pair_of(&scene.refresh(&client, &second));
    // A thief replays the second token.
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
    // A second use of the code means that it was stolen.
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
