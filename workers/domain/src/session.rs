//! A live session and its transitions.
