-- Tasks, and what else is kept like tasks. Times are milliseconds since 1970, by the clock of this
-- database. Ids and owners are bytes, because text cannot have every character.

CREATE TABLE bowline.records (
    kind text NOT NULL,
    id bytea NOT NULL,
    version bigint NOT NULL,
    owner bytea,
    created bigint NOT NULL,
    due bigint NOT NULL,
    record text NOT NULL,
    -- Changes when a client could see that the record has changed; see `TaskRecord::mark`.
    mark bigint NOT NULL,
    PRIMARY KEY (kind, id)
);

CREATE INDEX records_due ON bowline.records (kind, due);
CREATE INDEX records_owner ON bowline.records (kind, owner, created, id);

-- How many records there are, of all owners (false) and of each (true, owner). An update of a row
-- that another transaction holds waits for it and sees its result, so the numbers are exact.
CREATE TABLE bowline.counts (
    kind text NOT NULL,
    is_owner boolean NOT NULL,
    owner bytea NOT NULL,
    has_name boolean NOT NULL,
    number bigint NOT NULL,
    PRIMARY KEY (kind, is_owner, owner, has_name)
) WITH (fillfactor = 50);

-- Adds to a number unless that makes it larger than the limit. Returns whether it did.
CREATE FUNCTION bowline.count_up(
    kind_ text, is_owner_ boolean, owner_ bytea, has_name_ boolean, most bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF most < 1 THEN
        RETURN false;
    END IF;
    INSERT INTO bowline.counts AS it VALUES (kind_, is_owner_, owner_, has_name_, 1)
    ON CONFLICT (kind, is_owner, owner, has_name) DO UPDATE SET number = it.number + 1
    WHERE it.number < most;
    RETURN FOUND;
END $$;

CREATE FUNCTION bowline.count_down(kind_ text, is_owner_ boolean, owner_ bytea, has_name_ boolean)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE bowline.counts SET number = number - 1
    WHERE kind = kind_ AND is_owner = is_owner_ AND owner = owner_ AND has_name = has_name_;
    IF is_owner_ THEN
        DELETE FROM bowline.counts
        WHERE kind = kind_ AND is_owner AND owner = owner_ AND has_name = has_name_ AND number < 1;
    END IF;
END $$;

-- Keeps a new record if the quota allows it: 0 is kept, 1 is full, 2 exists.
CREATE FUNCTION bowline.create_record(
    kind_ text, id_ bytea, owner_ bytea, created_ bigint, due_ bigint, record_ text,
    version_ bigint, mark_ bigint, most_each bigint, most_all bigint
) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    named boolean := owner_ IS NOT NULL;
    name bytea := coalesce(owner_, ''::bytea);
BEGIN
    -- The row that all share comes first everywhere, so that no two transactions can wait for each
    -- other.
    IF NOT bowline.count_up(kind_, false, ''::bytea, false, most_all) THEN
        RETURN 1;
    END IF;
    IF NOT bowline.count_up(kind_, true, name, named, most_each) THEN
        PERFORM bowline.count_down(kind_, false, ''::bytea, false);
        RETURN 1;
    END IF;
    INSERT INTO bowline.records (kind, id, version, owner, created, due, record, mark)
    VALUES (kind_, id_, version_, owner_, created_, due_, record_, mark_) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        PERFORM bowline.count_down(kind_, false, ''::bytea, false);
        PERFORM bowline.count_down(kind_, true, name, named);
        RETURN 2;
    END IF;
    RETURN 0;
END $$;

-- Removes a record if it has this version. Returns whether it had.
CREATE FUNCTION bowline.remove_record(kind_ text, id_ bytea, version_ bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    whose bytea;
BEGIN
    DELETE FROM bowline.records WHERE kind = kind_ AND id = id_ AND version = version_
    RETURNING owner INTO whose;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM bowline.count_down(kind_, false, ''::bytea, false);
    PERFORM bowline.count_down(kind_, true, coalesce(whose, ''::bytea), whose IS NOT NULL);
    RETURN true;
END $$;
