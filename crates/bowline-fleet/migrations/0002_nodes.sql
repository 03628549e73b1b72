-- The processes of the fleet, the keys that they share, and what has changed.

-- One row for each process that runs, or has run lately. A number is never used again.
CREATE TABLE bowline.nodes (
    number bigint GENERATED ALWAYS AS IDENTITY (MAXVALUE 536870911) PRIMARY KEY,
    address text,
    started timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Secrets, the newest last. One seals as soon as every node has had the time to read it.
CREATE TABLE bowline.keys (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    secret bytea NOT NULL,
    created timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE SEQUENCE bowline.revisions;

-- The latest revision of everything that is listened to. Written under a lock, so that revisions
-- become visible in their order, and whoever has seen one has seen all before it.
CREATE TABLE bowline.changes (
    topic text PRIMARY KEY,
    revision bigint NOT NULL,
    node bigint NOT NULL,
    changed timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE INDEX changes_revision ON bowline.changes (revision);

CREATE FUNCTION bowline.change(topics text[], node_ bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    latest bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('bowline.changes'));
    latest := nextval('bowline.revisions');
    INSERT INTO bowline.changes (topic, revision, node)
    SELECT DISTINCT topic, latest, node_ FROM unnest(topics) AS topic
    ON CONFLICT (topic) DO UPDATE
    SET revision = excluded.revision, node = excluded.node, changed = clock_timestamp();
    RETURN latest;
END $$;
