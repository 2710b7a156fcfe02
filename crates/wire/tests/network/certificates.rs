//! A certificate authority of the test's own, made when the test runs.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// An authority whose certificate lies in a file, as a company's would.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    folder: tempfile::TempDir,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        // Two authorities of one name would be told apart by their signatures only.
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("test authority {}", NUMBER.fetch_add(1, Ordering::Relaxed));
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        Self { issuer: Issuer::new(params, key), folder }
    }

    /// The PEM file.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// What a server for these names shows, and the protocols that it speaks (ALPN), best first.
    pub(crate) fn server(&self, names: &[&str], speaks: &[&str]) -> Arc<rustls::ServerConfig> {
        let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
        self.config(CertificateParams::new(names).unwrap(), speaks)
    }

    /// The same with a certificate that was valid in 2020 only.
    pub(crate) fn expired(&self, name: &str) -> Arc<rustls::ServerConfig> {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2020, 12, 31));
        self.config(params, &["http/1.1"])
    }

    fn config(&self, params: CertificateParams, speaks: &[&str]) -> Arc<rustls::ServerConfig> {
        let key = KeyPair::generate().unwrap();
        let chain: Vec<CertificateDer<'static>> = vec![params.signed_by(&key, &self.issuer).unwrap().der().clone()];
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider);
        let mut config = builder
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        config.alpn_protocols = speaks.iter().map(|s| s.as_bytes().to_vec()).collect();
        Arc::new(config)
    }
}
