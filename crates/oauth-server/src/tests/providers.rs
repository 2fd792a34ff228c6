//! People who sign in at an OpenID provider.

use super::scene::*;
use crate::*;
use serde_json::json;
use signalbox_oauth_client::form;

#[test]
fn nobody_is_sent_to_a_provider_before_saying_yes_and_only_that_browser_comes_back() {
    let mut scene = Scene::with(ServerSettings { provider: Some(corp()), ..settings() }, "");
    let client = scene.client();
    let ticket = scene.begin(&client);
    let provider = form::write(&[("ticket", &ticket), ("provider", "1")]);
    let SignInStep::Reply(page) = scene.server.sign_in(&provider, &scene.cookies, None, &scene.moment()) else {
        panic!()
    };
    assert!(page.body.contains("sign in with <b>Corp</b>") && page.body.contains("127.0.0.1:3000"), "{}", page.body);
    let now = scene.now.get();
    assert!(!scene.server.is_sent(&ticket, &scene.cookies, now), "nobody has said yes");
    let allow = form::write(&[("ticket", &ticket), ("answer", "allow")]);
    let ConsentOutcome::Forward(sent) = scene.server.consent(&allow, &scene.cookies, &|_| false, &scene.moment())
    else {
        panic!()
    };
    assert_eq!(sent, ticket);
    assert!(scene.server.is_sent(&ticket, &scene.cookies, now) && !scene.server.is_sent(&ticket, "", now));
    let person = Person::of_provider(PROVIDER, "openid:42".to_owned(), vec!["ops".to_owned()], now);
    let reply = scene.server.returned(&ticket, Some(person), &|_| false, &scene.moment());
    let code = query_of(&reply, "code").unwrap();
    let (access, refresh) = pair_of(&scene.redeem(&client, &code, &[]));
    assert_eq!((&claims(&access)["sub"], &claims(&access)["groups"]), (&json!("openid:42"), &json!(["ops"])));
    assert_eq!(scene.server.replace_users(LocalUsers::default()).0, 0, "a person of the provider is no local user");
    assert_eq!(scene.refresh(&client, &refresh).status, 200);
    assert!(!scene.server.is_sent(&ticket, &scene.cookies, now), "a ticket is good once");
    let ticket = scene.begin(&client);
    let provider = form::write(&[("ticket", &ticket), ("provider", "1")]);
    scene.server.sign_in(&provider, &scene.cookies, None, &scene.moment());
    let denied = scene.consent(&ticket, "deny");
    assert_eq!(query_of(&denied, "error").as_deref(), Some("access_denied"));
}

/// The address of the provider of people.
const PROVIDER: &str = "https://idp.example";

fn corp() -> IdentityProvider {
    IdentityProvider { name: "Corp".to_owned(), issuer: PROVIDER.to_owned() }
}

/// The tokens of a person who signed in at the provider.
fn tokens_of_provider(scene: &mut Scene, client: &str) -> (String, String) {
    let ticket = scene.begin(client);
    let provider = form::write(&[("ticket", &ticket), ("provider", "1")]);
    scene.server.sign_in(&provider, &scene.cookies, None, &scene.moment());
    scene.server.consent(
        &form::write(&[("ticket", &ticket), ("answer", "allow")]),
        &scene.cookies,
        &|_| false,
        &scene.moment(),
    );
    let person = Person::of_provider(PROVIDER, "openid:42".to_owned(), Vec::new(), scene.now.get());
    let reply = scene.server.returned(&ticket, Some(person), &|_| false, &scene.moment());
    let code = query_of(&reply, "code").unwrap();
    pair_of(&scene.redeem(client, &code, &[]))
}

/// Tokens of people outlived their provider, and no command ended them.
#[test]
fn people_of_a_provider_lose_their_tokens_with_it_or_by_name() {
    let with = |provider: Option<IdentityProvider>, stored: &str| {
        Scene::with(ServerSettings { provider, ..settings() }, stored)
    };
    let mut scene = with(Some(corp()), "");
    let client = scene.client();
    let (access, refresh) = tokens_of_provider(&mut scene, &client);
    let stored = scene.server.unsaved().unwrap().unwrap();
    // Another start with the same provider, with another one, and with none.
    let other = IdentityProvider { issuer: "https://other.example".to_owned(), ..corp() };
    for (provider, status) in [(Some(corp()), 200), (Some(other), 400), (None, 400)] {
        let next = with(provider.clone(), &stored);
        assert_eq!(next.refresh(&client, &refresh).status, status, "{provider:?}");
        let is_revoked = next.server.revoked().iter().any(|(id, _)| claims(&access)["jti"] == **id);
        assert_eq!(is_revoked, status == 400, "{provider:?}");
    }
    // The same at a reload without the provider, which ends its sign-ins.
    let reloaded = with(Some(corp()), &stored);
    assert_eq!((reloaded.server.keep_provider(Some(PROVIDER)), reloaded.server.keep_provider(None)), (0, 1));
    assert_eq!(error_of(&reloaded.refresh(&client, &refresh)), "invalid_grant");
    // By name: what was there before ends, and the person may sign in again.
    let mut users = LocalUsers::default();
    users.end_person("openid:42", scene.now.get());
    let gone = vec!["ada".to_owned(), "openid:42".to_owned()];
    assert_eq!(scene.server.replace_users(users), (1, gone));
    assert_eq!(error_of(&scene.refresh(&client, &refresh)), "invalid_grant");
    scene.pass(1);
    let (_, refresh) = tokens_of_provider(&mut scene, &client);
    assert_eq!(scene.refresh(&client, &refresh).status, 200);
}
