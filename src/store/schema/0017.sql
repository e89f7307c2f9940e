-- What was submitted is told apart by its SHA-256, also after its task was deleted.
-- To change it: write the next file, never this one.

-- sha256: of the content, in base64url; NULL: the task was submitted under a version before.
ALTER TABLE reserved ADD COLUMN sha256 TEXT;
