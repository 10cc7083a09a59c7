//! The first words on a connection: the login, the database, and who we are. The crate would say them as well, but would
//! not tell what the server answers; and a server that lets nobody in (it has too many clients, it is protected) says why
//! before it hangs up.

use redis::{Cmd, Connection, ProtocolVersion, RedisConnectionInfo, RedisError, RedisResult, Value};

/// What the crate is to say of it by itself: all of it in RESP3, where the login is part of the first command.
pub(super) fn left_to_the_crate(login: &RedisConnectionInfo) -> RedisConnectionInfo {
    match login.protocol() {
        ProtocolVersion::RESP2 => RedisConnectionInfo::default().set_skip_set_lib_name(),
        _ => login.clone().set_skip_set_lib_name(),
    }
}

/// Says it, and hears the answers, under the time-outs that are set.
pub(super) fn exchange(connection: &mut Connection, login: &RedisConnectionInfo) -> RedisResult<()> {
    let needed = match login.protocol() {
        ProtocolVersion::RESP2 => needed(login),
        _ => Vec::new(),
    };
    // Operators see it in CLIENT LIST. Older servers do not know it, and the user may not be allowed to say it.
    let courtesies = [("LIB-NAME", "fairq"), ("LIB-VER", env!("CARGO_PKG_VERSION"))].map(|(what, value)| {
        let mut command = redis::cmd("CLIENT");
        command.arg("SETINFO").arg(what).arg(value);
        command
    });
    let all: Vec<u8> = needed.iter().chain(&courtesies).flat_map(Cmd::get_packed_command).collect();
    connection.send_packed_command(&all)?;
    let mut last_refusal: Option<RedisError> = None;
    for number in 0..needed.len() + courtesies.len() {
        match connection.recv_response() {
            Ok(Value::ServerError(error)) if number < needed.len() => return Err(error.into()),
            Ok(Value::ServerError(error)) => {
                let error: RedisError = error.into();
                last_refusal = Some(error).filter(|error| !declines_courtesy(error)).or(last_refusal);
            }
            Ok(_) => {}
            Err(error) => return Err(last_refusal.unwrap_or(error)), // the one it has hung up with
        }
    }
    Ok(())
}

fn needed(login: &RedisConnectionInfo) -> Vec<Cmd> {
    let auth = login.password().map(|password| {
        let mut command = redis::cmd("AUTH");
        login.username().map(|username| command.arg(username));
        command.arg(password);
        command
    });
    let select = Some(login.db()).filter(|database| *database != 0).map(|database| {
        let mut command = redis::cmd("SELECT");
        command.arg(database);
        command
    });
    auth.into_iter().chain(select).collect()
}

/// Whether it only says that it does not know the courtesies, or that the user may not say them. Should the connection end
/// after that, it is not the reason.
fn declines_courtesy(error: &RedisError) -> bool {
    error.code() == Some("NOPERM") || error.detail().is_some_and(|detail| detail.to_lowercase().contains("setinfo"))
}

/// Whether it says that this user with this password is not let in.
pub(super) fn refuses_login(error: &RedisError) -> bool {
    error.code() == Some("WRONGPASS")
        || error.detail().is_some_and(|detail| detail.contains("AUTH") || detail.contains("invalid password"))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn told(reply: &str) -> RedisError {
        match redis::parse_redis_value(reply.as_bytes()) {
            Ok(Value::ServerError(error)) => error.into(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_courtesy_that_is_declined_is_no_reason_to_hang_up() {
        for declined in [
            "-ERR unknown subcommand 'SETINFO'. Try CLIENT HELP.\r\n",
            "-ERR Unknown subcommand or wrong number of arguments for 'SETINFO'. Try CLIENT HELP.\r\n",
            "-NOPERM this user has no permissions to run the 'client' command or its subcommand\r\n",
        ] {
            assert!(declines_courtesy(&told(declined)), "{declined}");
        }
        assert!(!declines_courtesy(&told("-ERR max number of clients reached\r\n")));
    }
}
