-- The audit is only added to.
-- To change it: write the next file, never this one.

-- Against slips: an owner may drop it. Roles that may not change the table are told so before.
CREATE FUNCTION ~audit_stands() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit is only added to';
END $$;
CREATE TRIGGER audit_stands BEFORE UPDATE OR DELETE OR TRUNCATE ON ~audit
    FOR EACH STATEMENT EXECUTE FUNCTION ~audit_stands();
