//! Histories: what real processes asked of a real server, in the order in which it was carried out, replayed on the
//! model.
//!
//! The conformance test and the simulation choose what is asked, one call after the other. Here the calls are those of
//! real clients: several processes with several threads each, whose connections are cut, which are killed, and whose server
//! stops and forgets. Their scripts record themselves ([`recorded`]): arguments, answer, the server's time and each write go to
//! a stream in the same step, so that the stream has the server's own order. (`MONITOR` would have the order as well, but neither
//! answers nor the time that a script read, and without those nothing can be replayed exactly.)
//!
//! [`replay`] carries out the same on the model, at the same times: every answer, every message and the state at the end
//! have to be the same. [`oracle`] does not know the model: it follows the writes alone, and looks whether the limit, the
//! order, and the fences were kept. What the processes believe themselves is compared with both.
//!
//! Recording is part of the unit tests only, and of those only in processes that were told to: the library has none of it.

mod entry;
mod oracle;
mod replay;
mod scene;

use std::env;

/// Has a process record what its scripts do. With `FROM=>TO` in it they also have that mistake.
const RECORD: &str = "FAIRQ_TEST_HISTORY";

/// The script, or the script within its recorder.
pub(crate) fn recorded(name: &str, source: String) -> String {
    let Ok(mistake) = env::var(RECORD) else { return source };
    let source = match mistake.split_once("=>") {
        Some((from, to)) => source.replace(from, to),
        None => source,
    };
    match name {
        "selftest" => source,
        _ => include_str!("recorder.lua").replace("--@body", &source).replace("@name", name),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::scene::{Faults, Scene};
    use crate::support::{Flavor, Server};

    const SHORT: Duration = Duration::from_secs(4);

    fn on(flavor: Flavor, time: Duration) {
        if Flavor::available().contains(&flavor) {
            let history = Scene::start(flavor, "").run(time, Faults::All);
            println!("{flavor}: {history}");
            history.replay().and_then(|()| history.judge()).unwrap_or_else(|wrong| panic!("{flavor}: {wrong}"));
        }
    }

    #[test]
    fn what_redis_7_0_did_is_what_the_model_does() {
        on(Flavor::Redis70, SHORT);
    }

    #[test]
    fn what_valkey_9_1_did_is_what_the_model_does() {
        on(Flavor::Valkey91, SHORT);
    }

    #[test]
    #[ignore = "takes minutes on each server; FAIRQ_HISTORY_SECONDS says how many seconds"]
    fn a_long_history_is_what_the_model_does() {
        let seconds = std::env::var("FAIRQ_HISTORY_SECONDS").map_or(150, |text| text.parse().expect("a number"));
        Flavor::available().into_iter().for_each(|flavor| on(flavor, Duration::from_secs(seconds)));
    }

    /// Both checks can fail: the history of scripts with this mistake is neither what the model does nor what was promised.
    fn is_found_out(mistake: &str, promise: &str) {
        let history = Scene::start(Server::default_flavor(), mistake).run(Duration::ZERO, Faults::None);
        let differs = history.replay().expect_err("the model does otherwise");
        assert!(differs.contains("and the model"), "{differs}");
        let broken = history.judge().expect_err("a promise is broken");
        assert!(broken.starts_with(promise), "{broken}");
    }

    #[test]
    fn too_many_at_once_are_found_out() {
        is_found_out("used, holding = max(0, used - cost), holding - 1=>used, holding = 0, holding - 1", "P1");
    }

    #[test]
    fn an_overtaking_is_found_out() {
        is_found_out("call('ZRANGE', QUEUE, 0, size - 1)=>call('ZREVRANGE', QUEUE, 1, size)", "P6");
    }

    #[test]
    fn a_fence_that_comes_again_is_found_out() {
        is_found_out("fence = max(fence + 1, now)=>fence = now - now % 1000000", "P5");
    }
}
