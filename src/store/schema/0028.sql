-- The console: browsers that have signed in. A program of the version before does not know of them: the number of this
-- version prevents it from starting.
-- To change it: write the next file, never this one.

-- hash: SHA-256 of the secret that the browser has; is_code: of a code, which becomes a session once. token_hash: of the
-- token's text with which it was begun; it ends with that text, and at expires_at.
CREATE TABLE session (
    id         TEXT    NOT NULL PRIMARY KEY,
    hash       BLOB    NOT NULL UNIQUE,
    is_code    INTEGER NOT NULL,
    token      TEXT    NOT NULL,
    token_hash BLOB    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    address    TEXT    NOT NULL
) STRICT;
