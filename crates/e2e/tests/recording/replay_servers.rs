//! Sessions with the real servers of npm and PyPI: recorded once, served back to every real client with the server
//! gone, and sent again to a fresh server (rows S-38, S-40, S-45, S-75, SO-12).

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it wants")]

use serde_json::{Value, json};
use signalbox_testkit::clients::{everything, run, run_script};
use signalbox_testkit::process::{Spawned, built};
use signalbox_testkit::served_tape::{ServedTape, record, talk, text, told};
use std::path::PathBuf;
use tokio::process::Command;

const CLIENTS: [&[&str]; 5] =
    [&["ts-sdk1"], &["py-mcp1"], &["ts-client2", "--era", "old"], &["ts-client2", "--era", "new"], &["py-mcp2"]];

/// A real server, what clients ask it, and how it is reached.
struct Scene {
    folder: tempfile::TempDir,
    backend: String,
    /// What `replay run` is told of the server.
    against: Vec<String>,
    steps: Vec<String>,
    _process: Option<Spawned>,
}

impl Scene {
    /// A server that every gateway starts anew, in a state that a few commands of the shell make.
    fn of_command(state: &str, arguments: &str, calls: &[(&str, Value)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("server.sh");
        let lines = format!(
            "set -e\ncd {}\nexport MEMORY_FILE_PATH=$PWD/graph.jsonl\n{state}\nexec {} {arguments}\n",
            text(folder.path()),
            text(&run_script())
        );
        std::fs::write(&script, lines).unwrap();
        let backend = format!("[backends.real]\ncommand = \"sh\"\nargs = {}\n", json!([text(&script)]));
        let against = ["--", "sh", text(&script)].map(str::to_owned).to_vec();
        let here = text(folder.path()).to_owned();
        let steps = steps_of("tools,call", calls).into_iter().map(|step| step.replace("FOLDER", &here)).collect();
        Self { folder, backend, against, steps, _process: None }
    }

    async fn record(&self, client: &[&str]) -> Option<(Value, PathBuf)> {
        let (live, tape) = record(client, &self.steps(), &self.backend, self.folder.path()).await.unwrap()?;
        assert_eq!(live["ok"], true, "{client:?}: {live}");
        Some((live, tape))
    }

    fn steps(&self) -> Vec<&str> {
        self.steps.iter().map(String::as_str).collect()
    }

    /// Records a session of the initialize era and one of the stateless era, and serves each back to every client: the
    /// first over HTTP, the second over stdio.
    async fn is_served_back(&self) {
        let Some((old, tape)) = self.record(CLIENTS[0]).await else { return };
        // Clients of the stateless era have no session of their own, so the tape begins anew for the second of them.
        let served = ServedTape::start(self.folder.path(), &tape, &["--repeat", "cycle"]).await.unwrap();
        for client in CLIENTS {
            let line = [client, &self.steps()[..], &["--url", &served.url]].concat();
            let replayed = run(&line).await.unwrap().unwrap();
            same_answers(&replayed, &old, &format!("{client:?} over HTTP"));
        }
        let Some((new, tape)) = self.record(CLIENTS[3]).await else { return };
        let (program, data) = (built("signalbox").unwrap(), self.folder.path().join("replay"));
        let server = [text(&program), "replay", "serve", text(&tape), "--data-dir", text(&data)];
        for client in CLIENTS {
            let replayed = talk(client, &self.steps(), &server).await.unwrap().unwrap();
            same_answers(&replayed, &new, &format!("{client:?} over stdio"));
        }
    }

    /// Sends a session to the server again, where only what `--learn` finds does not count.
    async fn passes_with_what_learn_finds(&self, flags: &[&str], learned: &[&str]) {
        let Some((_, tape)) = self.record(CLIENTS[0]).await else { return };
        let run = async |more: &[&str]| {
            let data = tempfile::tempdir_in(self.folder.path()).unwrap().keep();
            let mut command = Command::new(built("signalbox").unwrap());
            command.args(["replay", "run", text(&tape), "--data-dir", text(&data)]);
            let output = command.args(flags).args(more).args(&self.against).output().await.unwrap();
            let said = |bytes| String::from_utf8(bytes).unwrap();
            (output.status.code().unwrap(), said(output.stdout), said(output.stderr))
        };
        let (code, found, errors) = run(&["--learn"]).await;
        assert_eq!(code, 0, "{found}{errors}");
        let paths: Vec<&str> = found.lines().filter(|line| line.starts_with('/')).collect();
        assert_eq!(paths, learned, "{found}{errors}");
        let ignore = self.folder.path().join("volatile.txt");
        std::fs::write(&ignore, &found).unwrap();
        let (code, said, errors) = run(&["--ignore-file", text(&ignore)]).await;
        assert!(code == 0 && said.contains("the same"), "{said}{errors}");
    }
}

fn steps_of(steps: &str, calls: &[(&str, Value)]) -> Vec<String> {
    let mut line = vec!["--steps".to_owned(), steps.to_owned()];
    for (tool, arguments) in calls {
        line.extend(["--call".to_owned(), format!("{tool}={arguments}")]);
    }
    line
}

/// A tape lists every tool that its clients saw, and those that they called; server-everything adds some after the
/// handshake.
fn same_answers(replayed: &Value, live: &Value, who: &str) {
    let (replayed, live) = (answers(replayed), answers(live));
    assert_eq!(replayed["calls"], live["calls"], "{who}");
    let names = replayed["tools"].as_array().unwrap();
    assert!(live["tools"].as_array().unwrap().iter().all(|name| names.contains(name)), "{who}: {names:?}, {live}");
}

/// The names of the tools and what each call brought, without what only one era says of an answer.
fn answers(document: &Value) -> Value {
    let told = told(document);
    let answer = |call: &Value| {
        let mut result = call["result"].clone();
        if let Some(members) = result.as_object_mut() {
            members.retain(|name, _| name != "_meta" && name != "resultType");
        }
        json!({"name": call["name"], "result": result, "error": call["error"]})
    };
    let calls: Vec<Value> = told["call"].as_array().into_iter().flatten().map(answer).collect();
    json!({"tools": told["tools"]["names"], "calls": calls})
}

fn filesystem() -> Scene {
    let calls = [
        ("list_directory", json!({"path": "FOLDER/files"})),
        ("read_text_file", json!({"path": "FOLDER/files/poem.txt"})),
        ("write_file", json!({"path": "FOLDER/files/new.txt", "content": "häł😀"})),
        ("list_directory", json!({"path": "FOLDER/files"})),
        ("read_text_file", json!({"path": "FOLDER/files/absent.txt"})),
    ];
    let state = "rm -rf files; mkdir files; echo 'Whose woods these are' > files/poem.txt";
    Scene::of_command(state, "filesystem files", &calls)
}

fn memory() -> Scene {
    let ada = json!({"name": "Ada", "entityType": "person", "observations": ["wrote the first program"]});
    let calls = [
        ("create_entities", json!({"entities": [ada]})),
        ("read_graph", json!({})),
        ("search_nodes", json!({"query": "program"})),
        ("delete_entities", json!({"entityNames": ["Ada"]})),
        ("read_graph", json!({})),
    ];
    Scene::of_command("rm -f graph.jsonl", "memory", &calls)
}

fn time() -> Scene {
    let zones = json!({"source_timezone": "Asia/Tokyo", "time": "16:30", "target_timezone": "Asia/Kolkata"});
    let calls = [("get_current_time", json!({"timezone": "UTC"})), ("convert_time", zones)];
    Scene::of_command("", "time --local-timezone UTC", &calls)
}

fn git() -> Scene {
    let calls = [
        ("git_status", json!({"repo_path": "FOLDER/repository"})),
        ("git_log", json!({"repo_path": "FOLDER/repository", "max_count": 3})),
        ("git_show", json!({"repo_path": "FOLDER/repository", "revision": "HEAD"})),
        ("git_create_branch", json!({"repo_path": "FOLDER/repository", "branch_name": "side"})),
        ("git_branch", json!({"repo_path": "FOLDER/repository", "branch_type": "local"})),
    ];
    let state = "rm -rf repository; git init -q -b main repository; echo first > repository/file\n\
        export GIT_AUTHOR_DATE=2026-01-01T00:00:00Z GIT_COMMITTER_DATE=2026-01-01T00:00:00Z GIT_CONFIG_GLOBAL=/dev/null\n\
        git -C repository add file\n\
        git -C repository -c user.name=Ada -c user.email=ada@example.com commit -qm first";
    Scene::of_command(state, "git --repository repository", &calls)
}

/// `server-everything` in one of the modes that listen.
async fn everything_over(mode: &str) -> Option<Scene> {
    let (process, address) = everything(mode).await.unwrap()?;
    let path = if mode == "sse" { "sse" } else { "mcp" };
    let backend = format!("[backends.real]\nurl = \"http://{address}/{path}\"\n");
    let calls = [("echo", json!({"message": "häł😀"})), ("get-sum", json!({"a": 2, "b": 40}))];
    let mut steps = steps_of("tools,call,elicit,prompts,resources", &calls);
    steps.extend(["--answer", "Ada", "--call", "trigger-elicitation-request={}"].map(str::to_owned));
    let against = vec!["--against".to_owned(), format!("http://{address}/{path}")];
    Some(Scene { folder: tempfile::tempdir().unwrap(), backend, against, steps, _process: Some(process) })
}

/// Proves S-38 and S-75.
#[tokio::test(flavor = "multi_thread")]
async fn server_filesystem_is_served_back_to_every_client() {
    filesystem().is_served_back().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn server_memory_is_served_back_to_every_client() {
    memory().is_served_back().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_server_time_is_served_back_to_every_client() {
    time().is_served_back().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_server_git_is_served_back_to_every_client() {
    git().is_served_back().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn server_everything_over_sse_is_served_back_to_every_client() {
    if let Some(scene) = everything_over("sse").await {
        scene.is_served_back().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn server_everything_over_streamable_http_is_served_back_to_every_client() {
    if let Some(scene) = everything_over("streamableHttp").await {
        scene.is_served_back().await;
    }
}

/// Proves S-38, S-40, S-45 and S-75.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_against_server_filesystem_passes() {
    filesystem().passes_with_what_learn_finds(&["--allow-writes"], &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_against_server_memory_passes() {
    memory().passes_with_what_learn_finds(&["--allow-writes"], &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_against_mcp_server_time_passes_but_for_the_time() {
    time()
        .passes_with_what_learn_finds(
            &[],
            &[
                r#"/result/content/*/text/@json/datetime ~ "<time>""#,
                r#"/result/structuredContent/datetime ~ "<time>""#,
            ],
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_against_mcp_server_git_passes() {
    git().passes_with_what_learn_finds(&["--allow-writes"], &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_against_server_everything_passes_in_the_modes_that_listen() {
    for mode in ["sse", "streamableHttp"] {
        if let Some(scene) = everything_over(mode).await {
            // Some of its tools are added after the handshake, in no certain order.
            let flags = ["--allow-writes", "--unordered", "/result/tools"];
            scene.passes_with_what_learn_finds(&flags, &[]).await;
        }
    }
}
