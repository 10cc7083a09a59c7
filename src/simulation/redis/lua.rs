//! The scripts' side of the server: what Redis gives a script, and what it makes of the answer.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use mlua::{Error, Function, HookTriggers, Lua, MultiValue, Result, String as LuaString, Table, Value, VmState};

use super::commands::{Keyspace, Reply, double};
use super::db::Bytes;

/// A state in which a script finds what it finds on a server, and nothing else: as there, it may neither make nor read
/// globals of its own.
pub(super) fn state(keyspace: &Rc<RefCell<Keyspace>>) -> Result<Lua> {
    let lua = Lua::new();
    let redis = lua.create_table()?;
    let of_call = keyspace.clone();
    redis.set(
        "call",
        lua.create_function(move |lua, args| answer(lua, of_call.borrow_mut().call(&words(args)?), true))?,
    )?;
    let of_pcall = keyspace.clone();
    redis.set(
        "pcall",
        lua.create_function(move |lua, args| answer(lua, of_pcall.borrow_mut().call(&words(args)?), false))?,
    )?;
    lua.globals().set("redis", redis)?;
    let structs = lua.create_table()?;
    structs.set("pack", lua.create_function(pack)?)?;
    structs.set("unpack", lua.create_function(unpack)?)?;
    lua.globals().set("struct", structs)?;
    lua.load(
        "KEYS, ARGV = {}, {}
        setmetatable(_G, {
            __newindex = function(_, name) error('script tried to create global variable ' .. tostring(name)) end,
            __index = function(_, name) error('script tried to access nonexistent global variable ' .. tostring(name)) end,
        })",
    )
    .exec()?;
    Ok(lua)
}

/// Ends a script that has taken `most` steps of so many instructions; `taken` is set to 0 before each.
pub(super) fn end_after(lua: &Lua, step: u32, taken: Rc<Cell<u32>>, most: u32) {
    let count = move |_: &Lua, _: &mlua::Debug| {
        taken.set(taken.get() + 1);
        match taken.get() > most {
            true => Err(Error::runtime("ERR the script does not come to an end")),
            false => Ok(VmState::Continue),
        }
    };
    lua.set_hook(HookTriggers::new().every_nth_instruction(step), count).expect("a hook");
}

/// A script that does not compile.
pub(super) fn failing(lua: &Lua, why: &str) -> Function {
    let why = format!("ERR Error compiling script: {why}");
    lua.create_function(move |_, ()| -> Result<()> { Err(Error::runtime(&why)) }).expect("a function")
}

pub(super) fn run(lua: &Lua, function: &Function, keys: &[Bytes], argv: &[Bytes]) -> Reply {
    let outcome = list(lua, keys)
        .and_then(|keys| lua.globals().raw_set("KEYS", keys))
        .and_then(|()| lua.globals().raw_set("ARGV", list(lua, argv)?))
        .and_then(|()| function.call::<Value>(()))
        .and_then(reply);
    outcome.unwrap_or_else(|error| Reply::Error(error_text(&error)))
}

/// Errors of commands keep their code, as on Redis 7; the script's own get one.
fn error_text(error: &Error) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    match first.split_once("runtime error: ") {
        Some((_, text)) if text.starts_with(|c: char| c.is_ascii_uppercase()) => text.into(),
        _ => format!("ERR {first}"),
    }
}

fn list(lua: &Lua, items: &[Bytes]) -> Result<Table> {
    lua.create_sequence_from(items.iter().map(|item| lua.create_string(item)).collect::<Result<Vec<_>>>()?)
}

fn words(args: MultiValue) -> Result<Vec<Bytes>> {
    args.into_iter()
        .map(|arg| match arg {
            Value::String(text) => Ok(text.as_bytes().to_vec()),
            Value::Integer(number) => Ok(number.to_string().into_bytes()),
            Value::Number(number) => Ok(double(number).into_bytes()),
            _ => Err(Error::runtime("ERR Lua redis lib command arguments must be strings or integers")),
        })
        .collect()
}

fn answer(lua: &Lua, reply: Reply, raise: bool) -> Result<Value> {
    Ok(match reply {
        Reply::Error(text) if raise => return Err(Error::runtime(text)),
        Reply::Error(text) => {
            let table = lua.create_table()?;
            table.set("err", text)?;
            Value::Table(table)
        }
        Reply::Status(text) => {
            let table = lua.create_table()?;
            table.set("ok", text)?;
            Value::Table(table)
        }
        Reply::Nil => Value::Boolean(false),
        Reply::Int(number) => Value::Number(number as f64),
        Reply::Bulk(bytes) => Value::String(lua.create_string(bytes)?),
        Reply::Array(items) => {
            let items = items.into_iter().map(|item| answer(lua, item, false)).collect::<Result<Vec<_>>>()?;
            Value::Table(lua.create_sequence_from(items)?)
        }
    })
}

/// What a script returns, as it is sent: numbers are cut to integers, and a list ends at the first nil.
fn reply(value: Value) -> Result<Reply> {
    Ok(match value {
        Value::Nil | Value::Boolean(false) => Reply::Nil,
        Value::Boolean(true) => Reply::Int(1),
        Value::Integer(number) => Reply::Int(number),
        Value::Number(number) => Reply::Int(number as i64),
        Value::String(text) => Reply::Bulk(text.as_bytes().to_vec()),
        Value::Table(table) => {
            if let Value::String(text) = table.raw_get("err")? {
                return Ok(Reply::Error(text.to_string_lossy()));
            }
            let mut items = Vec::new();
            for place in 1.. {
                match table.raw_get::<Value>(place)? {
                    Value::Nil => break,
                    item => items.push(reply(item)?),
                }
            }
            Reply::Array(items)
        }
        _ => Reply::Nil,
    })
}

/// `<` and as many doubles as there are `d`.
fn pack(lua: &Lua, (format, values): (String, MultiValue)) -> Result<LuaString> {
    let doubles = doubles(&format)?;
    let number = |value: &Value| Ok(lua.coerce_number(value.clone())?.unwrap_or(f64::NAN));
    let numbers = values.iter().map(number).collect::<Result<Vec<f64>>>()?;
    if numbers.len() < doubles || numbers.iter().any(|n| n.is_nan()) {
        return Err(Error::runtime("ERR bad argument to 'pack' (number expected)"));
    }
    let bytes: Bytes = numbers[..doubles].iter().flat_map(|number| number.to_le_bytes()).collect();
    lua.create_string(bytes)
}

fn unpack(_: &Lua, (format, text): (String, LuaString)) -> Result<MultiValue> {
    let bytes = text.as_bytes();
    if bytes.len() < 8 * doubles(&format)? {
        return Err(Error::runtime("ERR data string too short"));
    }
    let number = |chunk: &[u8]| Value::Number(f64::from_le_bytes(chunk.try_into().expect("eight bytes")));
    Ok(bytes.chunks_exact(8).map(number).collect())
}

fn doubles(format: &str) -> Result<usize> {
    match format.strip_prefix('<').filter(|rest| rest.bytes().all(|byte| byte == b'd')) {
        Some(rest) => Ok(rest.len()),
        None => Err(Error::runtime("ERR the simulation packs doubles only")),
    }
}
