//! How a call to the world can fail, in the classes that decide what to do next (SPEC W-ERR-01).

use domain::chat::{ChatFailure, ErrorCategory};
use domain::effect::EffectFailure;
use schemas::limits::ERROR_CHARS_MAX;
use schemas::problem::Code;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Too many requests; the other side may say when to come back.
    RateLimit,
    /// The other side has no capacity, or an error of its own.
    Overloaded,
    Timeout,
    /// No connection, or it broke before an answer.
    Network,
    /// The answer ended early.
    Cut,
    /// Key missing, wrong or without the right.
    Auth,
    /// The account has nothing left: waiting seconds does not help.
    Quota,
    /// The other side refuses the request as it is, or answers what nobody can read.
    Invalid,
    /// The model declined to answer.
    Safety,
    /// We do not call this address.
    Forbidden,
    /// Nobody can tell.
    Unknown,
}

impl Class {
    /// Infrastructure is tried again, business is not.
    pub fn is_infrastructure(self) -> bool {
        matches!(self, Self::RateLimit | Self::Overloaded | Self::Timeout | Self::Network | Self::Cut)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::RateLimit => "rate_limit",
            Self::Overloaded => "overloaded",
            Self::Timeout => "timeout",
            Self::Network => "network",
            Self::Cut => "cut",
            Self::Auth => "auth",
            Self::Quota => "quota",
            Self::Invalid => "invalid",
            Self::Safety => "safety",
            Self::Forbidden => "forbidden",
            Self::Unknown => "unknown",
        }
    }

    /// In the words of SPEC C-PRV-09.
    pub fn category(self) -> ErrorCategory {
        match self {
            Self::RateLimit => ErrorCategory::RateLimit,
            Self::Overloaded | Self::Timeout | Self::Network | Self::Cut => ErrorCategory::Transient,
            Self::Auth => ErrorCategory::Auth,
            Self::Quota => ErrorCategory::Quota,
            Self::Invalid | Self::Forbidden => ErrorCategory::Validation,
            Self::Safety => ErrorCategory::Safety,
            Self::Unknown => ErrorCategory::Unknown,
        }
    }
}

/// One failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallError {
    pub class: Class,
    pub message: String,
    pub retry_after_ms: Option<u64>,
    /// The request may have reached the other side.
    pub sent: bool,
    /// HTTP status of the answer, if one came.
    pub status: Option<u16>,
    /// The other side's id of the request.
    pub request_id: Option<String>,
    /// The other side's own word for what is wrong.
    pub word: Option<String>,
    /// The other side says whether to try again, whatever the class.
    pub again: Option<bool>,
}

impl CallError {
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        let sent = !matches!(class, Class::Forbidden);
        Self {
            class,
            message: message.into(),
            retry_after_ms: None,
            sent,
            status: None,
            request_id: None,
            word: None,
            again: None,
        }
    }

    pub fn not_sent(self) -> Self {
        Self { sent: false, ..self }
    }

    pub fn retry_after(self, retry_after_ms: Option<u64>) -> Self {
        Self { retry_after_ms, ..self }
    }

    /// Whether another attempt makes sense.
    pub fn is_retriable(&self) -> bool {
        self.again.unwrap_or(self.class.is_infrastructure())
    }

    /// Refused at the door: nothing was begun. A limit that is met within an answer comes with a good status, and is
    /// none of these.
    pub fn is_turned_away(&self) -> bool {
        self.class == Class::RateLimit && self.status == Some(429)
    }

    /// The outcome of an effect whose attempts are used up.
    pub fn into_failure(self, code: Code, attempts: u32) -> EffectFailure {
        let message = self.told(attempts);
        EffectFailure { code, message, retriable: self.is_retriable(), may_have_happened: self.sent }
    }

    /// The end of a call of a model whose attempts are used up.
    pub fn into_chat_failure(self, code: Code, provider: &str, attempts: u32) -> ChatFailure {
        ChatFailure {
            category: self.class.category(),
            code,
            message: self.told(attempts),
            provider: provider.to_owned(),
            retriable: self.is_retriable(),
            may_have_happened: self.sent && !self.is_turned_away(),
            raw: self.word,
        }
    }

    fn told(&self, attempts: u32) -> String {
        let tried = if attempts > 1 { format!(" (after {attempts} attempts)") } else { String::new() };
        format!("{}{tried}", self.message).chars().take(ERROR_CHARS_MAX).collect()
    }
}
