//! Where the limiters live, and how to be let in there: by flags, or by the environment.

use std::process::Command;

use fairq::{Client, ClientBuilder};

use crate::exit::{Failure, USAGE};

/// Options of a client, each by the environment, as `FAIRQ_` and its key in capitals.
const KEYS: [&str; 7] =
    ["username", "password", "password_file", "sentinel_password_file", "tls_ca_file", "tls_cert_file", "tls_key_file"];

/// What the command line says of it.
#[derive(clap::Args)]
#[command(next_help_heading = "Server")]
pub struct Flags {
    /// Where the limiters live: redis://[user:password@]host[:port][/db], redis-cluster://host:port,…,
    /// redis-sentinel://host:port,…/SERVICE, rediss… for TLS, unix:///path
    #[arg(long, global = true, env = "FAIRQ_URL", hide_env_values = true, value_name = "URL", display_order = 900)]
    url: Option<String>,
    /// The user to log in as. FAIRQ_PASSWORD is the password; it has no flag, since all users of a machine see these
    #[arg(
        long,
        global = true,
        env = "FAIRQ_USERNAME",
        value_name = "NAME",
        hide_short_help = true,
        display_order = 901
    )]
    username: Option<String>,
    /// A file with the password
    #[arg(
        long,
        global = true,
        env = "FAIRQ_PASSWORD_FILE",
        value_name = "FILE",
        hide_short_help = true,
        display_order = 902
    )]
    password_file: Option<String>,
    /// A file with the password of the sentinels
    #[arg(
        long,
        global = true,
        env = "FAIRQ_SENTINEL_PASSWORD_FILE",
        value_name = "FILE",
        hide_short_help = true,
        display_order = 903
    )]
    sentinel_password_file: Option<String>,
    /// For rediss://: the authorities to trust in the place of the system's (PEM)
    #[arg(
        long,
        global = true,
        env = "FAIRQ_TLS_CA_FILE",
        value_name = "FILE",
        hide_short_help = true,
        display_order = 904
    )]
    tls_ca_file: Option<String>,
    /// For rediss://: the certificate to show to servers that want one (PEM)
    #[arg(
        long,
        global = true,
        env = "FAIRQ_TLS_CERT_FILE",
        value_name = "FILE",
        hide_short_help = true,
        display_order = 905
    )]
    tls_cert_file: Option<String>,
    /// The certificate's private key (PEM)
    #[arg(
        long,
        global = true,
        env = "FAIRQ_TLS_KEY_FILE",
        value_name = "FILE",
        hide_short_help = true,
        display_order = 906
    )]
    tls_key_file: Option<String>,
}

/// Where the limiters live.
#[derive(Clone, Default)]
pub struct Site {
    url: Option<String>,
    /// How to be let in.
    options: Vec<(&'static str, String)>,
}

impl Site {
    pub fn given(flags: Flags) -> Site {
        let password = std::env::var("FAIRQ_PASSWORD").ok();
        let Flags { url, username, password_file, sentinel_password_file, tls_ca_file, tls_cert_file, tls_key_file } =
            flags;
        let values =
            [username, password, password_file, sentinel_password_file, tls_ca_file, tls_cert_file, tls_key_file];
        let set = |(key, value): (_, Option<String>)| value.filter(|value| !value.is_empty()).map(|value| (key, value));
        Site { url, options: KEYS.into_iter().zip(values).filter_map(set).collect() }
    }

    /// A server that asks for no login.
    pub fn open_to_all(url: String) -> Site {
        Site { url: Some(url), options: Vec::new() }
    }

    /// The same servers by another address.
    pub fn by(&self, url: &str) -> Site {
        Site { url: Some(url.to_owned()), options: self.options.clone() }
    }

    pub fn url(&self) -> &str {
        self.url.as_deref().unwrap_or_default()
    }

    /// Whether limiters live and die with the process here.
    pub fn is_memory(&self) -> bool {
        self.url().is_empty() || self.url().starts_with("memory:")
    }

    /// A clear no, unless several processes can share it.
    pub fn must_be_shared(&self) -> Result<&Site, Failure> {
        if !self.is_memory() {
            return Ok(self);
        }
        let what = match self.url() {
            "" => "no server given, and limiters in the memory of this command would be shared with nobody".into(),
            url => format!("{url} keeps limiters inside one process: of no use to a command that has to share them"),
        };
        Err(Failure::new(USAGE, what).hint("give a Redis server by --url redis://HOST or in FAIRQ_URL"))
    }

    /// A client of it that is about to be opened.
    pub fn builder(&self) -> Result<ClientBuilder, Failure> {
        let options = if self.is_memory() { &[] } else { &self.options[..] };
        let builder = Client::builder(self.url());
        Ok(options.iter().try_fold(builder, |builder, (key, value)| builder.option(key, value))?)
    }

    /// Hands it on to another process. By the environment: arguments can be seen by every user of the machine.
    pub fn hand_on(&self, to: &mut Command) {
        to.env("FAIRQ_URL", self.url());
        for key in KEYS {
            let variable = format!("FAIRQ_{}", key.to_uppercase());
            match self.options.iter().find(|(other, _)| *other == key) {
                Some((_, value)) => to.env(variable, value),
                None => to.env_remove(variable),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(url: Option<&str>) -> Site {
        Site { url: url.map(str::to_owned), ..Site::default() }
    }

    #[test]
    fn memory_is_refused_where_it_would_mislead() {
        for url in [None, Some(""), Some("memory:")] {
            assert_eq!(at(url).must_be_shared().err().map(|failure| failure.status), Some(USAGE), "{url:?}");
        }
        assert!(at(Some("redis://h")).must_be_shared().is_ok());
    }

    /// `fairq demo` of somebody whose environment is for other commands.
    #[test]
    fn a_login_is_of_no_matter_in_memory() {
        let site = Site { url: None, options: vec![("password_file", "/nowhere".into())] };
        assert!(site.builder().is_ok_and(|builder| builder.open().is_ok()));
    }

    #[test]
    fn every_option_to_be_let_in_has_a_flag_or_a_variable() {
        let to_be_let_in = |key: &str| key.starts_with("tls_") || key.contains("password") || key == "username";
        let all = fairq::OPTIONS.iter().filter(|option| to_be_let_in(option.key)).map(|option| option.key);
        assert!(all.eq(KEYS), "{KEYS:?}");
    }
}
