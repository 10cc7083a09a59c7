//! Certificates, made when they are needed: an authority of its own for each test.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use tempfile::TempDir;

/// Somebody who signs certificates, and the folder with their files.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    folder: TempDir,
    name: String,
}

/// A certificate and its key, each in a file.
#[derive(Clone, Debug)]
pub struct Pair {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// When a certificate is valid.
#[derive(Clone, Copy)]
pub enum Valid {
    Now,
    /// Until some years ago.
    Before,
    /// From some years on.
    Later,
}

impl Authority {
    pub fn new(name: &str) -> Authority {
        let mut params = params(&[], name, Valid::Now);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key");
        let folder = tempfile::Builder::new().prefix("fairq-").tempdir().expect("a folder");
        let certificate = params.self_signed(&key).expect("an authority");
        fs::write(folder.path().join("ca.pem"), certificate.pem()).expect("write");
        Authority { issuer: Issuer::new(params, key), folder, name: name.to_owned() }
    }

    /// The folder that its files are in; others may be put there.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The authority's own certificate.
    pub fn file(&self) -> PathBuf {
        self.folder().join("ca.pem")
    }

    /// Signs a certificate for this machine.
    pub fn sign(&self, file: &str) -> Pair {
        self.sign_for(file, &["127.0.0.1", "localhost"], Valid::Now)
    }

    /// Signs one for these names and addresses.
    pub fn sign_for(&self, file: &str, hosts: &[&str], valid: Valid) -> Pair {
        let mut params = params(hosts, &format!("{} {file}", self.name), valid);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        self.write(file, &certificate.pem(), &key.serialize_pem())
    }

    /// One that nobody has signed but itself.
    pub fn own_authority(&self, file: &str) -> Pair {
        let mut params = params(&["127.0.0.1"], file, Valid::Now);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        self.write(file, &certificate.pem(), &key.serialize_pem())
    }

    fn write(&self, file: &str, cert: &str, key: &str) -> Pair {
        let path = |kind: &str| self.folder().join(format!("{file}.{kind}"));
        let pair = Pair { cert: path("crt"), key: path("key") };
        fs::write(&pair.cert, cert).expect("write");
        fs::write(&pair.key, key).expect("write");
        pair
    }
}

impl Pair {
    /// Puts this one's content into the files of another, as a renewal does.
    pub fn put_into(&self, other: &Pair) {
        fs::copy(&self.cert, &other.cert).expect("copy");
        fs::copy(&self.key, &other.key).expect("copy");
    }
}

fn params(hosts: &[&str], name: &str, valid: Valid) -> CertificateParams {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let mut params = CertificateParams::new(hosts).expect("names");
    params.distinguished_name.push(DnType::CommonName, name);
    (params.not_before, params.not_after) = match valid {
        Valid::Now => (date_time_ymd(2020, 1, 1), date_time_ymd(2120, 1, 1)),
        Valid::Before => (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1)),
        Valid::Later => (date_time_ymd(2110, 1, 1), date_time_ymd(2120, 1, 1)),
    };
    params
}
