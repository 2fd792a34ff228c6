//! Configured secrets in a header.

use crate::secret_source::{SecretError, SecretSource};
use crate::spec::StaticSpec;
use http::header::HeaderValue;
use signalbox_engine::{Fault, FaultKind, Principal};
use signalbox_runtime::{AuthHeader, AuthRefusal, BackendCredentials, BoxFuture, RequestIdentity};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// Minimum age of a refused secret before it is read again.
const LEAST_AGE: Duration = Duration::from_secs(1);

/// Sends a secret from the environment, a file or a program.
pub struct StaticCredentials(Arc<Inner>);

struct Inner {
    backend: Arc<str>,
    spec: StaticSpec,
    /// Secrets read so far, by principal; the empty name is the shared one.
    read: Mutex<HashMap<String, (AuthHeader, Instant)>>,
}

impl StaticCredentials {
    /// Creates the credentials of a backend. Reads nothing yet.
    #[must_use]
    pub fn new(backend: &str, spec: StaticSpec) -> Self {
        Self(Arc::new(Inner { backend: backend.into(), spec, read: Mutex::default() }))
    }
}

impl Inner {
    /// Returns the cache key and the source of a principal's secret.
    fn source(&self, whose: Option<&Principal>) -> Option<(String, SecretSource)> {
        let own = whose.and_then(|whose| self.spec.users.get_key_value(whose.as_str()));
        match own {
            Some((name, source)) => Some((name.clone(), source.clone())),
            None => self.spec.shared.clone().map(|source| (String::new(), source)),
        }
    }

    /// Returns the secret, from the cache unless it was refused or is too old.
    async fn give(&self, whose: Option<&Principal>, refused: Option<&AuthHeader>) -> Result<Option<AuthHeader>, Fault> {
        let Some((key, source)) = self.source(whose) else {
            let text = format!("backend `{}` has no credential for this caller", self.backend);
            return Err(Fault::new(FaultKind::Refused, text).with_str("backend", &self.backend));
        };
        let mut read = self.read.lock().await;
        if let Some((credential, at)) = read.get(&key) {
            let old = self.spec.refresh.is_some_and(|refresh| at.elapsed() >= refresh);
            let bad = refused == Some(credential);
            match (bad, old) {
                (false, false) => return Ok(Some(credential.clone())),
                (true, _) if at.elapsed() < LEAST_AGE => return Ok(None),
                _ => {}
            }
        }
        let secret = source.read().await.map_err(|error| self.fault(&error))?;
        let text = match self.spec.scheme.as_str() {
            "" => secret.expose().to_owned(),
            scheme => format!("{scheme} {}", secret.expose()),
        };
        let value = HeaderValue::from_str(&text).map_err(|_| self.fault(&SecretError::Empty(source.place())))?;
        let credential = AuthHeader::new(self.spec.header.clone(), value);
        read.insert(key, (credential.clone(), Instant::now()));
        // The same secret would be refused again.
        Ok(Some(credential).filter(|credential| refused != Some(credential)))
    }

    fn fault(&self, error: &SecretError) -> Fault {
        let text = format!("there is no credential for backend `{}`: {error}", self.backend);
        Fault::new(FaultKind::BackendDown, text).with_str("backend", &self.backend)
    }
}

impl BackendCredentials for StaticCredentials {
    fn is_per_user(&self) -> bool {
        !self.0.spec.users.is_empty()
    }

    fn is_own(&self) -> bool {
        self.0.spec.is_own()
    }

    fn current(&self, whose: RequestIdentity) -> BoxFuture<Result<Option<AuthHeader>, Fault>> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { inner.give(whose.principal(), None).await })
    }

    fn renewed(&self, whose: RequestIdentity, refusal: AuthRefusal) -> BoxFuture<Result<Option<AuthHeader>, Fault>> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            match (refusal.status, refusal.used) {
                (401, Some(used)) => inner.give(whose.principal(), Some(&used)).await,
                _ => Ok(None),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::AUTHORIZATION;

    fn refusal(used: &AuthHeader) -> AuthRefusal {
        AuthRefusal { status: 401, challenges: Vec::new(), used: Some(used.clone()) }
    }

    #[tokio::test]
    async fn each_principal_gets_its_own_secret_and_a_refused_one_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let (shared, own) = (folder.path().join("shared"), folder.path().join("own"));
        std::fs::write(&shared, "one\n").unwrap();
        std::fs::write(&own, "hers\n").unwrap();
        let credentials = StaticCredentials::new(
            "b",
            StaticSpec {
                header: AUTHORIZATION,
                scheme: "Bearer".to_owned(),
                shared: Some(SecretSource::File(shared.clone())),
                users: [("local:ada".to_owned(), SecretSource::File(own))].into(),
                refresh: None,
            },
        );
        let ada = credentials.current(Some(Principal::local("ada")).into()).await.unwrap().unwrap();
        assert_eq!(ada.value, "Bearer hers");
        assert!(!format!("{ada:?}").contains("hers"));
        let first = credentials.current(Some(Principal::anonymous()).into()).await.unwrap().unwrap();
        assert_eq!(first.value, "Bearer one");
        std::fs::write(&shared, "two\n").unwrap();
        assert_eq!(credentials.current(RequestIdentity::default()).await.unwrap().unwrap().value, "Bearer one");
        tokio::time::sleep(LEAST_AGE).await;
        let second = credentials.renewed(RequestIdentity::default(), refusal(&first)).await.unwrap().unwrap();
        assert_eq!(second.value, "Bearer two");
        assert_eq!(
            credentials.renewed(RequestIdentity::default(), refusal(&first)).await.unwrap(),
            Some(second.clone())
        );
        tokio::time::sleep(LEAST_AGE).await;
        assert_eq!(
            credentials.renewed(RequestIdentity::default(), refusal(&second)).await.unwrap(),
            None,
            "the same would be refused again"
        );
    }

    #[tokio::test]
    async fn who_has_no_secret_is_refused() {
        let users = [("local:ada".to_owned(), SecretSource::Env("X".to_owned()))].into();
        let spec = StaticSpec { header: AUTHORIZATION, scheme: String::new(), shared: None, users, refresh: None };
        let fault = StaticCredentials::new("b", spec).current(Some(Principal::anonymous()).into()).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Refused);
    }
}
