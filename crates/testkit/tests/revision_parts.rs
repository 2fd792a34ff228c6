//! The server and the client of one revision, face to face: every revision over every transport it has, without a
//! gateway.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde_json::{Value, json};
use signalbox_testkit::matrix::{BackTransport, CellVerdict, Expected, Journal, MatrixCell, expected, try_all};
use signalbox_testkit::process::built;
use signalbox_testkit::revision::Revision;
use signalbox_testkit::revision_client::{Answers, Client, Reach, Reply};
use signalbox_testkit::revision_server::{Network, Options, RunningServer, start};

const PATIENCE: Duration = Duration::from_secs(10);

/// A server that is reached over this transport: in this process, or as a child of the client.
struct Scene {
    _folder: tempfile::TempDir,
    journal: Journal,
    server: Option<RunningServer>,
    reach: Reach,
}

impl Scene {
    async fn set(revision: Revision, back: BackTransport) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::new(folder.path().join("journal"));
        let options = Options { journal: Some(journal.path().to_owned()), ..Options::of(revision) };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let network = match back {
            BackTransport::Stdio => {
                let file = journal.path().to_str().unwrap().to_owned();
                let program = built("revision-server").unwrap().to_str().unwrap().to_owned();
                let words = ["--stdio", "--revision", revision.name(), "--journal"].map(str::to_owned);
                let command = [program].into_iter().chain(words).chain([file]).collect();
                return Self { _folder: folder, journal, server: None, reach: Reach::Stdio(command) };
            }
            BackTransport::Http => Network::Http,
            BackTransport::Sse => Network::Sse,
            BackTransport::Ws => Network::Ws,
        };
        let server = start(&options, network, address).await.unwrap();
        let url = server.url().to_owned();
        let reach = match back {
            BackTransport::Sse => Reach::Sse(url),
            BackTransport::Ws => Reach::Ws(url),
            _ => Reach::Http(url),
        };
        Self { _folder: folder, journal, server: Some(server), reach }
    }

    /// The same over TCP, which no server offers but the gateway does.
    async fn tcp(revision: Revision) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::new(folder.path().join("journal"));
        let options = Options { journal: Some(journal.path().to_owned()), ..Options::of(revision) };
        let server = start(&options, Network::Tcp, SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
        let reach = Reach::Tcp(server.url().trim_start_matches("tcp://").to_owned());
        Self { _folder: folder, journal, server: Some(server), reach }
    }

    async fn client(&self, revision: Revision, answers: Answers) -> Client {
        Client::open(revision, self.reach.clone(), answers).await.unwrap()
    }
}

fn transports(revision: Revision) -> impl Iterator<Item = BackTransport> {
    BackTransport::ALL.into_iter().filter(move |back| back.fits(revision))
}

/// Everything over one transport.
async fn everything_over(scene: &Scene, revision: Revision, over: &str) {
    let client = scene.client(revision, Answers::all("ann")).await;
    let cell = MatrixCell {
        client: &client,
        journal: &scene.journal,
        client_revision: revision,
        server_revision: revision,
        name: "ann".to_owned(),
        patience: PATIENCE,
    };
    for (feature, verdict) in try_all(&cell).await {
        let wanted = CellVerdict::Fits(expected(feature, revision, revision));
        assert_eq!(verdict, wanted, "{revision} over {over}: {feature:?}\n{:?}", client.error_lines());
    }
    assert_eq!(scene.journal.violations(), Vec::<String>::new());
}

async fn everything(revision: Revision) {
    for back in transports(revision) {
        everything_over(&Scene::set(revision, back).await, revision, back.name()).await;
    }
    everything_over(&Scene::tcp(revision).await, revision, "TCP").await;
}

#[tokio::test]
async fn everything_of_2024_11_05_works_face_to_face() {
    everything(Revision::R1).await;
}

#[tokio::test]
async fn everything_of_2025_03_26_works_face_to_face() {
    everything(Revision::R2).await;
}

#[tokio::test]
async fn everything_of_2025_06_18_works_face_to_face() {
    everything(Revision::R3).await;
}

#[tokio::test]
async fn everything_of_2025_11_25_works_face_to_face() {
    everything(Revision::R4).await;
}

#[tokio::test]
async fn everything_of_2026_07_28_works_face_to_face() {
    everything(Revision::R5).await;
}

#[test]
fn only_elicitation_and_structure_depend_on_the_revisions() {
    use signalbox_testkit::matrix::Feature;
    let all = Revision::ALL.into_iter().flat_map(|client| Revision::ALL.map(|server| (client, server)));
    let limited =
        all.flat_map(|(client, server)| Feature::ALL.map(|feature| (feature, expected(feature, client, server))));
    let limited = limited.filter(|(_, expected)| *expected != Expected::Works);
    // Two old revisions on either side: 25 pairs less the 9 where both have the feature, for each of the two features.
    assert_eq!(limited.count(), 2 * (25 - 9));
}

#[tokio::test]
async fn an_undeclared_question_is_refused_by_name() {
    for revision in [Revision::R3, Revision::R4, Revision::R5] {
        for back in transports(revision) {
            let scene = Scene::set(revision, back).await;
            let client = scene.client(revision, Answers::default()).await;
            match client.call("ask_elicitation", json!({})).await.unwrap() {
                Reply::Error(error) => {
                    assert_eq!((revision, &error["code"]), (Revision::R5, &json!(-32021)));
                    assert!(error["data"]["requiredCapabilities"]["elicitation"].is_object(), "{error}");
                }
                Reply::Result(result) => {
                    assert!(revision < Revision::R5 && result["isError"] == true, "{result}");
                    assert_eq!(result["content"][0]["text"], "the client did not declare elicitation");
                }
            }
            assert_eq!(client.violations(), Vec::<String>::new());
        }
    }
}

#[tokio::test]
async fn a_user_who_declines_is_told_as_such() {
    for revision in [Revision::R3, Revision::R4, Revision::R5] {
        let scene = Scene::set(revision, BackTransport::Http).await;
        let answers = Answers { elicitation: Some(json!({"action": "decline"})), ..Answers::default() };
        let client = scene.client(revision, answers).await;
        assert_eq!(client.call("ask_elicitation", json!({})).await.unwrap().text().unwrap(), "declined");
    }
}

#[tokio::test]
async fn an_answer_of_another_shape_is_a_violation() {
    for revision in [Revision::R3, Revision::R4, Revision::R5] {
        for back in transports(revision) {
            let scene = Scene::set(revision, back).await;
            let answers = Answers { elicitation: Some(json!({"action": "maybe"})), ..Answers::default() };
            let client = scene.client(revision, answers).await;
            let reply = client.call("ask_elicitation", json!({})).await.unwrap();
            assert!(reply.text().unwrap_err().to_string().contains("an action that is none"));
            assert_eq!(scene.journal.violations().len(), 1);
        }
    }
}

async fn finished_task(client: &Client, revision: Revision, task: &Value) -> Value {
    let id = json!({"taskId": task["taskId"]});
    loop {
        let told = client.request("tasks/get", id.clone()).await.unwrap().result().unwrap();
        match told["status"].as_str().unwrap() {
            "completed" if revision == Revision::R5 => return told["result"].clone(),
            "completed" => return client.request("tasks/result", id).await.unwrap().result().unwrap(),
            "input_required" if revision == Revision::R5 => {
                let answers = client.answered(told["inputRequests"].as_object().unwrap()).unwrap();
                let update = json!({"taskId": task["taskId"], "inputResponses": answers});
                client.request("tasks/update", update).await.unwrap().result().unwrap();
            }
            "input_required" => return client.request("tasks/result", id).await.unwrap().result().unwrap(),
            status => {
                assert_eq!(status, "working");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }
}

#[tokio::test]
async fn tasks_come_to_their_end_also_when_they_ask() {
    for (revision, ask) in [(Revision::R4, false), (Revision::R4, true), (Revision::R5, false), (Revision::R5, true)] {
        for back in transports(revision) {
            let scene = Scene::set(revision, back).await;
            let client = scene.client(revision, Answers { tasks: true, ..Answers::all("ann") }).await;
            let mut params = json!({"name": "task", "arguments": {"ms": 5, "ask": ask}});
            if revision == Revision::R4 {
                params["task"] = json!({"ttl": 60_000});
            }
            let started = client.call_with(params).await.unwrap().result().unwrap();
            let task = if revision == Revision::R4 { &started["task"] } else { &started };
            let result = finished_task(&client, revision, task).await;
            let wanted = if ask { "task done, hello ann" } else { "task done" };
            assert_eq!(result["content"][0]["text"], wanted, "{revision} over {back:?}");
            assert_eq!((client.violations(), scene.journal.violations()), (vec![], vec![]));
        }
    }
}

#[tokio::test]
async fn a_task_is_a_plain_call_for_those_who_do_not_know_tasks() {
    for revision in [Revision::R4, Revision::R5] {
        let scene = Scene::set(revision, BackTransport::Http).await;
        let client = scene.client(revision, Answers::default()).await;
        assert_eq!(client.call("task", json!({"ms": 1})).await.unwrap().text().unwrap(), "task done");
    }
}

#[tokio::test]
async fn a_task_can_be_cancelled() {
    for revision in [Revision::R4, Revision::R5] {
        let scene = Scene::set(revision, BackTransport::Ws).await;
        let client = scene.client(revision, Answers { tasks: true, ..Answers::default() }).await;
        let mut params = json!({"name": "task", "arguments": {"ms": 60_000}});
        if revision == Revision::R4 {
            params["task"] = json!({});
        }
        let started = client.call_with(params).await.unwrap().result().unwrap();
        let id = if revision == Revision::R4 { &started["task"]["taskId"] } else { &started["taskId"] };
        client.request("tasks/cancel", json!({"taskId": id})).await.unwrap().result().unwrap();
        let told = client.request("tasks/get", json!({"taskId": id})).await.unwrap().result().unwrap();
        assert_eq!(told["status"], "cancelled");
    }
}

#[tokio::test]
async fn a_client_of_another_revision_is_turned_away() {
    let old = Scene::set(Revision::R3, BackTransport::Ws).await;
    let error = Client::open(Revision::R5, old.reach.clone(), Answers::default()).await.unwrap_err();
    assert!(error.to_string().contains("-32601"), "{error:#}");
    let error = Client::open(Revision::R2, old.reach.clone(), Answers::default()).await.unwrap_err();
    assert!(error.to_string().contains("another revision"), "{error:#}");
    assert_eq!(old.journal.violations(), Vec::<String>::new());

    let new = Scene::set(Revision::R5, BackTransport::Http).await;
    let error = Client::open(Revision::R4, new.reach.clone(), Answers::default()).await.unwrap_err();
    assert!(error.to_string().contains("-32601"), "{error:#}");
    // Asking is no violation on either side: how else would a client find out.
    assert_eq!(new.server.unwrap().counts()["violation_count"], 0);
}

#[tokio::test]
async fn a_revision_without_a_transport_is_not_served_over_it() {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    for (revision, network) in [(Revision::R1, Network::Http), (Revision::R5, Network::Sse)] {
        let options = Options::of(revision);
        assert!(start(&options, network, address).await.unwrap_err().to_string().contains("has no"));
    }
}
