-- The audit is only added to.
-- To change it: write the next file, never this one.

-- REPLACE deletes without the trigger for that. A number that nobody chose is -1 here.
CREATE TRIGGER audit_adds BEFORE INSERT ON audit WHEN NEW.seq IN (SELECT seq FROM audit)
BEGIN SELECT RAISE(ABORT, 'the audit is only added to'); END;
