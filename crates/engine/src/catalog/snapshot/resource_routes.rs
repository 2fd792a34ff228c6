//! Routing of URIs: the backend that serves a URI, and the URI under which clients read a resource of a backend.

use super::super::{BackendEntry, NameStyle, Route, template};
use super::Snapshot;
use std::borrow::Cow;
use std::sync::Arc;

impl Snapshot {
    /// Returns the route of a URI. It is listed, written as `BACKEND+URI`, matches a known template, has a scheme that
    /// only one backend uses, or goes to the only backend with resources.
    #[must_use]
    pub fn resource(&self, uri: &str) -> Option<Route> {
        if let Some(route) = self.route(&self.resources, uri).or_else(|| self.route(&self.templates, uri)) {
            return Some(route);
        }
        if let Some((backend, own)) = NameStyle::Uri.divide(uri)
            && let Some(entry) = self.entry(backend)
        {
            return Some(Route { backend: Arc::clone(&entry.name), name: own.into(), renamed: true });
        }
        let plain = |index: usize| {
            Some(Route { backend: Arc::clone(&self.backends[index].name), name: uri.into(), renamed: false })
        };
        let by_template = |index: &usize| {
            let views = self.backends[*index].views.values();
            views.flat_map(|view| &view.templates).any(|item| template::matches(&item.key, uri))
        };
        if let Some(index) = (0..self.backends.len()).find(by_template) {
            return plain(index);
        }
        let scheme = uri.split_once(':').map(|(scheme, _)| scheme);
        self.single(|view| {
            let mut items = view.resources.iter().chain(&view.templates);
            scheme.is_some() && items.any(|item| item.key.split_once(':').map(|(known, _)| known) == scheme)
        })
        .or_else(|| self.single(|view| view.profile.has(&["resources"])))
        .and_then(plain)
    }

    /// Returns the URI under which a resource of this backend is exposed, if it was renamed.
    #[must_use]
    pub fn renamed_uri(&self, backend: &str, uri: &str) -> Option<&str> {
        let index = self.index(backend)?;
        self.resources.renamed(index, uri).or_else(|| self.templates.renamed(index, uri))
    }

    /// Returns the URI under which clients read this resource of a backend, if it is not the backend's own: because the
    /// resource is listed under another, or because a read of its own URI would go elsewhere. Clients fetch `http` and
    /// `https` themselves.
    #[must_use]
    pub fn exposed_uri(&self, backend: &str, uri: &str) -> Option<Cow<'_, str>> {
        if let Some(ours) = self.renamed_uri(backend, uri) {
            return Some(ours.into());
        }
        let scheme = uri.split_once(':').map(|(scheme, _)| scheme)?;
        if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https") {
            return None;
        }
        let reaches = self.resource(uri).is_some_and(|route| *route.backend == *backend);
        (!reaches).then(|| NameStyle::Uri.qualify(backend, uri).into())
    }

    /// Returns true if this and another backend have resources, so that a URI may belong to either.
    #[must_use]
    pub fn shares_uris(&self, backend: &str) -> bool {
        !self.resource_hosts.is_empty() && self.index(backend).is_some_and(|index| self.resource_hosts[index])
    }
}

/// Returns true for each backend that has resources in any view. Empty unless several have.
pub(super) fn hosts(backends: &[BackendEntry]) -> Vec<bool> {
    let has = |entry: &BackendEntry| entry.views.values().any(|view| view.profile.has(&["resources"]));
    let hosts: Vec<bool> = backends.iter().map(has).collect();
    if hosts.iter().filter(|host| **host).count() > 1 { hosts } else { Vec::new() }
}
