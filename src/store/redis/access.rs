//! How a connection is let in: the login and the certificates. Whatever is in files is read anew for each connection, so
//! that a secret that was renewed is taken over by the next one, without a restart.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use redis::{ConnectionAddr, RedisConnectionInfo};

use super::url::{Address, Layout, Target};
use crate::Error;
use crate::store::StoreError;

/// More than any chain of certificates is long.
const LONGEST_FILE: u64 = 4 * 1024 * 1024;

/// As the options say it.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Access {
    pub username: Option<String>,
    pub password: Option<String>,
    pub password_file: Option<PathBuf>,
    pub sentinel_password_file: Option<PathBuf>,
    pub tls_ca_file: Option<PathBuf>,
    pub tls_cert_file: Option<PathBuf>,
    pub tls_key_file: Option<PathBuf>,
}

/// Whom a connection leads to. The two have logins of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Whom {
    Server,
    Sentinel,
}

impl Access {
    /// The options that say something, by their keys.
    fn given(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            ("username", self.username.is_some()),
            ("password", self.password.is_some()),
            ("password_file", self.password_file.is_some()),
            ("sentinel_password_file", self.sentinel_password_file.is_some()),
            ("tls_ca_file", self.tls_ca_file.is_some()),
            ("tls_cert_file", self.tls_cert_file.is_some()),
            ("tls_key_file", self.tls_key_file.is_some()),
        ];
        all.into_iter().filter(|(_, given)| *given).map(|(key, _)| key)
    }

    /// # Errors
    /// [`Error::Invalid`] if it says anything: in memory there is nothing to be let in to.
    pub(crate) fn check_unused(&self) -> Result<(), Error> {
        match self.given().next() {
            Some(key) => Err(Error::invalid(key, "it is for a server, and the URL names none (memory:)")),
            None => Ok(()),
        }
    }

    /// Whether it makes sense beside the URL. Files are not looked at before there is a connection to make.
    pub(super) fn check(&self, target: &Target) -> Result<(), Error> {
        self.check_login(target.template.redis_settings())?;
        self.check_sentinel_login(&target.layout)?;
        self.check_tls(target.template.addr())
    }

    fn check_login(&self, url: &RedisConnectionInfo) -> Result<(), Error> {
        let password = self.given().find(|key| matches!(*key, "password" | "password_file"));
        if self.username.is_some() && url.username().is_some() {
            return Err(Error::invalid("username", "the URL names a user, too: give it in one place"));
        }
        if self.username.is_some() && password.is_none() && url.password().is_none() {
            return Err(Error::invalid("username", "a user has a password, too: give it by password_file or password"));
        }
        if self.password.is_some() && self.password_file.is_some() {
            return Err(Error::invalid("password_file", "there is the option password, too: give one of them"));
        }
        match password.filter(|_| url.password().is_some()) {
            Some(key) => Err(Error::invalid(key, "the URL has a password, too: give it in one place")),
            None => Ok(()),
        }
    }

    fn check_sentinel_login(&self, layout: &Layout) -> Result<(), Error> {
        let refuse = |why: &str| Err(Error::invalid("sentinel_password_file", why));
        match layout {
            _ if self.sentinel_password_file.is_none() => Ok(()),
            Layout::Sentinel { login, .. } if login.password().is_some() => {
                refuse("the URL has sentinel_password, too: give it in one place")
            }
            Layout::Sentinel { .. } => Ok(()),
            _ => refuse("the URL names no sentinels (redis-sentinel://host:26379/SERVICE)"),
        }
    }

    fn check_tls(&self, address: &ConnectionAddr) -> Result<(), Error> {
        let tls = self.given().find(|key| key.starts_with("tls_"));
        if let Some(key) = tls.filter(|_| !matches!(address, ConnectionAddr::TcpTls { .. })) {
            let detail =
                "it is for TLS, and the URL is not: give it as rediss://, rediss-cluster:// or rediss-sentinel://";
            return Err(Error::invalid(key, detail));
        }
        match (&self.tls_cert_file, &self.tls_key_file) {
            (Some(_), None) => Err(Error::invalid("tls_cert_file", "its key is missing: name it in tls_key_file")),
            (None, Some(_)) => {
                Err(Error::invalid("tls_key_file", "its certificate is missing: name it in tls_cert_file"))
            }
            _ => Ok(()),
        }
    }

    fn password_file(&self, whom: Whom) -> Option<(&'static str, &Path)> {
        match whom {
            Whom::Server => self.password_file.as_deref().map(|path| ("password_file", path)),
            Whom::Sentinel => self.sentinel_password_file.as_deref().map(|path| ("sentinel_password_file", path)),
        }
    }

    /// The login as it is at this moment; `url` is what the URL says of it.
    pub(super) fn login(&self, whom: Whom, url: &RedisConnectionInfo) -> Result<RedisConnectionInfo, Error> {
        let mut login = url.clone();
        if let Some((key, path)) = self.password_file(whom) {
            login = login.set_password(password_in(key, path)?);
        }
        if whom == Whom::Server {
            if let Some(username) = &self.username {
                login = login.set_username(username);
            }
            if let Some(password) = &self.password {
                login = login.set_password(password);
            }
        }
        Ok(login)
    }

    /// Where the password comes from, for who has to correct it.
    pub(super) fn whence(&self, whom: Whom) -> String {
        match self.password_file(whom) {
            Some((key, path)) => format!("{key} {}", path.display()),
            None if whom == Whom::Server && self.password.is_some() => "the option password".into(),
            None if whom == Whom::Sentinel => "the URL (sentinel_user, sentinel_password)".into(),
            None => "the URL".into(),
        }
    }

    /// Whether somebody may mend a refusal of the login without a restart of this process.
    pub(super) fn rotates(&self, whom: Whom) -> bool {
        self.password_file(whom).is_some()
    }
}

/// Whether this client has ever been let in. What refuses it from the start is set up wrongly, and trying again does not
/// help. What refuses it later may be mended while it runs (a secret that is being rotated, a certificate that has
/// expired): that is an outage.
#[derive(Default)]
pub(super) struct Admission {
    granted: AtomicBool,
    /// It was told that this is over.
    refused: AtomicBool,
}

impl Admission {
    pub(super) fn grant(&self, by: &Address) {
        self.granted.store(true, Ordering::Relaxed);
        if self.refused.swap(false, Ordering::Relaxed) {
            tracing::info!(server = %by, "connections are let in again");
        }
    }

    pub(super) fn refuse(&self, by: &Address, error: Error) -> StoreError {
        let detail = match error {
            Error::Config { detail } if self.granted.load(Ordering::Relaxed) => detail,
            error => return StoreError::Fatal(error),
        };
        if !self.refused.swap(true, Ordering::Relaxed) {
            tracing::warn!(server = %by, detail, "connections are not let in any more; it is tried again and again");
        }
        StoreError::away(detail)
    }
}

/// Nothing secret.
impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.given()).finish()
    }
}

/// A file's first line is the password; many tools cannot write it without an end of line.
fn password_in(key: &str, path: &Path) -> Result<String, Error> {
    let bytes = contents(key, path)?;
    let wrong = |why: &str| Error::Config { detail: format!("{key}: {} {why}", path.display()) };
    let text = String::from_utf8(bytes).map_err(|_| wrong("is not UTF-8"))?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let password = text.strip_suffix('\r').unwrap_or(text);
    match password {
        "" => Err(wrong("is empty: it has to hold the password, and nothing else")),
        _ if password.contains('\n') => Err(wrong("has several lines: it has to hold the password, and nothing else")),
        _ => Ok(password.to_owned()),
    }
}

/// What is in a file that an option names. Only of a plain file: a pipe could be read once, and may never end.
pub(super) fn contents(key: &str, path: &Path) -> Result<Vec<u8>, Error> {
    let wrong = |why: &dyn fmt::Display| Error::Config { detail: format!("{key}: {}: {why}", path.display()) };
    let unreadable = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => wrong(&"there is no such file: correct the path, or put the file there"),
        std::io::ErrorKind::PermissionDenied => wrong(&"this process may not read it: give its user the right to"),
        _ => wrong(&error),
    };
    let about = std::fs::metadata(path).map_err(unreadable)?;
    if !about.is_file() {
        return Err(wrong(&"it has to be a plain file, since it is read for each connection"));
    }
    if about.len() > LONGEST_FILE {
        return Err(wrong(&"it is too long to be what it should be"));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(LONGEST_FILE).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn judged(url: &str, set: impl Fn(&mut Access)) -> Result<(), String> {
        let mut access = Access::default();
        set(&mut access);
        access.check(&Target::parse(url).expect("a URL")).map_err(|error| error.to_string())
    }

    #[test]
    fn each_secret_is_given_in_one_place() {
        let password = |access: &mut Access| access.password = Some("s3cret".into());
        let file = |access: &mut Access| access.password_file = Some("/file".into());
        let user = |access: &mut Access| access.username = Some("app".into());
        assert_eq!(judged("redis://h", password), Ok(()));
        assert_eq!(judged("redis://app@h", file), Ok(()), "the user stays in the URL");
        assert_eq!(judged("unix:///s?user=app", file), Ok(()));
        assert_eq!(judged("redis-cluster://h:1,i:2", |access| (user(access), file(access)).0), Ok(()));
        for (url, what) in [("redis://:x@h", "password_file"), ("unix:///s?pass=x", "password_file")] {
            let refused = judged(url, file).expect_err("the password is there twice");
            assert!(refused.contains(what) && refused.contains("in one place"), "{refused}");
        }
        assert!(judged("redis://h", |access| (password(access), file(access)).0).is_err());
        assert!(judged("redis://a:x@h", user).is_err());
        assert!(judged("redis://h", user).expect_err("no password").contains("password_file"));
        let sentinels = |access: &mut Access| access.sentinel_password_file = Some("/file".into());
        assert_eq!(judged("redis-sentinel://h/main?sentinel_user=u", sentinels), Ok(()));
        assert!(judged("redis-sentinel://h/main?sentinel_password=x", sentinels).is_err());
        assert!(judged("redis://h", sentinels).expect_err("no sentinels").contains("redis-sentinel://"));
    }

    #[test]
    fn certificates_are_for_tls_and_come_with_their_keys() {
        let authority = |access: &mut Access| access.tls_ca_file = Some("/ca".into());
        let cert = |access: &mut Access| access.tls_cert_file = Some("/cert".into());
        let key = |access: &mut Access| access.tls_key_file = Some("/key".into());
        for url in ["redis://h", "redis-cluster://h", "redis-sentinel://h/main", "unix:///s"] {
            let refused = judged(url, authority).expect_err("there is no TLS");
            assert!(refused.contains("tls_ca_file") && refused.contains("rediss://"), "{refused}");
        }
        #[cfg(feature = "tls")]
        {
            assert_eq!(judged("rediss://h", authority), Ok(()));
            assert_eq!(judged("rediss-sentinel://h/main", |access| (cert(access), key(access)).0), Ok(()));
            assert!(judged("rediss://h", cert).expect_err("no key").contains("tls_key_file"));
            assert!(judged("rediss-cluster://h", key).expect_err("no certificate").contains("tls_cert_file"));
        }
        let _ = (cert, key);
    }

    #[test]
    fn a_password_file_holds_the_password_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("password");
        let read = |text: &[u8]| {
            std::fs::write(&path, text).expect("write");
            password_in("password_file", &path).map_err(|error| error.to_string())
        };
        for text in ["p w", "p w\n", "p w\r\n"] {
            assert_eq!(read(text.as_bytes()).as_deref(), Ok("p w"));
        }
        for (text, why) in [(&b""[..], "empty"), (b"\n", "empty"), (b"a\nb", "lines"), (b"s3cret\xff", "UTF-8")] {
            let refused = read(text).expect_err("no password");
            assert!(
                refused.contains("password_file") && refused.contains(why) && !refused.contains("s3cret"),
                "{refused}"
            );
        }
        for (path, why) in [("/nowhere/at all", "no such file"), ("/dev/zero", "plain file"), ("/", "plain file")] {
            let refused = password_in("password_file", Path::new(path)).expect_err("no file").to_string();
            assert!(refused.contains(path) && refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn nothing_secret_is_printed() {
        let access = Access { password: Some("s3cret".into()), username: Some("app".into()), ..Access::default() };
        assert_eq!(format!("{access:?}"), r#"["username", "password"]"#);
    }
}
