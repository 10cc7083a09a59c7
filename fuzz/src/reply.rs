//! Replies of a server that means no good.

use redis::Value;

use crate::Input;

const WORDS: [&str; 16] = [
    "ok",
    "granted",
    "queued",
    "busy",
    "impossible",
    "full",
    "gone",
    "refused",
    "none",
    "resync",
    "held",
    "unknown",
    "q",
    "n",
    "lost",
    "-1",
];

/// Of the shape that scripts give: verdict, epoch, notices, version, and more; or in brief.
pub fn reply(input: &mut Input<'_>, most_fields: usize) -> Value {
    if input.choose(4) == 3 {
        return text(&brief(input));
    }
    let mut fields = vec![text(input.pick(&WORDS)), number(input), text(&notices(input)), number(input)];
    while !input.is_empty() && fields.len() < most_fields {
        fields.push(field(input));
    }
    Value::Array(fields)
}

fn brief(input: &mut Input<'_>) -> String {
    let told = match input.choose(5) {
        0 => format!("g{},{}", input.number(), input.number()),
        1 => format!("q{},{},{}", input.number(), input.number(), input.number() as i64),
        2 => format!("{:b}", input.byte()),
        3 => (0..input.choose(4)).map(|_| input.pick(&["q", "h", "n"])).collect(),
        _ => input.text(),
    };
    format!("{told} {}", notices(input))
}

fn field(input: &mut Input<'_>) -> Value {
    match input.choose(8) {
        0 => text(input.pick(&WORDS)),
        1 => text(&format!("h,{},{}", input.number(), input.number())),
        2 => text(&config(input)),
        3 => any_value(input, 3),
        4 => text(&input.text()),
        5 => text(&notices(input)),
        _ => number(input),
    }
}

pub fn any_value(input: &mut Input<'_>, depth: usize) -> Value {
    match input.choose(10) {
        0 => Value::Nil,
        1 => Value::Int(input.number() as i64),
        2 => Value::BulkString(input.bytes().to_vec()),
        3 => Value::SimpleString(input.text()),
        4 => Value::Okay,
        5 => Value::Double(f64::from_bits(input.number())),
        6 => Value::Boolean(input.byte() > 0),
        7 => Value::BulkString(vec![b'x'; input.number() as usize % 100_000]),
        _ if depth == 0 => Value::Nil,
        8 => Value::Map((0..input.choose(5)).map(|_| (any_value(input, depth - 1), Value::Nil)).collect()),
        _ => Value::Array((0..input.choose(9)).map(|_| any_value(input, depth - 1)).collect()),
    }
}

pub fn notices(input: &mut Input<'_>) -> String {
    let one = |input: &mut Input<'_>| match input.choose(6) {
        0 => format!("g,{},{},{}", input.number(), input.number(), input.number()),
        1 => format!("x,{},{}", input.number(), input.number()),
        2 => format!("r,{}", input.number()),
        3 => format!("v,{}", input.number()),
        4 => "p".into(),
        _ => input.text(),
    };
    (0..input.choose(4)).map(|_| one(input)).collect::<Vec<_>>().join(" ")
}

fn config(input: &mut Input<'_>) -> String {
    let seven = |input: &mut Input<'_>| (0..7).map(|_| input.number().to_string()).collect::<Vec<_>>().join(" ");
    format!("{}|{}|{}|{}|{}", seven(input), input.text(), input.number(), seven(input), input.text())
}

fn number(input: &mut Input<'_>) -> Value {
    match input.byte() % 2 {
        0 => Value::Int(input.number() as i64),
        _ => text(&input.number().to_string()),
    }
}

fn text(text: &str) -> Value {
    Value::BulkString(text.as_bytes().to_vec())
}
