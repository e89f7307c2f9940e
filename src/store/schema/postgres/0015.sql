-- What was submitted is told apart by its SHA-256, also after its task was deleted. Nodes of the
-- version before that still run go on: they know it by the 64 bits of content alone.
-- To change it: write the next file, never this one.

-- sha256: of the content, in base64url, behind the text of the column content. It counts only while
-- it begins with that: a node of the version before that reserves the same id again changes content
-- and leaves this as it is. NULL: the task was submitted, or written last, under a version before.
ALTER TABLE ~reserved ADD COLUMN sha256 TEXT;
