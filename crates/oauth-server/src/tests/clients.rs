//! Metadata of the server, metadata documents of clients, and registration.

use super::*;

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
fn registration_is_bounded_in_rate_count_and_size() {
    let scene = Scene::new();
    for n in 0..20 {
        assert_eq!(scene.register(&[BACK]).status, 201, "{n}");
    }
    assert_eq!(scene.register(&[BACK]).status, 429);
    // From many addresses: the count is bounded, and unused clients give way after a day.
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
