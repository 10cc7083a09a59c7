//! What operators see of a request.

use std::ops::Deref;
use std::sync::Arc;

/// A label. Most requests have none: then it costs neither memory nor a count that all threads would have to share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Label(Option<Arc<str>>);

impl Deref for Label {
    type Target = str;

    fn deref(&self) -> &str {
        self.0.as_deref().unwrap_or("")
    }
}

impl From<&str> for Label {
    fn from(text: &str) -> Label {
        Label((!text.is_empty()).then(|| text.into()))
    }
}

impl From<String> for Label {
    fn from(text: String) -> Label {
        text.as_str().into()
    }
}
