-- Large values are compressed by the quicker method where the database has it: PostgreSQL's own takes
-- six times as long, and all changes wait for a batch that has a value of some MB.
-- To change it: write the next file, never this one.

DO $$ BEGIN
    ALTER TABLE ~payload ALTER COLUMN json SET COMPRESSION lz4;
    ALTER TABLE ~submission ALTER COLUMN input SET COMPRESSION lz4;
EXCEPTION WHEN OTHERS THEN NULL; END $$;
