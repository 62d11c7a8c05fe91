//! Actions as callers send them, checked field by field: one file per verb.
