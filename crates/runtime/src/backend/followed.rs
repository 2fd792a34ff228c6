//! What a listen request follows on one backend.

use signalbox_wire::json;

/// Resources and tasks of a backend, as it knows them.
#[derive(Clone, Default)]
pub(crate) struct Followed {
    pub uris: Vec<String>,
    pub tasks: Vec<String>,
}

impl Followed {
    /// True where it names nothing.
    pub fn is_empty(&self) -> bool {
        self.uris.is_empty() && self.tasks.is_empty()
    }

    /// Takes out what is refused, and gives it.
    pub fn without(&mut self, refused: &dyn Fn(&str) -> bool, refused_task: &dyn Fn(&str) -> bool) -> Self {
        let (uris, tasks);
        (uris, self.uris) = std::mem::take(&mut self.uris).into_iter().partition(|uri| refused(uri));
        (tasks, self.tasks) = std::mem::take(&mut self.tasks).into_iter().partition(|task| refused_task(task));
        Self { uris, tasks }
    }

    /// The filter of a listen request for them.
    pub fn filter(&self) -> String {
        let lists = [("resourceSubscriptions", &self.uris), ("taskIds", &self.tasks)];
        let named = lists.into_iter().filter(|(_, list)| !list.is_empty()).map(|(key, list)| {
            let list: Vec<String> = list.iter().map(|one| json::quote(one)).collect();
            format!("\"{key}\":[{}]", list.join(","))
        });
        format!("\"notifications\":{{{}}}", named.collect::<Vec<_>>().join(","))
    }
}
