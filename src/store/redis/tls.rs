//! TLS: the files that it takes, and what its errors mean to who has to do something about them.

use redis::{Client, ConnectionAddr, ConnectionInfo, ErrorKind, RedisError};

use super::access::Access;
use super::connect::NotOpen;
use super::fault;
use crate::Error;
use crate::store::StoreError;

/// rustls panics without one; another that the program has installed is as good.
pub(super) fn install_crypto() {
    #[cfg(feature = "tls")]
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Ready to connect, with the certificates as they are at this moment.
pub(super) fn client(info: ConnectionInfo, access: &Access) -> Result<Client, NotOpen> {
    let failed = |error: RedisError| NotOpen::Failed(fault::of_connect(&error));
    #[cfg(feature = "tls")]
    if let Some(certificates) = with_files::read(access).map_err(|detail| NotOpen::Refused(Error::Config { detail }))? {
        return Client::build_with_tls(info, certificates).map_err(failed);
    }
    let _ = access;
    Client::open(info).map_err(failed)
}

/// Why there is no connection, where TLS has to do with it.
pub(super) fn explain(info: &ConnectionInfo, error: &RedisError, access: &Access) -> Option<NotOpen> {
    match info.addr() {
        ConnectionAddr::TcpTls { .. } => explain_tls(error, access),
        ConnectionAddr::Tcp(..) => explain_plain(error),
        _ => None,
    }
}

fn refused(detail: String) -> Option<NotOpen> {
    Some(NotOpen::Refused(Error::Config { detail }))
}

fn away(detail: String) -> Option<NotOpen> {
    Some(NotOpen::Failed(StoreError::away(detail)))
}

/// Whoever listens has hung up, or answered with something else.
fn explain_plain(error: &RedisError) -> Option<NotOpen> {
    let hint = "if it speaks TLS on this port, the URL has to begin with rediss://";
    if error.kind() == ErrorKind::Parse {
        return refused(format!("whoever listens there does not speak as Redis does ({error}); {hint}"));
    }
    let hung_up = error.is_connection_dropped() && !error.is_connection_refusal();
    if hung_up { away(format!("the server hung up without an answer ({error}); {hint}")) } else { None }
}

fn explain_tls(error: &RedisError, access: &Access) -> Option<NotOpen> {
    #[cfg(feature = "tls")]
    if let Some(error) = with_files::cause(error) {
        return refused(with_files::meaning(error, access));
    }
    if error.is_timeout() {
        return away(format!("no answer in time ({error}); does the server speak TLS on this port?"));
    }
    let hung_up = error.is_connection_dropped() && !error.is_connection_refusal();
    match access.tls_cert_file {
        _ if !hung_up => None,
        Some(_) => away(format!("the server hung up during the TLS handshake ({error})")),
        None => away(format!("the server hung up during the TLS handshake ({error}); {WANTS_ONE}")),
    }
}

const WANTS_ONE: &str = "if it wants a client certificate, name one in tls_cert_file and tls_key_file";

#[cfg(feature = "tls")]
mod with_files {
    use std::path::Path;
    use std::sync::Arc;

    use redis::{ClientTlsConfig, RedisError, TlsCertificates};
    use rustls::crypto::CryptoProvider;
    use rustls::pki_types::pem::{self, PemObject};
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use rustls::sign::CertifiedKey;
    use rustls::{AlertDescription, CertificateError, InconsistentKeys, RootCertStore};

    use super::super::access::{Access, contents};
    use super::WANTS_ONE;
    use crate::Error;

    /// What the files hold, if any is named. Looked at closely, because all that the handshake would say is that it failed.
    pub(super) fn read(access: &Access) -> Result<Option<TlsCertificates>, String> {
        let root_cert = access.tls_ca_file.as_deref().map(authorities).transpose()?;
        let pair = access.tls_cert_file.as_deref().zip(access.tls_key_file.as_deref());
        let client_tls = pair.map(|(cert, key)| certificate_and_key(cert, key)).transpose()?;
        let any = root_cert.is_some() || client_tls.is_some();
        Ok(any.then_some(TlsCertificates { client_tls, root_cert }))
    }

    fn bytes(key: &str, path: &Path) -> Result<Vec<u8>, String> {
        contents(key, path).map_err(|error| match error {
            Error::Config { detail } => detail,
            other => other.to_string(),
        })
    }

    fn certificates(key: &str, path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
        let all: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(pem).collect();
        let wrong = |why: String| format!("{key}: {}: {why}", path.display());
        match all {
            Ok(all) if all.is_empty() => {
                Err(wrong("there is no certificate in it: it has to be PEM (-----BEGIN CERTIFICATE-----)".into()))
            }
            Ok(all) => Ok(all),
            Err(error) => Err(wrong(format!("it is no good PEM ({error})"))),
        }
    }

    fn authorities(path: &Path) -> Result<Vec<u8>, String> {
        let pem = bytes("tls_ca_file", path)?;
        let mut store = RootCertStore::empty();
        for certificate in certificates("tls_ca_file", path, &pem)? {
            let added = store.add(certificate);
            added.map_err(|error| {
                format!("tls_ca_file: {}: a certificate in it is damaged ({error})", path.display())
            })?;
        }
        Ok(pem)
    }

    fn certificate_and_key(cert_file: &Path, key_file: &Path) -> Result<ClientTlsConfig, String> {
        let client_cert = bytes("tls_cert_file", cert_file)?;
        let chain = certificates("tls_cert_file", cert_file, &client_cert)?;
        let client_key = bytes("tls_key_file", key_file)?;
        let wrong = |why: &str| format!("tls_key_file: {}: {why}", key_file.display());
        let key = PrivateKeyDer::from_pem_slice(&client_key).map_err(|error| match error {
            pem::Error::NoItemsFound => wrong(
                "there is no private key in it: it has to be PEM (-----BEGIN PRIVATE KEY-----), and not encrypted",
            ),
            error => wrong(&format!("it is no good PEM ({error})")),
        })?;
        let provider = CryptoProvider::get_default().ok_or("no crypto provider is installed for rustls")?;
        match CertifiedKey::from_der(chain, key, provider) {
            Err(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
                let (key, cert) = (key_file.display(), cert_file.display());
                Err(format!(
                    "the key in tls_key_file {key} is of another certificate than the one in tls_cert_file {cert}"
                ))
            }
            Err(error) => Err(wrong(&format!("it cannot be used with its certificate ({error})"))),
            Ok(_) => Ok(ClientTlsConfig { client_cert, client_key }),
        }
    }

    /// What rustls said, from within the crate's error. (`tests/access` notices if that wraps it otherwise some day.)
    pub(super) fn cause(error: &RedisError) -> Option<&rustls::Error> {
        type Shared = Arc<dyn std::error::Error + Send + Sync>;
        let source = std::error::Error::source(error)?.downcast_ref::<Shared>()?;
        let within = source.downcast_ref::<std::io::Error>().and_then(|error| error.get_ref());
        within.and_then(|error| error.downcast_ref()).or_else(|| source.downcast_ref())
    }

    pub(super) fn meaning(error: &rustls::Error, access: &Access) -> String {
        match error {
            rustls::Error::InvalidCertificate(error) => of_servers_certificate(error, access),
            rustls::Error::AlertReceived(alert) => of_alert(*alert, access),
            rustls::Error::InvalidMessage(_) => {
                format!("the server does not speak TLS on this port ({error}); redis:// is without, rediss:// with")
            }
            error => format!("no TLS with the server: {error}"),
        }
    }

    fn of_servers_certificate(error: &CertificateError, access: &Access) -> String {
        match error {
            CertificateError::ExpiredContext { time, not_after } => {
                let since = days(time.as_secs().saturating_sub(not_after.as_secs()));
                format!("the server's certificate is out of date, {since}: renew it there, or set this machine's clock")
            }
            CertificateError::NotValidYetContext { time, not_before } => {
                let until = days(not_before.as_secs().saturating_sub(time.as_secs()));
                format!("the server's certificate is not valid yet, {until}: set the clock here, or there")
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                let advice = "connect by a name or address that it is for, or have it made for this one, too";
                format!("the server's certificate is for another host ({error}): {advice}")
            }
            CertificateError::UnknownIssuer | CertificateError::BadSignature => match &access.tls_ca_file {
                Some(path) => {
                    format!("the server's certificate is of no authority in tls_ca_file {}", path.display())
                }
                None => "the server's certificate is of an authority that this system does not trust: \
                         name that in tls_ca_file"
                    .into(),
            },
            CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
                "the server's certificate is its own authority: have one made that an authority has signed".into()
            }
            error => format!("the server's certificate cannot be trusted: {error}"),
        }
    }

    fn days(seconds: u64) -> String {
        match seconds / (24 * 60 * 60) {
            0 => "by less than a day".into(),
            days => format!("by {days} days"),
        }
    }

    fn of_alert(alert: AlertDescription, access: &Access) -> String {
        let refusal = match alert {
            AlertDescription::UnknownCA => "it has to be of an authority that the server trusts",
            AlertDescription::CertificateExpired => "it is out of date: renew it",
            AlertDescription::CertificateRevoked => "it was revoked: renew it",
            AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::AccessDenied
            | AlertDescription::DecryptError => "the server's log may tell more",
            _ => "",
        };
        match &access.tls_cert_file {
            Some(path) if !refusal.is_empty() => {
                format!(
                    "the server does not take the certificate in tls_cert_file {} ({alert:?}): {refusal}",
                    path.display()
                )
            }
            None if alert == AlertDescription::CertificateRequired => {
                "the server wants a client certificate: name one in tls_cert_file and tls_key_file".into()
            }
            None => format!("the server ended the TLS handshake ({alert:?}); {WANTS_ONE}"),
            Some(_) => format!("the server ended the TLS handshake ({alert:?}); its log may tell more"),
        }
    }
}
