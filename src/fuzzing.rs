//! What the fuzz targets (`fuzz/`) see of the inside. It is not there in any other build.

use std::sync::Arc;
use std::time::Duration;

use redis::{RedisError, ServerError, Value};

use crate::engine::{Engine, Handle};
use crate::settings::Change;
use crate::status::ServerInfo;
use crate::store::redis::fuzzing as inside;
use crate::store::{
    Answer, Call, Header, Listener, Reply, RestoreKind, Restored, Store, StoreError, Verb, Verdict, Was,
};
use crate::{Client, Clock, Error, Limiter};

pub use crate::store::redis::fuzzing::{keys_of, limiter_in};

/// One verb of each kind.
fn verbs() -> Vec<Verb> {
    let restored = |no| Restored { kind: RestoreKind::Held, no, order: 1, fence: 1, cost: 1, label: "".into() };
    vec![
        Verb::Acquire { no: 1, cost: 1, may_wait: true, order: 0, label: "".into() },
        Verb::Release([(1, 1), (2, 2)].into_iter().collect()),
        Verb::Cancel([1, 2].into_iter().collect()),
        Verb::PutBack { no: 1, fence: 1 },
        Verb::Sync { version: 1, heads: vec![1, 2] },
        Verb::Restore(vec![restored(1), restored(2)]),
        Verb::Configure(Change::new().limit(1)),
        Verb::Revoke("x:1".into()),
        Verb::Leave,
        Verb::Status,
        Verb::List { held: true, offset: 0, count: 10 },
        Verb::Position([1, 2].into_iter().collect()),
    ]
}

/// Reads a reply as the answer to every verb; how many of them it is one to, and the longest complaint of the others.
pub fn read_reply(value: &Value) -> (usize, usize) {
    let header = || Header { epoch: 7, bare: false, version: 7, declaration: Arc::default() };
    let calls = verbs().into_iter().map(|verb| Call { limiter: "a".into(), header: header(), verb });
    let read = calls.map(|call| inside::answer(&call, value.clone()));
    read.fold((0, 0), |(good, longest), answer| match answer {
        Ok(_) => (good + 1, longest),
        Err(complaint) => (good, longest.max(complaint.len())),
    })
}

/// What the server's error to a call, or to an attempt to connect, is taken for: as `Debug` tells it.
pub fn judge(error: ServerError) -> (String, String) {
    let call = inside::of_reply(&error);
    (call, judge_connect(&error.into()))
}

/// The same of any error in connecting.
pub fn judge_connect(error: &RedisError) -> String {
    inside::of_connect(error)
}

/// Takes a payload as the Pub/Sub thread does. False: it says nothing, or cannot be read.
pub fn deliver(to: &Limiter, payload: &[u8]) -> bool {
    let Some(message) = inside::message(payload) else { return false };
    let engine = to.ticket().waiter().engine().clone();
    engine.notices(&message.limiter, message.epoch, message.notices);
    true
}

/// Judges an option as the C ABI does, without regard to its scope.
pub fn check_option(key: &str, value: &str) -> bool {
    crate::options::check(key, value).is_ok()
}

/// Forgets every limiter in memory, so that no run depends on the ones before.
pub fn forget_worlds() {
    crate::store::memory::forget_worlds();
}

/// What a hostile server does about a call.
pub enum Deed {
    /// Answers with this.
    Reply(Value),
    /// Answers with this error.
    Complain(ServerError),
    /// Goes away before it has got the call; or cannot be connected to at all.
    Leave { down: bool },
    /// Goes away when it has got the call.
    Hang,
    /// Answers as a server would that knows of nothing.
    Behave,
}

/// A client whose server does as it likes.
pub fn client_at(server: impl Fn() -> Deed + Send + Sync + 'static, clock: Clock) -> Client {
    let engine = Engine::new("instance".into(), clock, "fuzzed".into(), Duration::from_secs(1));
    engine.attach(Box::new(Hostile { server: Box::new(server) }));
    Client::over(Arc::new(Handle::new(engine)))
}

struct Hostile {
    server: Box<dyn Fn() -> Deed + Send + Sync>,
}

impl Hostile {
    fn answer(&self, call: &Call) -> Result<Answer, StoreError> {
        let detail = || "as the fuzzer wants it".to_owned();
        match (self.server)() {
            Deed::Reply(value) => {
                inside::answer(call, value).map_err(|detail| StoreError::Fatal(Error::Server { detail }))
            }
            Deed::Complain(error) => Err(inside::store_error(&error)),
            Deed::Leave { down } => Err(StoreError::Away { detail: detail(), down }),
            Deed::Hang => Err(StoreError::Lost { detail: detail() }),
            Deed::Behave => Ok(Answer { epoch: 1, version: 1, notices: Vec::new(), verdict: behave(&call.verb) }),
        }
    }
}

fn behave(verb: &Verb) -> Verdict {
    match verb {
        Verb::Release(permits) => Verdict::Released(permits.iter().map(|_| false).collect()),
        Verb::Cancel(tickets) => Verdict::Cancelled(tickets.iter().map(|_| Was::Unknown).collect()),
        Verb::Leave => Verdict::Left { more: false },
        _ => Verdict::NoSuchLimiter,
    }
}

impl Store for Hostile {
    fn submit(&self, call: Call, reply: Reply) {
        reply(self.answer(&call));
    }

    fn submit_and_wait(&self, call: Call, reply: Reply) {
        self.submit(call, reply);
    }

    fn check(&self) -> Result<ServerInfo, StoreError> {
        Ok(ServerInfo::default())
    }

    fn limiters(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    fn close(&self) {}
}
