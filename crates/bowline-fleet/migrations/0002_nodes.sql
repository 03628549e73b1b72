-- The processes of the fleet, the keys that they share, and what has changed.

-- One row for each process that runs, or has run lately. A number is never used again.
CREATE TABLE bowline.nodes (
    number bigint GENERATED ALWAYS AS IDENTITY (MAXVALUE 536870911) PRIMARY KEY,
    address text,
    -- The process itself: a database that is restored from a backup hands out numbers again.
    incarnation bytea NOT NULL,
    server text NOT NULL,
    started timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Says that a node lives, and returns the time. NULL if its number is another process's.
CREATE FUNCTION bowline.beat(number_ bigint, incarnation_ bytea, address_ text, server_ text)
RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    UPDATE bowline.nodes SET seen = clock_timestamp(), address = address_, server = server_
    WHERE number = number_ AND incarnation = incarnation_;
    IF NOT FOUND THEN
        -- It was silent for a day, or the database is as it was before the node came.
        INSERT INTO bowline.nodes (number, address, incarnation, server)
        OVERRIDING SYSTEM VALUE VALUES (number_, address_, incarnation_, server_)
        ON CONFLICT DO NOTHING;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
        PERFORM setval('bowline.nodes_number_seq', greatest(number_, last_value))
        FROM bowline.nodes_number_seq;
    END IF;
    RETURN (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
END $$;

-- Secrets, the newest last. One seals as soon as every node has had the time to read it.
CREATE TABLE bowline.keys (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    secret bytea NOT NULL,
    created timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE SEQUENCE bowline.revisions;

-- The latest revision of everything that is listened to, of each server. Written under a lock, so that revisions
-- become visible in their order, and whoever has seen one has seen all before it.
CREATE TABLE bowline.changes (
    server text NOT NULL,
    topic text NOT NULL,
    revision bigint NOT NULL,
    node bigint NOT NULL,
    changed timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (server, topic)
);

CREATE INDEX changes_revision ON bowline.changes (server, revision);

CREATE FUNCTION bowline.change(server_ text, topics text[], node_ bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    latest bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('bowline.changes'));
    latest := nextval('bowline.revisions');
    INSERT INTO bowline.changes (server, topic, revision, node)
    SELECT DISTINCT server_, topic, latest, node_ FROM unnest(topics) AS topic
    ON CONFLICT (server, topic) DO UPDATE
    SET revision = excluded.revision, node = excluded.node, changed = clock_timestamp();
    RETURN latest;
END $$;
