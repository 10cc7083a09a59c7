//! A real server process on a port of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tempfile::TempDir;

use super::ports::free_port;
use super::{Flavor, Tls, spawner};

/// How many ports are tried before a start is given up.
const TRIES: u32 = 12;
/// How long a started server may take to answer.
const START: Duration = Duration::from_secs(20);
/// Limits of the test's own connections.
const CONNECT: Duration = Duration::from_secs(2);
const REPLY: Duration = Duration::from_secs(10);

/// Commands that run a script or a function.
const SCRIPTS: [&str; 6] = ["eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "fcall_ro"];

/// A running server, killed and removed on drop.
///
/// All methods take `&self`, so that threads of a test can share one.
/// A server in a `static` is not dropped; it dies with the test process and
/// leaves its folder behind.
pub struct Server {
    flavor: Flavor,
    port: u16,
    /// A second port, on which it speaks TLS.
    tls_port: Option<u16>,
    tls: Option<Tls>,
    password: Option<String>,
    args: Vec<String>,
    environment: Vec<(&'static str, PathBuf)>,
    kind: Kind,
    folder: TempDir,
    child: Mutex<Option<Child>>,
}

/// Options of a server that is about to start.
pub struct ServerBuilder {
    flavor: Flavor,
    tls: Option<Tls>,
    password: Option<String>,
    args: Vec<String>,
    environment: Vec<(&'static str, PathBuf)>,
    kind: Kind,
}

/// What the process is started as.
#[derive(PartialEq, Eq)]
enum Kind {
    Alone,
    /// Needs a second port, the cluster's bus, 10,000 above.
    OfCluster,
    /// With the lines of its configuration that are about what it watches.
    Sentinel(String),
}

/// Why a start did not lead to an answering server.
#[derive(Debug)]
enum StartError {
    /// The process ended, most likely because the port was taken.
    Exited,
    /// Somebody else's server answers on that port.
    Foreign,
    /// It never answered.
    Silent(Option<redis::RedisError>),
}

impl ServerBuilder {
    /// Adds `--option value`, as on the server's command line.
    pub fn arg(mut self, option: &str, value: &str) -> Self {
        self.args.extend([option.to_owned(), value.to_owned()]);
        self
    }

    /// Adds a path to its environment.
    pub fn env(mut self, name: &'static str, path: &Path) -> Self {
        self.environment.push((name, path.to_owned()));
        self
    }

    /// Requires a password of the default user.
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self.arg("--requirepass", password)
    }

    /// Makes it a node of a cluster, which knows no other node yet.
    pub fn of_cluster(mut self) -> Self {
        self.kind = Kind::OfCluster;
        self.arg("--cluster-enabled", "yes")
    }

    /// Makes it a sentinel that is configured by these lines; other options are not for sentinels.
    pub fn sentinel(mut self, lines: &str) -> Self {
        self.kind = Kind::Sentinel(lines.to_owned());
        self
    }

    /// Has it speak TLS on a port of its own, beside the plain one, which is the test's.
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Starts the server and waits until it answers.
    pub fn start(self) -> Server {
        let mut server = Server {
            flavor: self.flavor,
            port: 0,
            tls_port: None,
            tls: self.tls,
            password: self.password,
            args: self.args,
            environment: self.environment,
            kind: self.kind,
            folder: new_folder(),
            child: Mutex::new(None),
        };
        for _ in 0..TRIES {
            server.port = free_port(server.kind == Kind::OfCluster);
            server.tls_port = server.tls.is_some().then(|| free_port(server.kind == Kind::OfCluster));
            match server.launch() {
                Ok(()) => return server,
                Err(StartError::Foreign) => {}
                Err(StartError::Exited) if server.log().contains("in use") => {}
                Err(reason) => server.give_up(&reason),
            }
        }
        panic!("{}: {TRIES} ports in a row were taken", server.flavor)
    }
}

impl Server {
    /// Starts a server that keeps nothing on disk.
    pub fn start(flavor: Flavor) -> Server {
        Server::builder(flavor).start()
    }

    /// A server to be started with options of its own.
    pub fn builder(flavor: Flavor) -> ServerBuilder {
        ServerBuilder {
            flavor,
            tls: None,
            password: None,
            args: Vec::new(),
            environment: Vec::new(),
            kind: Kind::Alone,
        }
    }

    /// The flavor for tests that need only one: 7.0, or the first there is.
    pub fn default_flavor() -> Flavor {
        let available = Flavor::available();
        let usual = Flavor::Redis70;
        if available.contains(&usual) { usual } else { available[0] }
    }

    pub fn flavor(&self) -> Flavor {
        self.flavor
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The port on which it speaks TLS.
    pub fn tls_port(&self) -> u16 {
        self.tls_port.expect("it was to speak TLS")
    }

    /// The port that other servers are told: of TLS, if it speaks that.
    pub fn told_port(&self) -> u16 {
        self.tls_port.unwrap_or(self.port)
    }

    /// The address by TLS, without a login.
    pub fn tls_url(&self) -> String {
        format!("rediss://127.0.0.1:{}", self.tls_port())
    }

    /// The server's folder: its log, and what it persists.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The process id; panics when the server is not running.
    pub fn pid(&self) -> u32 {
        let child = self.child.lock();
        child.as_ref().expect("the server is not running").id()
    }

    /// The address by TCP.
    pub fn url(&self) -> String {
        let login = self.password.as_ref().map(|p| format!(":{p}@"));
        let login = login.unwrap_or_default();
        format!("redis://{login}127.0.0.1:{}", self.port)
    }

    /// The address by Unix socket.
    pub fn unix_url(&self) -> String {
        let login = self.password.as_ref().map(|p| format!("?pass={p}"));
        let login = login.unwrap_or_default();
        format!("redis+unix://{}{login}", self.socket().display())
    }

    /// Kills the server (SIGKILL) and waits for its end. What it persisted
    /// stays until the drop, so that [`Server::restart`] can follow.
    pub fn kill(&self) {
        if let Some(mut child) = self.child.lock().take() {
            child.kill().expect("kill the server");
            child.wait().expect("wait for the killed server");
        }
    }

    /// Kills the server for good and removes its folder.
    pub fn stop(self) {
        drop(self);
    }

    /// Kills the server if it runs, and starts it again with the same port,
    /// options and folder; waits until it answers (with its data loaded).
    pub fn restart(&self) {
        self.kill();
        if let Err(reason) = self.launch() {
            self.give_up(&reason);
        }
    }

    /// Stops the process from running (SIGSTOP): it looks hung.
    pub fn pause(&self) {
        self.signal(libc::SIGSTOP);
    }

    /// Lets a paused process go on (SIGCONT).
    pub fn resume(&self) {
        self.signal(libc::SIGCONT);
    }

    /// A connection for the test's own commands.
    pub fn conn(&self) -> redis::Connection {
        self.try_conn().unwrap_or_else(|error| panic!("connect to {} ({}): {error}", self.url(), self.flavor))
    }

    /// The text of `INFO section`.
    pub fn info(&self, section: &str) -> String {
        let reply = redis::cmd("INFO").arg(section).query(&mut self.conn());
        reply.unwrap_or_else(|error| panic!("INFO {section}: {error}"))
    }

    /// How often a command ran since the last reset, in scripts as well.
    pub fn calls(&self, command: &str) -> u64 {
        command_stat(&self.info("commandstats"), command, "calls")
    }

    /// How many scripts (and functions) ran since the last reset, including
    /// those refused with NOSCRIPT.
    pub fn script_calls(&self) -> u64 {
        self.script_stat("calls")
    }

    /// How long these took together, in microseconds.
    pub fn script_usec(&self) -> u64 {
        self.script_stat("usec")
    }

    /// Starts the counting of commands anew.
    pub fn reset_stats(&self) {
        redis::cmd("CONFIG").arg("RESETSTAT").exec(&mut self.conn()).expect("CONFIG RESETSTAT");
    }

    /// The log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    fn script_stat(&self, field: &str) -> u64 {
        let info = self.info("commandstats");
        SCRIPTS.iter().map(|command| command_stat(&info, command, field)).sum()
    }

    fn signal(&self, signal: i32) {
        let child = self.child.lock();
        let pid = child.as_ref().expect("the server is not running").id();
        // SAFETY: plain system call; the child is not reaped under this lock,
        // so the id is still its own.
        let result = unsafe { libc::kill(pid as i32, signal) };
        assert_eq!(result, 0, "signal {signal} to the {} server", self.flavor);
    }

    /// The same, for a server that may be away.
    pub fn try_conn(&self) -> redis::RedisResult<redis::Connection> {
        let client = redis::Client::open(self.url())?;
        let conn = client.get_connection_with_timeout(CONNECT)?;
        conn.set_read_timeout(Some(REPLY))?;
        conn.set_write_timeout(Some(REPLY))?;
        Ok(conn)
    }

    /// Starts the process; leaves none behind when it does not come up.
    fn launch(&self) -> Result<(), StartError> {
        let command = self.command();
        let child = spawner::spawn(command).unwrap_or_else(|error| panic!("start {:?}: {error}", self.flavor.binary()));
        *self.child.lock() = Some(child);
        let result = self.wait_until_up();
        if result.is_err() {
            self.kill();
        }
        result
    }

    fn command(&self) -> Command {
        let mut command = match &self.kind {
            Kind::Sentinel(lines) => self.sentinel_command(lines),
            _ => self.server_command(),
        };
        command.envs(self.environment.iter().map(|(name, path)| (name, path)));
        command.stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// A sentinel keeps its state in its configuration file.
    fn sentinel_command(&self, lines: &str) -> Command {
        let (folder, log) = (self.folder().display(), self.log_file());
        let common = format!("port {}\nbind 127.0.0.1\ndir {folder}\nlogfile {}\n", self.port, log.display());
        let file = self.folder().join("sentinel.conf");
        let tls: String = self.tls_options().chunks(2).map(|pair| format!("{} {}\n", &pair[0][2..], pair[1])).collect();
        fs::write(&file, common + &tls + lines).expect("write the sentinel's configuration");
        let mut command = Command::new(self.flavor.binary());
        command.arg(file).arg("--sentinel");
        command
    }

    fn server_command(&self) -> Command {
        let mut command = Command::new(self.flavor.binary());
        command.args(["--port", &self.port.to_string()]);
        command.args(["--bind", "127.0.0.1", "--daemonize", "no"]);
        command.args(["--save", "", "--appendonly", "no"]);
        command.arg("--dir").arg(self.folder());
        command.arg("--unixsocket").arg(self.socket());
        command.arg("--logfile").arg(self.log_file());
        if self.flavor.guards_debug() {
            command.args(["--enable-debug-command", "local"]);
        }
        command.args(self.tls_options());
        command.args(&self.args);
        command
    }

    fn tls_options(&self) -> Vec<String> {
        let both = self.tls.as_ref().zip(self.tls_port);
        both.map(|(tls, port)| tls.options(port, self.kind == Kind::OfCluster)).unwrap_or_default()
    }

    fn wait_until_up(&self) -> Result<(), StartError> {
        let start = Instant::now();
        let mut last = None;
        while start.elapsed() < START {
            if self.has_exited() {
                return Err(StartError::Exited);
            }
            match self.answering_pid() {
                Ok(pid) if pid == self.pid() => return Ok(()),
                Ok(_) => return Err(StartError::Foreign),
                Err(error) => last = Some(error),
            }
            thread::sleep(Duration::from_millis(5));
        }
        Err(StartError::Silent(last))
    }

    fn has_exited(&self) -> bool {
        let mut child = self.child.lock();
        let child = child.as_mut().expect("a started server");
        child.try_wait().expect("ask for the server's end").is_some()
    }

    /// The process id that whoever listens on our port claims, once it serves
    /// commands (a server that still loads its data does not).
    fn answering_pid(&self) -> redis::RedisResult<u32> {
        let mut conn = self.try_conn()?;
        redis::cmd("PING").exec(&mut conn)?;
        let info: String = redis::cmd("INFO").arg("server").query(&mut conn)?;
        let pid = info.lines().find_map(|line| line.strip_prefix("process_id:"));
        Ok(pid.and_then(|pid| pid.trim().parse().ok()).unwrap_or(0))
    }

    fn give_up(&self, reason: &StartError) -> ! {
        panic!("{} with {:?} did not start: {reason:?}\n{}", self.flavor, self.args, self.log())
    }

    fn socket(&self) -> PathBuf {
        self.folder().join("socket")
    }

    fn log_file(&self) -> PathBuf {
        self.folder().join("server.log")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn new_folder() -> TempDir {
    let folder = tempfile::Builder::new().prefix("fairq-").tempdir();
    folder.expect("make a temporary folder")
}

/// One number from `cmdstat_NAME:calls=1,usec=27,…`; 0 when it never ran.
fn command_stat(info: &str, command: &str, field: &str) -> u64 {
    let row = format!("cmdstat_{command}:");
    info.lines()
        .find_map(|line| line.strip_prefix(&row))
        .and_then(|stats| stats.split(',').find_map(|s| s.strip_prefix(&format!("{field}="))))
        .and_then(|number| number.trim().parse().ok())
        .unwrap_or(0)
}
