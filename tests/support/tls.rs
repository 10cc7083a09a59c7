//! How a server is told to speak TLS.

use std::path::{Path, PathBuf};

use super::{Authority, Pair};

/// How a server speaks TLS, to its clients and to other servers.
#[derive(Clone, Debug)]
pub struct Tls {
    pub own: Pair,
    /// Who has to have signed its clients' certificates.
    pub trusted: PathBuf,
    /// Whether clients have to show one.
    pub mutual: bool,
}

impl Tls {
    /// With a certificate that this authority signs.
    pub fn by(authority: &Authority, mutual: bool) -> Tls {
        Tls { own: authority.sign("server"), trusted: authority.file(), mutual }
    }

    /// As on the server's command line.
    pub fn options(&self, port: u16, of_cluster: bool) -> Vec<String> {
        let path = |path: &Path| path.display().to_string();
        let yes_or_no = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
        let mut options = vec![
            ("--tls-port", port.to_string()),
            ("--tls-cert-file", path(&self.own.cert)),
            ("--tls-key-file", path(&self.own.key)),
            ("--tls-ca-cert-file", path(&self.trusted)),
            ("--tls-auth-clients", yes_or_no(self.mutual)),
            ("--tls-replication", "yes".into()),
        ];
        if of_cluster {
            options.push(("--tls-cluster", "yes".into()));
        }
        options.into_iter().flat_map(|(option, value)| [option.to_owned(), value]).collect()
    }
}
