//! The commands that the scripts call, and the few that the tests do. What is not here is an error, as a missing
//! right would be.

use super::db::{Bytes, Db, Score, Sorted, WrongType};

/// What a command answers.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reply {
    Nil,
    Int(i64),
    Bulk(Bytes),
    Status(&'static str),
    Array(Vec<Reply>),
    Error(String),
}

/// A server, without its scripts.
#[derive(Default)]
pub(super) struct Keyspace {
    pub db: Db,
    /// Microseconds since 1970.
    pub wall: u64,
    /// Memory is full.
    pub full: bool,
    /// The running script has written something already: a full memory does not stop it any more.
    pub written: bool,
    /// Channel and payload of what was published, in order.
    pub published: Vec<(String, String)>,
    /// The channels that somebody is subscribed to.
    pub heard: std::collections::BTreeSet<Bytes>,
    /// How often somebody asked for them.
    pub looks: u64,
    /// How often an expiry was set.
    pub expiries: u64,
}

type Answer = Result<Reply, WrongType>;

const WRITES: [&str; 7] = ["HSET", "HDEL", "ZADD", "ZREM", "PEXPIRE", "UNLINK", "DEL"];
const MAY_GROW: [&str; 2] = ["HSET", "ZADD"];

impl Keyspace {
    pub(super) fn call(&mut self, args: &[Bytes]) -> Reply {
        let name = String::from_utf8_lossy(&args[0]).to_uppercase();
        self.db.expire(self.wall / 1000);
        if self.full && !self.written && MAY_GROW.contains(&name.as_str()) {
            return Reply::Error("OOM command not allowed when used memory > 'maxmemory'.".into());
        }
        self.written |= WRITES.contains(&name.as_str());
        match self.run(&name, &args[1..]) {
            Ok(reply) => reply,
            Err(WrongType) => Reply::Error("WRONGTYPE Operation against a key holding the wrong kind of value".into()),
        }
    }

    fn run(&mut self, name: &str, args: &[Bytes]) -> Answer {
        match (name, args) {
            ("HGET", [key, field]) => self.get(key, field),
            ("HMGET", [key, fields @ ..]) => {
                Ok(Reply::Array(fields.iter().map(|field| self.get(key, field)).collect::<Result<_, _>>()?))
            }
            ("HGETALL", [key]) => {
                let all = self.db.hash(key)?.into_iter().flatten();
                Ok(Reply::Array(all.flat_map(|(k, v)| [Reply::Bulk(k.clone()), Reply::Bulk(v.clone())]).collect()))
            }
            ("HEXISTS", [key, field]) => Ok(int(self.db.hash(key)?.is_some_and(|h| h.contains_key(field)))),
            ("HLEN", [key]) => Ok(Reply::Int(self.db.hash(key)?.map_or(0, |h| h.len() as i64))),
            ("HSET", [key, pairs @ ..]) if !pairs.is_empty() && pairs.len() % 2 == 0 => {
                let set = |pair: &[Bytes], h: &mut std::collections::BTreeMap<Bytes, Bytes>| {
                    h.insert(pair[0].clone(), pair[1].clone()).is_none()
                };
                self.db.change_hash(key, |h| count(pairs.chunks(2).map(|pair| set(pair, h))))
            }
            ("HDEL", [key, fields @ ..]) => {
                self.db.change_hash(key, |h| count(fields.iter().map(|field| h.remove(field).is_some())))
            }
            ("PEXPIRE", [key, ms]) => {
                self.expiries += 1;
                let at = (self.wall / 1000).saturating_add(number(ms).max(0.0) as u64);
                Ok(int(self.db.set_expiry(key, at)))
            }
            ("UNLINK" | "DEL", keys) => Ok(count(keys.iter().map(|key| self.db.remove(key)))),
            ("FLUSHALL", []) => {
                self.db = Db::default();
                Ok(Reply::Status("OK"))
            }
            ("PUBSUB", [_numsub, channels @ ..]) => {
                self.looks += 1;
                let count = |channel: &Bytes| [Reply::Bulk(channel.clone()), int(self.heard.contains(channel))];
                Ok(Reply::Array(channels.iter().flat_map(count).collect()))
            }
            ("PUBLISH", [channel, payload]) => {
                let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
                self.published.push((text(channel), text(payload)));
                Ok(Reply::Int(1))
            }
            ("TIME", []) => {
                let part = |n: u64| Reply::Bulk(n.to_string().into_bytes());
                Ok(Reply::Array(vec![part(self.wall / 1_000_000), part(self.wall % 1_000_000)]))
            }
            _ => self.run_sorted(name, args),
        }
    }

    fn run_sorted(&mut self, name: &str, args: &[Bytes]) -> Answer {
        match (name, args) {
            ("ZADD", [key, xx, score, member]) if xx == b"XX" => {
                let there = self.db.sorted(key)?.is_some_and(|z| z.scores.contains_key(member));
                if there {
                    self.db.change_sorted(key, |z| z.add(member, number(score)))?;
                }
                Ok(Reply::Int(0))
            }
            ("ZADD", [key, pairs @ ..]) if !pairs.is_empty() && pairs.len() % 2 == 0 => {
                if pairs.chunks(2).any(|pair| number(&pair[0]).is_nan()) {
                    return Ok(Reply::Error("ERR value is not a valid float".into()));
                }
                self.db.change_sorted(key, |z| count(pairs.chunks(2).map(|pair| z.add(&pair[1], number(&pair[0])))))
            }
            ("ZREM", [key, members @ ..]) => {
                self.db.change_sorted(key, |z| count(members.iter().map(|member| z.remove(member))))
            }
            ("ZCARD", [key]) => Ok(Reply::Int(self.db.sorted(key)?.map_or(0, |z| z.scores.len() as i64))),
            ("ZSCORE", [key, member]) => {
                let score = self.db.sorted(key)?.and_then(|z| z.scores.get(member).copied());
                Ok(score.map_or(Reply::Nil, |score| Reply::Bulk(double(score).into_bytes())))
            }
            ("ZRANK", [key, member]) => {
                let rank = self.db.sorted(key)?.and_then(|z| z.order.iter().position(|(_, m)| m == member));
                Ok(rank.map_or(Reply::Nil, |rank| Reply::Int(rank as i64)))
            }
            ("ZRANGE", [key, from, to, options @ ..]) => {
                let Some(z) = self.db.sorted(key)? else { return Ok(Reply::Array(Vec::new())) };
                let place = |bytes| {
                    let n = number(bytes) as i64;
                    if n < 0 { n + z.order.len() as i64 } else { n }
                };
                let (from, to) = (place(from).max(0), place(to));
                let size = (to - from + 1).max(0) as usize;
                Ok(page(z, options, |all| all.skip(from as usize).take(size).collect()))
            }
            ("ZRANGEBYSCORE", [key, low, high, options @ ..]) => {
                let Some(z) = self.db.sorted(key)? else { return Ok(Reply::Array(Vec::new())) };
                let (skip, take) = limit(options);
                Ok(page(z, options, |all| {
                    all.filter(|(score, _)| above(score.0, low) && below(score.0, high)).skip(skip).take(take).collect()
                }))
            }
            _ => Ok(Reply::Error(format!("ERR unknown command '{name}', or wrong arguments"))),
        }
    }

    fn get(&self, key: &Bytes, field: &Bytes) -> Answer {
        let value = self.db.hash(key)?.and_then(|h| h.get(field));
        Ok(value.map_or(Reply::Nil, |value| Reply::Bulk(value.clone())))
    }
}

type Entries<'a> = std::collections::btree_set::Iter<'a, (Score, Bytes)>;

fn page<'a>(z: &'a Sorted, options: &[Bytes], pick: impl FnOnce(Entries<'a>) -> Vec<&'a (Score, Bytes)>) -> Reply {
    let with_scores = options.iter().any(|option| option == b"WITHSCORES");
    let mut rows = Vec::new();
    for (score, member) in pick(z.order.iter()) {
        rows.push(Reply::Bulk(member.clone()));
        if with_scores {
            rows.push(Reply::Bulk(double(score.0).into_bytes()));
        }
    }
    Reply::Array(rows)
}

fn limit(options: &[Bytes]) -> (usize, usize) {
    match options.iter().position(|option| option == b"LIMIT") {
        Some(at) => (number(&options[at + 1]) as usize, number(&options[at + 2]) as usize),
        None => (0, usize::MAX),
    }
}

fn above(score: f64, low: &[u8]) -> bool {
    match low.strip_prefix(b"(") {
        Some(bound) => score > number(bound),
        None => score >= number(low),
    }
}

fn below(score: f64, high: &[u8]) -> bool {
    match high.strip_prefix(b"(") {
        Some(bound) => score < number(bound),
        None => score <= number(high),
    }
}

fn int(yes: bool) -> Reply {
    Reply::Int(i64::from(yes))
}

fn count(done: impl Iterator<Item = bool>) -> Reply {
    Reply::Int(done.filter(|done| *done).count() as i64)
}

fn number(bytes: &[u8]) -> f64 {
    std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
}

/// A double as Redis prints it: 17 digits, and whole numbers without a point.
pub(super) fn double(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "inf".into() } else { "-inf".into() };
    }
    if value.fract() == 0.0 && value.abs() < 1e17 { format!("{value:.0}") } else { format!("{value}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(server: &mut Keyspace, line: &str) -> Reply {
        server.call(&line.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>())
    }

    fn bulks(words: &[&str]) -> Reply {
        Reply::Array(words.iter().map(|word| Reply::Bulk(word.as_bytes().to_vec())).collect())
    }

    #[test]
    fn sorted_sets_are_ordered_by_score_then_member() {
        let mut server = Keyspace::default();
        assert_eq!(call(&mut server, "ZADD z 2 b 1 c 2 a +inf ."), Reply::Int(4));
        assert_eq!(call(&mut server, "ZRANGE z 0 1"), bulks(&["c", "a"]));
        assert_eq!(call(&mut server, "ZRANGE z 1 -1 WITHSCORES"), bulks(&["a", "2", "b", "2", ".", "inf"]));
        assert_eq!(call(&mut server, "ZRANGEBYSCORE z (1 (+inf WITHSCORES LIMIT 0 1"), bulks(&["a", "2"]));
        assert_eq!(call(&mut server, "ZRANK z ."), Reply::Int(3));
        assert_eq!(call(&mut server, "ZSCORE z x"), Reply::Nil);
        assert!(matches!(call(&mut server, "HGET z f"), Reply::Error(_)));
    }

    #[test]
    fn keys_go_with_their_last_member_and_by_the_wall_clock() {
        let mut server = Keyspace::default();
        call(&mut server, "HSET h f 1");
        assert_eq!(call(&mut server, "HDEL h f g"), Reply::Int(1));
        assert_eq!(call(&mut server, "PEXPIRE h 10"), Reply::Int(0));
        call(&mut server, "HSET h f 1");
        assert_eq!(call(&mut server, "PEXPIRE h 10"), Reply::Int(1));
        server.wall = 10_000;
        assert_eq!(call(&mut server, "HLEN h"), Reply::Int(0));
    }

    #[test]
    fn a_full_server_refuses_what_may_grow_until_something_was_freed() {
        let mut server = Keyspace { full: true, ..Keyspace::default() };
        assert!(matches!(call(&mut server, "HSET h f 1"), Reply::Error(text) if text.starts_with("OOM")));
        call(&mut server, "HDEL h -");
        assert_eq!(call(&mut server, "HSET h f 1"), Reply::Int(1));
    }
}
