//! Answers and messages, read strictly: what does not look as the script says is an error, never a guess.

use std::fmt::{self, Debug, Write as _};
use std::time::Duration;

use redis::Value;

use super::keys;
use crate::settings::ConfigView;
use crate::store::{
    Answer, Call, Few, Header, Notice, Row, Standing, StatusView, Synced, TicketNo, Verb, Verdict, Was,
};

/// What could not be read.
#[derive(Debug, thiserror::Error)]
#[error("it is not what was expected: {0}")]
pub(super) struct Garbled(String);

type Read<T> = Result<T, Garbled>;

impl Garbled {
    /// Something that is not what it should be. A complaint about megabytes need not repeat them.
    fn about(found: &dyn Debug, why: &str) -> Self {
        let mut glimpse = Glimpse(String::new());
        // It ends early when it has seen enough.
        let end = if write!(glimpse, "{found:?}").is_err() { "…" } else { "" };
        Garbled(format!("{}{end}{why}", glimpse.0))
    }
}

/// The beginning of a text.
struct Glimpse(String);

impl fmt::Write for Glimpse {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        const ENOUGH: usize = 200;
        let room = ENOUGH - self.0.len();
        let fits = (0..=room.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        self.0.push_str(&text[..fits]);
        if fits < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

/// The answer to a call.
pub(super) fn answer(call: &Call, value: Value) -> Read<Answer> {
    if let Value::BulkString(bytes) = &value {
        return in_brief(call, std::str::from_utf8(bytes).map_err(|e| Garbled(e.to_string()))?);
    }
    let verb = &call.verb;
    let mut fields = Fields::new(value)?;
    let Head { word, epoch, notices, version } = Head::of(&mut fields)?;
    let verdict = match word.as_str() {
        "refused" => Verdict::Refused,
        "none" => Verdict::NoSuchLimiter,
        "resync" => Verdict::Resync,
        _ => verdict(verb, &word, &mut fields)?,
    };
    Ok(Answer { epoch, version, notices, verdict })
}

/// What every answer begins with that is not in brief.
struct Head {
    word: String,
    epoch: u64,
    notices: Vec<Notice>,
    version: u64,
}

impl Head {
    fn of(fields: &mut Fields) -> Read<Head> {
        let (word, epoch) = (fields.text()?, fields.number()?);
        Ok(Head { word, epoch, notices: notices(&fields.text()?)?, version: fields.number()? })
    }
}

/// The answer to one who knows epoch and version, and was told no others.
fn in_brief(call: &Call, text: &str) -> Read<Answer> {
    let (told, words) = text.split_once(' ').unwrap_or((text, ""));
    let notices = notices(words)?;
    let verdict = request_verdict(&call.verb, told)?;
    Ok(Answer { epoch: call.header.epoch, version: call.header.version, notices, verdict })
}

/// The answers to the calls of a parcel. `None`: they have to be sent one by one.
pub(super) fn answers(calls: &[&Call], value: Value) -> Read<Option<Vec<Answer>>> {
    let Some(Header { epoch, version, .. }) = calls.first().map(|call| &call.header) else { return Ok(None) };
    if let Value::BulkString(bytes) = &value {
        let text = std::str::from_utf8(bytes).map_err(|e| Garbled(e.to_string()))?;
        let (told, words) = text.split_once(' ').unwrap_or((text, ""));
        return each(calls, told, (*epoch, *version), notices(words)?).map(Some);
    }
    let mut fields = Fields::new(value)?;
    let Head { word, epoch, notices, version } = Head::of(&mut fields)?;
    match word.as_str() {
        "ok" => each(calls, &fields.text()?, (epoch, version), notices).map(Some),
        _ => Ok(None),
    }
}

fn each(calls: &[&Call], told: &str, (epoch, version): (u64, u64), notices: Vec<Notice>) -> Read<Vec<Answer>> {
    let mut answers = Vec::with_capacity(calls.len());
    for (call, told) in calls.iter().zip(told.split(';')) {
        let verdict = request_verdict(&call.verb, told)?;
        answers.push(Answer { epoch, version, notices: Vec::new(), verdict });
    }
    match answers.last_mut() {
        // Whatever was granted on the way is told after all of them.
        Some(last) if calls.len() == told.split(';').count() => last.notices = notices,
        _ => return Err(Garbled::about(&told, " are not the answers")),
    }
    Ok(answers)
}

/// See `lua/lib/ask.lua`, `free.lua` and `withdraw.lua`.
fn request_verdict(verb: &Verb, told: &str) -> Read<Verdict> {
    let (letter, rest) = told.split_at_checked(1).unwrap_or((told, ""));
    let estimate = |millis: i64| u64::try_from(millis).ok().map(Duration::from_millis);
    Ok(match (verb, letter) {
        (Verb::Release(_), _) => Verdict::Released(freed(told)?),
        (Verb::Cancel(_), _) => Verdict::Cancelled(cancelled(told)?),
        (Verb::Acquire { .. } | Verb::PutBack { .. }, "g") => {
            let [fence, order] = numbers(rest)?;
            Verdict::Granted { fence: count(fence)?, order: count(order)? }
        }
        (Verb::Acquire { .. } | Verb::PutBack { .. }, "q") => {
            let [order, position, millis] = numbers(rest)?;
            Verdict::Queued { order: count(order)?, position: count(position)?, estimate: estimate(millis) }
        }
        (Verb::Acquire { .. }, "b") => Verdict::Busy,
        (Verb::Acquire { .. }, "x") => Verdict::Impossible { limit: count(numbers::<1>(rest)?[0])? },
        (Verb::Acquire { .. }, "f") => {
            let [waiting, max_queue, millis] = numbers(rest)?;
            Verdict::Full { waiting: count(waiting)?, max_queue: count(max_queue)?, retry_after: estimate(millis) }
        }
        (Verb::Acquire { .. } | Verb::PutBack { .. }, "n") => Verdict::Gone,
        _ => return Err(Garbled::about(&told, " is no answer")),
    })
}

/// So many numbers, with commas between them.
fn numbers<const N: usize>(text: &str) -> Read<[i64; N]> {
    let mut numbers = [0; N];
    let mut words = text.split(',');
    for number in &mut numbers {
        let word = words.next().and_then(|word| word.parse().ok());
        *number = word.ok_or_else(|| Garbled::about(&text, " are not the numbers"))?;
    }
    Ok(numbers)
}

fn count(number: i64) -> Read<u64> {
    u64::try_from(number).map_err(|_| Garbled(format!("{number} is below zero")))
}

/// A digit for each permit.
fn freed(digits: &str) -> Read<Few<bool>> {
    digits
        .chars()
        .map(|digit| digit.to_digit(2).map(|bit| bit == 1))
        .collect::<Option<_>>()
        .ok_or_else(|| Garbled::about(&digits, " tells of no release"))
}

/// A letter for each ticket.
fn cancelled(letters: &str) -> Read<Few<Was>> {
    let was = |letter| match letter {
        'q' => Some(Was::Queued),
        'h' => Some(Was::Held),
        'n' => Some(Was::Unknown),
        _ => None,
    };
    letters.chars().map(was).collect::<Option<_>>().ok_or_else(|| Garbled::about(&letters, " tells of no cancel"))
}

fn verdict(verb: &Verb, word: &str, fields: &mut Fields) -> Read<Verdict> {
    Ok(match (verb, word) {
        (Verb::Acquire { .. } | Verb::PutBack { .. } | Verb::Release(_) | Verb::Cancel(_), "ok") => {
            request_verdict(verb, &fields.text()?)?
        }
        (Verb::Sync { .. }, "ok") => Verdict::Synced(Synced {
            config: match fields.text()?.as_str() {
                "" => None,
                text => Some(Box::new(config(text)?)),
            },
            revokes: fields.number()?,
            next: fields.millis()?,
            more: fields.number()? == 1,
            heads: fields.rest(|f| standing(&f.text()?))?,
        }),
        (Verb::Restore(_), "ok") => Verdict::Restored(fields.rest(|f| standing(&f.text()?))?),
        (Verb::Configure(_), "ok") => Verdict::Done,
        (Verb::Revoke(_), word) => Verdict::Revoked(was(word)?),
        (Verb::Leave, "ok") => Verdict::Left { more: fields.number()? == 1 },
        (Verb::Status, "ok") => Verdict::Status(Box::new(status(fields)?)),
        (Verb::List { .. }, "ok") => list(fields)?,
        (Verb::Position(_), "ok") => Verdict::Positions(fields.rest(|f| Ok((f.number()?, f.millis()?)))?),
        _ => return Err(Garbled::about(&word, " is no verdict")),
    })
}

fn was(word: &str) -> Read<Was> {
    match word {
        "held" => Ok(Was::Held),
        "queued" => Ok(Was::Queued),
        "unknown" => Ok(Was::Unknown),
        _ => Err(Garbled::about(&word, " is no state")),
    }
}

fn standing(text: &str) -> Read<Standing> {
    match text {
        "q" => Ok(Standing::Queued),
        "n" | "lost" => Ok(Standing::Gone),
        _ => {
            let mut parts = text.strip_prefix("h,").unwrap_or("").split(',');
            Ok(Standing::Held { fence: parse(parts.next())?, order: parse(parts.next())? })
        }
    }
}

fn config(text: &str) -> Read<ConfigView> {
    let mut parts = text.split('|');
    let mut values = [0; 7];
    let mut words = parts.next().unwrap_or("").split(' ');
    for value in &mut values {
        *value = parse(words.next())?;
    }
    let mut word = || parts.next().unwrap_or("").to_owned();
    let (declared, declared_at, overrides, override_at) = (word(), word(), word(), word());
    let stamp = |text: &str| if text.is_empty() { Ok(0) } else { parse(Some(text)) };
    Ok(ConfigView { values, declared, declared_at: stamp(&declared_at)?, overrides, override_at: stamp(&override_at)? })
}

fn status(fields: &mut Fields) -> Read<StatusView> {
    Ok(StatusView {
        config: config(&fields.text()?)?,
        used: fields.number()?,
        holders: fields.number()?,
        waiting: fields.number()?,
        instances: fields.number()?,
        granted: fields.number()?,
        grace: fields.millis()?.unwrap_or_default(),
        typical_hold: Some(Duration::from_micros(fields.number()?)).filter(|hold| !hold.is_zero()),
        estimate: fields.millis()?,
        overshoot: fields.number()?,
    })
}

fn list(fields: &mut Fields) -> Read<Verdict> {
    let mut rows = Vec::new();
    while fields.left() > 1 {
        rows.push(Row {
            ticket: fields.text()?,
            description: fields.text()?,
            label: fields.text()?,
            cost: fields.number()?,
            order: fields.number()?,
            fence: fields.number()?,
        });
    }
    Ok(Verdict::List { rows, now: fields.number()? })
}

/// What a message says.
pub(crate) struct Message {
    pub limiter: String,
    pub epoch: u64,
    pub notices: Vec<Notice>,
}

/// The payload of a message: the epoch, what it tells, and the limiter's key. A probe tells nothing.
pub(super) fn message(text: &str) -> Read<Message> {
    let (told, key) = text.split_once('|').unwrap_or((text, ""));
    let (epoch, words) = told.split_once(' ').unwrap_or((told, ""));
    let limiter = keys::limiter_in(key).unwrap_or_default();
    Ok(Message { limiter, epoch: parse(Some(epoch))?, notices: notices(words)? })
}

fn notices(text: &str) -> Read<Vec<Notice>> {
    text.split(' ').filter(|word| !word.is_empty() && *word != "p").map(notice).collect()
}

fn notice(text: &str) -> Read<Notice> {
    let mut parts = text.split(',');
    let kind = parts.next().unwrap_or("");
    let no: TicketNo = parse(parts.next())?;
    Ok(match kind {
        "g" => Notice::Granted { no, fence: parse(parts.next())?, order: parse(parts.next())? },
        "x" => Notice::Impossible { no, limit: parse(parts.next())? },
        "r" => Notice::PermitRevoked { no },
        "v" => Notice::PlaceRevoked { no },
        _ => return Err(Garbled::about(&text, " is no notice")),
    })
}

fn parse(text: Option<&str>) -> Read<u64> {
    text.and_then(|t| t.parse().ok()).ok_or_else(|| Garbled::about(&text, " is not a number"))
}

/// The fields of an answer, one after the other.
struct Fields(std::vec::IntoIter<Value>);

impl Fields {
    fn new(value: Value) -> Read<Self> {
        match value {
            Value::Array(fields) => Ok(Fields(fields.into_iter())),
            other => Err(Garbled::about(&other, " is no answer")),
        }
    }

    fn left(&self) -> usize {
        self.0.len()
    }

    fn text(&mut self) -> Read<String> {
        match self.0.next() {
            Some(Value::BulkString(bytes)) => String::from_utf8(bytes).map_err(|e| Garbled(e.to_string())),
            Some(Value::SimpleString(text)) => Ok(text),
            Some(Value::Int(number)) => Ok(number.to_string()),
            other => Err(Garbled::about(&other, " is not a text")),
        }
    }

    fn number(&mut self) -> Read<u64> {
        match self.0.next() {
            Some(Value::Int(number)) => count(number),
            Some(Value::BulkString(bytes)) => parse(std::str::from_utf8(&bytes).ok()),
            other => Err(Garbled::about(&other, " is not a number")),
        }
    }

    /// Milliseconds; -1 is unknown.
    fn millis(&mut self) -> Read<Option<Duration>> {
        match self.text()?.as_str() {
            "-1" => Ok(None),
            text => Ok(Some(Duration::from_millis(parse(Some(text))?))),
        }
    }

    fn rest<T>(&mut self, mut read: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        let mut all = Vec::with_capacity(self.left());
        while self.left() > 0 {
            all.push(read(self)?);
        }
        Ok(all)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_repeats_only_the_beginning_of_a_reply() {
        let long = Value::BulkString(vec![b'x'; 1_000_000]);
        let header = crate::store::Header { epoch: 1, bare: false, version: 1, declaration: std::sync::Arc::default() };
        let leave = Call { limiter: "a".into(), header, verb: Verb::Leave };
        let garbled = answer(&leave, Value::Array(vec![Value::Nil, long.clone()])).expect_err("no answer");
        assert_eq!(garbled.to_string(), "it is not what was expected: Some(nil) is not a text");
        for value in [long.clone(), Value::Array(vec![long.clone(), Value::Int(1), long]), Value::Okay] {
            let garbled = answer(&leave, value).expect_err("no answer");
            assert!(garbled.to_string().len() < 300, "{} bytes", garbled.to_string().len());
        }
    }

    #[test]
    fn the_beginning_of_a_text_ends_between_characters() {
        for length in 60..80 {
            Garbled::about(&"é€🦀".repeat(length), "");
        }
    }
}
