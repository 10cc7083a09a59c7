//! A release that does not find its permit among those held, since that key was lost, is one all the same: what is known of
//! the ticket says so. But what else was lost, it cannot tell: the next call of anybody begins a new epoch, in which all bring
//! back what they hold. (The model notices at once.)

use super::presence::{Scene, acquire, sync};
use super::redis::Rewrite;
use crate::store::redis::test_access;
use crate::store::{Verb, Verdict};

pub(super) fn all(rewrite: &Rewrite) {
    missed(Some(rewrite));
}

fn missed(rewrite: Option<&Rewrite>) {
    let mut scene = Scene::new(rewrite, 1);
    scene.version = scene.call("ann", sync()).version;
    scene.call("ann", sync()); // so that there is nothing to be judged of it any more
    let granted = scene.call("ann", acquire());
    let Verdict::Granted { fence, .. } = granted.verdict else { panic!("{granted:?}") };
    let [_, _, held, _] = test_access::keys("l");
    scene.redis.execute(&["DEL".into(), held.into()]);
    let release = scene.call("ann", Verb::Release([(1, fence)].into()));
    assert_eq!((release.verdict, release.epoch), (Verdict::Released([true].into()), granted.epoch));
    assert!(scene.call("ann", acquire()).epoch > granted.epoch, "nobody has noticed");
}

#[cfg(test)]
mod tests {
    #[test]
    fn whoever_misses_its_permit_has_the_next_call_look() {
        super::missed(None);
    }
}
