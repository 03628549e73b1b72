-- An owner may be longer than a key of an index can be, so the key is its digest.

-- Whoever changes records waits for them and for counts, in either order. So both are taken at once
-- or neither, before Postgres would see a deadlock.
SET LOCAL lock_timeout = '200ms';
DO $$ BEGIN
    LOOP
        BEGIN
            LOCK TABLE bowline.counts, bowline.records IN ACCESS EXCLUSIVE MODE;
            EXIT;
        EXCEPTION WHEN lock_not_available THEN
            PERFORM pg_sleep(0.05);
        END;
    END LOOP;
END $$;

DROP INDEX bowline.records_owner;
CREATE INDEX records_owner ON bowline.records (kind, sha256(owner), created, id);

UPDATE bowline.counts SET owner = sha256(owner) WHERE is_owner AND has_name;

CREATE OR REPLACE FUNCTION bowline.count_up(
    kind_ text, is_owner_ boolean, owner_ bytea, has_name_ boolean, most bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF most < 1 THEN
        RETURN false;
    END IF;
    INSERT INTO bowline.counts AS it VALUES (
        kind_, is_owner_, CASE WHEN has_name_ THEN sha256(owner_) ELSE owner_ END, has_name_, 1
    )
    ON CONFLICT (kind, is_owner, owner, has_name) DO UPDATE SET number = it.number + 1
    WHERE it.number < most;
    RETURN FOUND;
END $$;

CREATE OR REPLACE FUNCTION bowline.count_down(
    kind_ text, is_owner_ boolean, owner_ bytea, has_name_ boolean
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    whose bytea := CASE WHEN has_name_ THEN sha256(owner_) ELSE owner_ END;
BEGIN
    UPDATE bowline.counts SET number = number - 1
    WHERE kind = kind_ AND is_owner = is_owner_ AND owner = whose AND has_name = has_name_;
    IF is_owner_ THEN
        DELETE FROM bowline.counts
        WHERE kind = kind_ AND is_owner AND owner = whose AND has_name = has_name_ AND number < 1;
    END IF;
END $$;
