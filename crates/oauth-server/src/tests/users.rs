//! Sign-ins of users, and users who are switched off, removed or replaced.

use super::*;

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
    // Another browser is not the visitor, and a sign-in for a client makes none.
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
