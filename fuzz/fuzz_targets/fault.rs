//! Whatever a server complains of is classified; what means the same for a call as it did, means it after a prefix too.
#![no_main]

use fairq_fuzz::Input;
use libfuzzer_sys::fuzz_target;
use redis::{ErrorKind, RedisError, Value};

const KINDS: [ErrorKind; 6] = [
    ErrorKind::Parse,
    ErrorKind::AuthenticationFailed,
    ErrorKind::UnexpectedReturnType,
    ErrorKind::InvalidClientConfig,
    ErrorKind::Io,
    ErrorKind::Client,
];

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let kind = KINDS[input.choose(KINDS.len())];
    let said = String::from_utf8_lossy(input.rest()).into_owned();
    fairq::fuzzing::judge_connect(&RedisError::from((kind, "an error", said.clone())));

    let line = format!("-{}\r\n", said.replace(['\r', '\n'], " "));
    let Ok(Value::ServerError(error)) = redis::parse_redis_value(line.as_bytes()) else { return };
    let (call, _) = fairq::fuzzing::judge(error);
    if said.starts_with("NOSCRIPT ") {
        assert_eq!(call, "NoScript");
    }
    if said.starts_with("OOM ") && !said.contains("read only replica") && said.split_whitespace().count() == 1 {
        assert!(call.contains("Full"), "{said:?} is taken for {call}");
    }
});
