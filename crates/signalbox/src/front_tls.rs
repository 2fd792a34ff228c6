//! TLS of the listener: reads the configured files and creates a self-signed certificate.

use crate::failure::Failure;
use crate::{banner, output};
use signalbox_assembly::data_dir::DataDir;
use signalbox_config::{Certificates, Config, ListenTls, Transport};
use signalbox_transport::tls::{FrontTls, FrontTlsSpec, GeneratedCertificate, PairFiles};
use std::sync::Arc;
use tokio::task::JoinSet;

/// TLS state of the front.
#[derive(Debug, Clone)]
pub struct FrontSecurity {
    /// Certificates in use. [`FrontTls::reload`] replaces all of them, or none.
    pub tls: Arc<FrontTls>,
    own: Option<GeneratedCertificate>,
}

impl FrontSecurity {
    /// Reads the certificate files. Creates a self-signed certificate if one is configured and missing.
    ///
    /// # Errors
    /// Names the file that cannot be used, and the reason.
    pub fn load(config: &Config, data_dir: &DataDir) -> Result<Option<Self>, Failure> {
        let Some(listen) = &config.listen.tls else {
            return Ok(None);
        };
        let (pairs, own) = match &listen.certificates {
            Certificates::Files(pairs) => (pairs.clone(), None),
            Certificates::SelfSigned => {
                let own = GeneratedCertificate::prepare(&data_dir.tls())?;
                (vec![own.pair.clone()], Some(own))
            }
        };
        Ok(Some(Self { tls: FrontTls::new(spec(config, listen, pairs))?, own }))
    }

    /// Validates the files as [`Self::load`] does, and discards them. Never creates a self-signed certificate.
    ///
    /// # Errors
    /// Names the file that cannot be used, and the reason.
    pub fn check(config: &Config) -> Result<(), Failure> {
        if let Some(listen) = &config.listen.tls
            && let Certificates::Files(pairs) = &listen.certificates
        {
            FrontTls::new(spec(config, listen, pairs.clone()))?;
        }
        Ok(())
    }

    /// Prints how a client can trust our self-signed certificate.
    pub fn announce(&self, json: bool) {
        match &self.own {
            None => {}
            Some(own) if json => {
                let (ca_file, sha256) = (own.ca_file.display(), &own.info.fingerprint);
                tracing::info!(%ca_file, sha256, "using a self-signed certificate; clients must trust its authority");
            }
            Some(own) => output::say(banner::trusting(own)),
        }
    }

    /// Watches the files for changes until the returned set is dropped.
    #[must_use]
    pub fn watch(&self) -> JoinSet<()> {
        let mut watching = JoinSet::new();
        watching.spawn(FrontTls::watch(Arc::downgrade(&self.tls)));
        watching
    }
}

fn spec(config: &Config, listen: &ListenTls, pairs: Vec<PairFiles>) -> FrontTlsSpec {
    FrontTlsSpec {
        pairs,
        client_auth: listen.client_auth.clone(),
        min_version: listen.min_version,
        http: config.listen.transport != Transport::Tcp,
        handshake_timeout: listen.handshake_timeout,
        max_handshakes: listen.max_handshakes,
    }
}
