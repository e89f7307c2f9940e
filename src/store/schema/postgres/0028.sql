-- The console: browsers that have signed in. A program of the version before does not know of them: the number of this
-- version prevents it from starting. Nodes of that version that still run go on, and know no sessions.
-- To change it: write the next file, never this one.

-- hash: SHA-256 of the secret that the browser has; is_code: of a code, which becomes a session once. token_hash: of the
-- token's text with which it was begun; it ends with that text, and at expires_at.
CREATE TABLE ~session (
    id         text COLLATE "C" PRIMARY KEY,
    hash       bytea   NOT NULL UNIQUE,
    is_code    boolean NOT NULL,
    token      text    NOT NULL,
    token_hash bytea   NOT NULL,
    created_at bigint  NOT NULL,
    expires_at bigint  NOT NULL,
    address    text    NOT NULL
);
