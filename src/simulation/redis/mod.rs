//! A Redis in memory, for the simulation: the commands that the scripts call, and Lua 5.1 with `redis.call`. Its clock
//! is moved by hand, also backwards.

mod commands;
pub(crate) mod db;
mod lua;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use ::redis::Value;
use mlua::{Function, Lua};

use commands::{Keyspace, Reply};
use db::{Bytes, Db};

/// What a script that is sent by its source becomes before it runs: for mutants.
pub(crate) type Rewrite = Rc<dyn Fn(&str) -> String>;

pub(crate) struct Redis {
    keyspace: Rc<RefCell<Keyspace>>,
    lua: Lua,
    /// By the hash of their source.
    loaded: HashMap<String, Function>,
    /// What was loaded once: to forget a script is not to compile it anew.
    compiled: HashMap<String, Function>,
    rewrite: Option<Rewrite>,
    /// How long the running script has been at work, in [`STEP`]s.
    steps: Rc<Cell<u32>>,
}

/// Instructions, of which no script of ours needs as many as a hundred steps; one with a mistake may go on for ever.
const STEP: u32 = 100_000;

impl Redis {
    pub(crate) fn new(rewrite: Option<Rewrite>) -> Self {
        let keyspace = Rc::new(RefCell::new(Keyspace::default()));
        let lua = lua::state(&keyspace).expect("a Lua state");
        let steps = Rc::new(Cell::new(0));
        if rewrite.is_some() {
            lua::end_after(&lua, STEP, steps.clone(), 100);
        }
        Redis { keyspace, lua, loaded: HashMap::new(), compiled: HashMap::new(), rewrite, steps }
    }

    /// Carries out a command.
    pub(crate) fn execute(&mut self, args: &[Bytes]) -> Value {
        let name = String::from_utf8_lossy(&args[0]).to_uppercase();
        let reply = match name.as_str() {
            "EVAL" => {
                let source = String::from_utf8_lossy(&args[1]).into_owned();
                let sha = self.load(&source);
                self.run(&sha, &args[2..])
            }
            "EVALSHA" => {
                let sha = String::from_utf8_lossy(&args[1]).into_owned();
                self.run(&sha, &args[2..])
            }
            _ => {
                self.keyspace.borrow_mut().written = false;
                self.keyspace.borrow_mut().call(args)
            }
        };
        value(reply)
    }

    fn load(&mut self, source: &str) -> String {
        let sha = ::redis::Script::new(source).get_hash().to_owned();
        if !self.compiled.contains_key(&sha) {
            let text = self.rewrite.as_ref().map_or_else(|| source.to_owned(), |rewrite| rewrite(source));
            let function = self.lua.load(text).set_name("@user_script").into_function();
            self.compiled.insert(sha.clone(), function.unwrap_or_else(|e| lua::failing(&self.lua, &e.to_string())));
        }
        self.loaded.insert(sha.clone(), self.compiled[&sha].clone());
        sha
    }

    fn run(&mut self, sha: &str, args: &[Bytes]) -> Reply {
        let Some(function) = self.loaded.get(sha) else {
            return Reply::Error("NOSCRIPT No matching script. Please use EVAL.".into());
        };
        self.keyspace.borrow_mut().written = false;
        self.steps.set(0);
        let keys = String::from_utf8_lossy(&args[0]).parse::<usize>().expect("a number of keys");
        let (keys, argv) = args[1..].split_at(keys);
        lua::run(&self.lua, function, keys, argv)
    }

    /// SCRIPT FLUSH.
    pub(crate) fn forget_scripts(&mut self) {
        self.loaded.clear();
    }

    /// Sets the wall clock, in microseconds.
    pub(crate) fn set_wall(&mut self, micros: u64) {
        self.keyspace.borrow_mut().wall = micros;
    }

    /// The channels that somebody listens to.
    pub(crate) fn set_channels(&mut self, channels: BTreeSet<String>) {
        self.keyspace.borrow_mut().heard = channels.into_iter().map(String::into_bytes).collect();
    }

    pub(crate) fn set_full(&mut self, full: bool) {
        self.keyspace.borrow_mut().full = full;
    }

    /// Somebody is subscribed to the channel, or not any more.
    pub(crate) fn set_heard(&mut self, channel: &str, is_heard: bool) {
        let heard = &mut self.keyspace.borrow_mut().heard;
        match is_heard {
            true => heard.insert(channel.into()),
            false => heard.remove(channel.as_bytes()),
        };
    }

    /// How often somebody asked who is subscribed.
    pub(crate) fn looks(&self) -> u64 {
        self.keyspace.borrow().looks
    }

    /// How often an expiry was set.
    pub(crate) fn expiries(&self) -> u64 {
        self.keyspace.borrow().expiries
    }

    /// What was published since this was last asked: channel and payload.
    pub(crate) fn take_published(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.keyspace.borrow_mut().published)
    }

    pub(crate) fn data(&self) -> Db {
        self.keyspace.borrow().db.clone()
    }

    pub(crate) fn set_data(&mut self, db: Db) {
        self.keyspace.borrow_mut().db = db;
    }

    pub(crate) fn look<R>(&self, look: impl FnOnce(&Db) -> R) -> R {
        look(&self.keyspace.borrow().db)
    }
}

/// A command as the server sees it.
pub(crate) fn words(cmd: &::redis::Cmd) -> Vec<Bytes> {
    cmd.args_iter()
        .map(|arg| match arg {
            ::redis::Arg::Simple(bytes) => bytes.to_vec(),
            other => panic!("a command has plain words, not {:?}", matches!(other, ::redis::Arg::Cursor)),
        })
        .collect()
}

fn value(reply: Reply) -> Value {
    match reply {
        Reply::Nil => Value::Nil,
        Reply::Int(number) => Value::Int(number),
        Reply::Bulk(bytes) => Value::BulkString(bytes),
        Reply::Status("OK") => Value::Okay,
        Reply::Status(text) => Value::SimpleString(text.into()),
        Reply::Array(items) => Value::Array(items.into_iter().map(value).collect()),
        Reply::Error(text) => {
            let line = format!("-{}\r\n", text.replace(['\r', '\n'], " "));
            ::redis::parse_redis_value(line.as_bytes()).expect("an error reply")
        }
    }
}
