//! Instructions per operation, counted by valgrind: figures that do not move with the machine's mood.
//!
//! ```sh
//! cargo bench --bench instructions             # prints them beside those of benches/instructions.txt
//! cargo bench --bench instructions -- --save   # writes that file anew
//! ```
//!
//! Needs valgrind and redis-server (or FAIRQ_REDIS70). Each figure is the difference of two runs, one of them with more
//! operations, so that start and end do not count. Where the server is counted, its own clockwork adds a percent or two.

use std::fmt::Write as _;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fairq::{Client, Completions, Limiter, Request};

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/instructions.txt");
/// A run without an operation to be counted, and how many more a second one has.
const FEW: u64 = 200;
const MORE: u64 = 1000;
const WAITERS: u64 = 1000;

/// Does something at a store so many times.
type Work = fn(&str, u64);

/// What is done, again and again.
const WORKS: [(&str, Work); 3] = [
    ("acquire + release, uncontended", |url, times| pairs(&limiter(url, 4), times)),
    ("acquire + release, 1,000 waiting", handoffs),
    ("start + cancel, 1,000 waiting", cancels),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    match &arguments[..] {
        [word, url, work, times] if word == "work" => {
            let number = |text: &String| text.parse::<u64>().expect("a number");
            WORKS[number(work) as usize].1(url, number(times));
        }
        [] => print!("{}", beside_saved(&measure())),
        [word] if word == "--save" => std::fs::write(TABLE, measure()).expect("write the table"),
        _ => panic!("usage: cargo bench --bench instructions [-- --save]"),
    }
}

fn limiter(url: &str, limit: u64) -> Limiter {
    let client = Client::open(url).expect("open");
    // Polls and heartbeats stay out of the count.
    let hour = Duration::from_secs(3600);
    client.limiter("a").limit(limit).lease(hour).idle(2 * hour).poll(Duration::from_secs(60)).open().expect("open")
}

fn pairs(limiter: &Limiter, times: u64) {
    for _ in 0..times {
        limiter.acquire(&Request::new()).expect("a permit").release().expect("release");
    }
}

/// With many waiting, a release grants the first of them, and another comes to the end of the line.
fn handoffs(url: &str, times: u64) {
    let limiter = limiter(url, 1);
    let done = Completions::new();
    let start = |token| limiter.acquire_start(&Request::new().wait_forever(), &done, token).expect("start");
    (0..=WAITERS).for_each(|token| drop(start(token)));
    for token in 0..times {
        let permit = next(&done);
        start(WAITERS + 1 + token);
        permit.release().expect("release");
    }
}

fn next(done: &Completions) -> fairq::Permit {
    let first = done.poll(1, Duration::from_secs(60)).pop().expect("a completion");
    first.result.expect("a permit")
}

fn cancels(url: &str, times: u64) {
    let limiter = limiter(url, 1);
    let done = Completions::new();
    let start = |token| limiter.acquire_start(&Request::new().wait_forever(), &done, token).expect("start");
    (0..=WAITERS).for_each(|token| drop(start(token)));
    let _permit = next(&done);
    for token in 0..times {
        let ticket = start(WAITERS + 1 + token);
        while ticket.last_position().is_none() {
            std::thread::yield_now();
        }
        ticket.cancel();
        assert!(done.poll(1, Duration::from_secs(60)).pop().expect("a completion").result.is_err());
    }
}

// --- counting

fn measure() -> String {
    let mut table =
        String::from("instructions per operation                        memory  client of Redis  Redis server\n");
    for (index, (name, _)) in WORKS.iter().enumerate() {
        let memory = difference(|times| of_client(index, "memory:", times));
        let (mut client, mut server) = ([0; 2], [0; 2]);
        for (run, times) in [FEW, FEW + MORE].into_iter().enumerate() {
            server[run] = with_server(true, |url| work(index, url, times));
            with_server(false, |url| client[run] = of_client(index, url, times));
        }
        let each = |runs: [u64; 2]| (runs[1] - runs[0]) / MORE;
        writeln!(table, "{name:46}{memory:10}{:17}{:14}", each(client), each(server)).expect("to a string");
    }
    table
}

fn difference(count: impl Fn(u64) -> u64) -> u64 {
    (count(FEW + MORE) - count(FEW)) / MORE
}

fn beside_saved(now: &str) -> String {
    let saved = std::fs::read_to_string(TABLE).unwrap_or_default();
    format!("{now}\nas saved in benches/instructions.txt:\n{saved}")
}

fn this() -> std::path::PathBuf {
    std::env::current_exe().expect("this program")
}

fn work(index: usize, url: &str, times: u64) {
    let status = Command::new(this()).args(["work", url, &index.to_string(), &times.to_string()]).status();
    assert!(status.expect("run the work").success());
}

fn of_client(index: usize, url: &str, times: u64) -> u64 {
    let mut command = counted(&this());
    command.args(["work", url, &index.to_string(), &times.to_string()]);
    count_in(command.stderr(Stdio::piped()).spawn().expect("valgrind"))
}

fn counted(program: &std::path::Path) -> Command {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program);
    command
}

/// What valgrind says at the end.
fn count_in(child: Child) -> u64 {
    let output = child.wait_with_output().expect("the end of what is counted");
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().find_map(|line| line.split_once("Collected :"));
    line.and_then(|(_, number)| number.trim().parse().ok()).unwrap_or_else(|| panic!("no count in:\n{text}"))
}

/// Runs `then` beside a server; counts the server's instructions, if it is to be counted.
fn with_server(counts: bool, then: impl FnOnce(&str)) -> u64 {
    let program = std::env::var_os("FAIRQ_REDIS70").unwrap_or_else(|| "redis-server".into());
    let path = ["/usr/bin", "/usr/local/bin"].iter().map(|folder| std::path::Path::new(folder).join(&program));
    let path = path.into_iter().find(|path| path.exists()).expect("a redis-server");
    let port = TcpListener::bind("127.0.0.1:0").and_then(|probe| probe.local_addr()).expect("a free port").port();
    let mut command = if counts { counted(&path) } else { Command::new(&path) };
    command.args(["--port", &port.to_string(), "--save", "", "--hz", "1", "--logfile", "/dev/null"]);
    let server = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("start the server");
    let start = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(start.elapsed() < Duration::from_secs(30), "the server does not come up");
        std::thread::sleep(Duration::from_millis(50));
    }
    then(&format!("redis://127.0.0.1:{port}"));
    let stop = Command::new("redis-cli").args(["-p", &port.to_string(), "shutdown", "nosave"]).status();
    assert!(stop.expect("redis-cli, to stop the server").success());
    if counts {
        return count_in(server);
    }
    server.wait_with_output().expect("the server's end");
    0
}
