-- A topic may be longer than a key of an index can be, so the key is its digest.
ALTER TABLE bowline.changes ADD COLUMN key bytea;
UPDATE bowline.changes SET key = sha256(convert_to(topic, 'UTF8'));
ALTER TABLE bowline.changes ALTER COLUMN key SET NOT NULL;
ALTER TABLE bowline.changes DROP CONSTRAINT changes_pkey;
ALTER TABLE bowline.changes ADD PRIMARY KEY (server, key);

-- The latest revision that is another node's than `node`: that one has not heard of it by itself.
ALTER TABLE bowline.changes ADD COLUMN others bigint NOT NULL DEFAULT 0;

CREATE OR REPLACE FUNCTION bowline.change(server_ text, topics text[], node_ bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    latest bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('bowline.changes'));
    latest := nextval('bowline.revisions');
    INSERT INTO bowline.changes AS it (server, key, topic, revision, node)
    SELECT DISTINCT server_, sha256(convert_to(topic, 'UTF8')), topic, latest, node_
    FROM unnest(topics) AS topic
    ON CONFLICT (server, key) DO UPDATE
    SET others = CASE WHEN it.node = excluded.node THEN it.others ELSE it.revision END,
        revision = excluded.revision, node = excluded.node, changed = clock_timestamp();
    RETURN latest;
END $$;
