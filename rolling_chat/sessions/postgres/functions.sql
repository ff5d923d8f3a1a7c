-- What the store does, one statement each, so that a slow connection is waited for once. They run with the
-- rights of whoever calls them, and the policies decide what they see; only the search, whose index a policy
-- would keep from being used, looks for itself. Each can be repeated when it is unknown whether it was done.

-- Failures that the program puts into words:
--   RC001 no such session     RC002 no such message     RC003 the reply is closed
--   RC004 open elsewhere (the detail says where)        RC005 not a message of this session
--   RC006 shared for reading only                       RC007, RC008, RC009 somebody else's session
--   RC010 no such login

CREATE OR REPLACE FUNCTION patience() RETURNS interval LANGUAGE sql IMMUTABLE
    AS $$ SELECT interval '60 seconds' $$;

-- the ranges that make the branch down to `head`, the last first
CREATE OR REPLACE FUNCTION line_of(p_head bigint)
RETURNS TABLE (run bigint, first integer, last integer) LANGUAGE sql STABLE ROWS 4 AS $$
    WITH RECURSIVE line AS (
        SELECT message.run, start.depth AS first, message.depth AS last, start.parent
        FROM message JOIN message AS start ON start.number = message.run WHERE message.number = p_head
        UNION ALL
        SELECT message.run, start.depth, message.depth, start.parent
        FROM line JOIN message ON message.number = line.parent
        JOIN message AS start ON start.number = message.run
    )
    SELECT line.run, line.first, line.last FROM line
$$;

CREATE OR REPLACE FUNCTION is_on_branch(p_message bigint, p_head bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM message JOIN line_of(p_head) AS line ON line.run = message.run AND message.depth <= line.last
        WHERE message.number = p_message
    )
$$;

-- the messages of a session: those that it made, and those that it shares with the one that it was forked from
CREATE OR REPLACE FUNCTION is_of(p_message bigint, p_session session) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM message WHERE number = p_message AND session = p_session.number)
        OR is_on_branch(p_message, p_session.head) OR is_on_branch(p_message, p_session.forked_at)
$$;

-- The messages on any branch of a session, those that it shares with the one that it forked among them, but
-- those that still grow.
CREATE OR REPLACE FUNCTION tree_of(p_session bigint) RETURNS TABLE (number bigint) LANGUAGE plpgsql STABLE ROWS 10 AS $$
BEGIN
    RETURN QUERY
    WITH own AS MATERIALIZED (
        SELECT message.number, message.parent FROM message WHERE message.session = p_session
    ), tip AS (
        SELECT session.head AS number FROM session WHERE session.number = p_session
        UNION
        SELECT session.forked_at FROM session WHERE session.number = p_session
        UNION
        SELECT own.parent FROM own WHERE NOT EXISTS (SELECT FROM own AS one WHERE one.number = own.parent)
    ), tree AS (
        SELECT own.number FROM own
        UNION
        SELECT message.number FROM tip CROSS JOIN LATERAL line_of(tip.number) AS line CROSS JOIN LATERAL (
            SELECT one.number FROM message AS one WHERE one.run = line.run
                AND one.depth BETWEEN line.first AND line.last
            OFFSET 0  -- range by range, by the index
        ) AS message
    )
    -- what it shares no longer grew when it was shared
    SELECT tree.number FROM tree
    WHERE tree.number <> ALL (ARRAY(SELECT growing.message FROM growing WHERE growing.session = p_session));
END $$;

CREATE OR REPLACE FUNCTION message_number(p_id text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE found bigint;
BEGIN
    SELECT number INTO found FROM message WHERE id = p_id;
    IF found IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'RC002', MESSAGE = 'no such message', DETAIL = p_id;
    END IF;
    RETURN found;
END $$;

-- the session for reading
CREATE OR REPLACE FUNCTION seen(p_session text) RETURNS session LANGUAGE plpgsql STABLE AS $$
DECLARE found session;
BEGIN
    SELECT * INTO found FROM session WHERE id = p_session;
    IF found.number IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'RC001', MESSAGE = 'no such session', DETAIL = p_session;
    END IF;
    RETURN found;
END $$;

-- the session for writing, locked: refused where another store that lives has it open
CREATE OR REPLACE FUNCTION opened(p_session text, p_store text) RETURNS session LANGUAGE plpgsql AS $$
DECLARE place session; other record;
BEGIN
    SELECT * INTO place FROM session WHERE id = p_session FOR UPDATE;
    IF place.number IS NULL THEN
        PERFORM FROM session WHERE id = p_session;
        RAISE EXCEPTION USING ERRCODE = CASE WHEN FOUND THEN 'RC006' ELSE 'RC001' END,
            MESSAGE = 'no such session', DETAIL = p_session;
    END IF;
    SELECT writer.*, claim.since, p_session AS session, place.short INTO other FROM claim JOIN writer USING (store)
    WHERE claim.session = place.number AND claim.store <> p_store
        AND writer.beat > clock_timestamp() - patience();
    IF other.store IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'RC004', MESSAGE = 'open elsewhere', DETAIL = row_to_json(other)::text;
    END IF;
    RETURN place;
END $$;

-- How deep a part of a branch begins that has its newest `p_most` messages: with no tool's result.
CREATE OR REPLACE FUNCTION start_of(p_head bigint, p_most integer) RETURNS integer LANGUAGE plpgsql STABLE AS $$
DECLARE place message; deep integer;
BEGIN
    SELECT depth INTO deep FROM message WHERE number = p_head;
    IF p_most IS NULL OR p_most >= deep THEN RETURN 1; END IF;
    SELECT one.* INTO place FROM line_of(p_head) AS line CROSS JOIN LATERAL (
        SELECT message.* FROM message WHERE message.run = line.run AND message.depth = deep - p_most + 1
        OFFSET 0  -- by the index, whatever a policy makes of it
    ) AS one WHERE one.depth BETWEEN line.first AND line.last;
    WHILE place.role = 'tool' AND place.parent IS NOT NULL LOOP
        SELECT * INTO place FROM message WHERE number = place.parent;
    END LOOP;
    RETURN place.depth;
END $$;

-- A message as it is read: with what came of it piece by piece, if it still grows, and its pictures.
CREATE OR REPLACE FUNCTION pieces_of(p_message bigint) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT json_build_array(string_agg(text, '' ORDER BY place), string_agg(reasoning, '' ORDER BY place))
    FROM chunk WHERE message = p_message HAVING count(*) > 0
$$;
CREATE OR REPLACE FUNCTION pictures_of(p_message bigint) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT json_agg(json_build_array(sha256, media_type, encode(data, 'base64')))
    FROM picture_of JOIN picture USING (owner, sha256) WHERE message = p_message
$$;

-- Where the branch of a session ends: at a message of it, else at its head.
CREATE OR REPLACE FUNCTION tip_of(p_session text, p_head text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE place session := seen(p_session);
BEGIN
    RETURN CASE WHEN p_head IS NULL THEN place.head WHEN p_head <> '' THEN message_number(p_head) END;
END $$;

CREATE OR REPLACE FUNCTION tell_followers(p_session bigint, p_id text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    -- only where somebody listens: every notice makes the transactions that send one wait for each other
    IF EXISTS (SELECT FROM follower WHERE session = p_session AND until > clock_timestamp()) THEN
        PERFORM pg_notify('rolling_chat_' || md5(p_id), '');
    END IF;
END $$;

-- A message put below another, which it goes on from where nothing else does.
CREATE OR REPLACE FUNCTION insert_message(
    p_session bigint, p_owner name, above message, p_message json, p_time double precision
) RETURNS message LANGUAGE plpgsql AS $$
DECLARE new_number bigint := nextval('message_number_seq'); made message;
BEGIN
    INSERT INTO message (
        number, id, owner, session, parent, run, depth, turn, role, content, parts, tool_calls, tool_call_id,
        name, extras, provider, model, ending, created_at, counts, words
    ) OVERRIDING SYSTEM VALUE VALUES (
        new_number, p_message ->> 'id', p_owner, p_session, above.number,
        CASE WHEN above.number IS NULL OR EXISTS
            (SELECT FROM message WHERE run = above.run AND depth = above.depth + 1)
        THEN new_number ELSE above.run END,
        coalesce(above.depth, 0) + 1, coalesce(above.turn, 0) + (p_message ->> 'role' = 'user')::integer,
        p_message ->> 'role', p_message ->> 'content', p_message ->> 'parts', p_message ->> 'tool_calls',
        p_message ->> 'tool_call_id', p_message ->> 'name', p_message ->> 'extras', p_message ->> 'provider',
        p_message ->> 'model', p_message ->> 'ending', p_time, p_message ->> 'counts',
        (p_message ->> 'words')::tsvector
    ) RETURNING * INTO made;
    IF json_array_length(p_message -> 'touched') > 0 THEN
        INSERT INTO file (message, owner, session, path, action, sha256)
        SELECT new_number, p_owner, p_session, touch ->> 0, touch ->> 1, touch ->> 2
        FROM json_array_elements(p_message -> 'touched') AS touch;
    END IF;
    IF json_array_length(p_message -> 'pictures') > 0 THEN
        INSERT INTO picture (owner, sha256, media_type, data)
        SELECT p_owner, one ->> 0, one ->> 1, decode(one ->> 2, 'base64')
        FROM json_array_elements(p_message -> 'pictures') AS one ON CONFLICT DO NOTHING;
        INSERT INTO picture_of (message, owner, session, sha256)
        SELECT new_number, p_owner, p_session, one ->> 0
        FROM json_array_elements(p_message -> 'pictures') AS one ON CONFLICT DO NOTHING;
    END IF;
    RETURN made;
END $$;

CREATE OR REPLACE FUNCTION add_message(p_session session, p_message json, p_now double precision)
RETURNS session LANGUAGE plpgsql AS $$
DECLARE
    above message; made message; the_title text := p_message ->> 'title';
    message_time double precision := coalesce(nullif((p_message ->> 'created_at')::double precision, 0), p_now);
BEGIN
    SELECT * INTO above FROM message WHERE number = p_session.head;
    made := insert_message(p_session.number, p_session.owner, above, p_message, message_time);
    IF made.role = 'user' AND NOT p_session.title_given AND the_title <> '' AND (
        above.number IS NULL OR p_session.title = ''
        OR ((p_message ->> 'title_says')::boolean AND NOT p_session.title_says)
    ) THEN
        p_session.title := the_title;
        p_session.title_says := (p_message ->> 'title_says')::boolean;
    END IF;
    p_session.head := made.number;
    p_session.updated_at := p_now;
    RETURN p_session;
END $$;

-- Messages added one below the other. Those of an array that are there already were added by this call's
-- first try: it is all of them.
CREATE OR REPLACE FUNCTION append(p_session text, p_store text, p_messages json, p_now double precision)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE place session := opened(p_session, p_store); one json;
BEGIN
    PERFORM FROM message WHERE id = p_messages -> 0 ->> 'id';
    IF FOUND THEN RETURN; END IF;
    FOR one IN SELECT * FROM json_array_elements(p_messages) LOOP
        place := add_message(place, one, p_now);
    END LOOP;
    UPDATE session SET head = place.head, updated_at = place.updated_at, title = place.title,
        title_says = place.title_says, is_spoken_in = true WHERE number = place.number;
    PERFORM tell_followers(place.number, p_session);
END $$;

CREATE OR REPLACE FUNCTION begin_reply(
    p_session text, p_store text, p_process json, p_message json, p_now double precision
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM beat(p_store, p_process);
    PERFORM append(p_session, p_store, json_build_array(p_message), p_now);
    INSERT INTO growing (message, owner, session, store)
    SELECT number, owner, session, p_store FROM message WHERE id = p_message ->> 'id' ON CONFLICT DO NOTHING;
END $$;

-- The reply that is still written; refused where it was closed by whoever took over from its writer.
CREATE OR REPLACE FUNCTION still_growing(p_reply text) RETURNS growing LANGUAGE plpgsql AS $$
DECLARE found growing;
BEGIN
    SELECT growing.* INTO found FROM growing JOIN message ON message.number = growing.message
    WHERE message.id = p_reply FOR UPDATE OF growing;
    IF found.message IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'RC003', MESSAGE = 'the reply is closed', DETAIL = p_reply;
    END IF;
    RETURN found;
END $$;

CREATE OR REPLACE FUNCTION grow_reply(p_reply text, p_place integer, p_text text, p_reasoning text)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE reply growing := still_growing(p_reply);
BEGIN
    INSERT INTO chunk (message, owner, session, place, text, reasoning)
    VALUES (reply.message, reply.owner, reply.session, p_place, p_text, p_reasoning) ON CONFLICT DO NOTHING;
    PERFORM tell_followers(reply.session, session.id) FROM session WHERE number = reply.session;
END $$;

-- A reply ended: `text` and `reasoning` that came piece by piece stay where the final message has none.
-- `p_extras` are the message's, `p_streamed` are the same with the reasoning. Returns the row.
CREATE OR REPLACE FUNCTION seal_reply(p_reply text, p_final json, p_again boolean, p_now double precision)
RETURNS message LANGUAGE plpgsql AS $$
DECLARE reply growing; done message;
BEGIN
    IF p_again THEN
        SELECT message.* INTO done FROM message LEFT JOIN growing ON growing.message = message.number
        WHERE id = p_reply AND growing.message IS NULL AND ending = p_final ->> 'ending'
            AND content = p_final ->> 'content' AND extras IS NOT DISTINCT FROM p_final ->> 'extras';
        IF done.number IS NOT NULL THEN RETURN done; END IF;
    END IF;
    reply := still_growing(p_reply);
    UPDATE message SET
        content = p_final ->> 'content', parts = p_final ->> 'parts', tool_calls = p_final ->> 'tool_calls',
        extras = p_final ->> 'extras', provider = coalesce(p_final ->> 'provider', provider),
        model = CASE WHEN p_final ->> 'provider' IS NULL THEN model ELSE p_final ->> 'model' END,
        ending = p_final ->> 'ending', counts = NULL,
        words = (p_final ->> 'words')::tsvector
    WHERE number = reply.message RETURNING * INTO done;
    DELETE FROM growing WHERE message = reply.message;
    UPDATE session SET updated_at = p_now WHERE number = reply.session;
    PERFORM tell_followers(reply.session, session.id) FROM session WHERE number = reply.session;
    RETURN done;
END $$;

-- A reply that never got a byte, and was not answered, is taken back: true. Else it is left to be sealed.
CREATE OR REPLACE FUNCTION drop_reply(p_reply text, p_again boolean) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE reply growing;
BEGIN
    PERFORM FROM message WHERE id = p_reply;
    IF p_again AND NOT FOUND THEN RETURN true; END IF;
    reply := still_growing(p_reply);
    IF EXISTS (SELECT FROM chunk WHERE message = reply.message)
        OR EXISTS (SELECT FROM message WHERE parent = reply.message) THEN
        RETURN false;
    END IF;
    UPDATE session SET head = (SELECT parent FROM message WHERE number = reply.message)
    WHERE number = reply.session AND head = reply.message;
    DELETE FROM message WHERE number = reply.message;
    PERFORM tell_followers(reply.session, session.id) FROM session WHERE number = reply.session;
    RETURN true;
END $$;

CREATE OR REPLACE FUNCTION beat(p_store text, p_process json) RETURNS void LANGUAGE sql AS $$
    INSERT INTO writer (store, pid, host, machine, started) VALUES (
        p_store, (p_process ->> 'pid')::bigint, p_process ->> 'host', p_process ->> 'machine',
        p_process ->> 'started'
    ) ON CONFLICT (store) DO UPDATE SET beat = clock_timestamp()
$$;

-- A session claimed: returns who else has it open, NULL where it is ours, and the replies that a dead writer
-- left open, for the caller to seal. `p_gone` is a store whose process is known to have ended.
CREATE OR REPLACE FUNCTION claim(
    p_session text, p_store text, p_process json, p_gone text, p_now double precision,
    OUT other json, OUT abandoned json
) LANGUAGE plpgsql AS $$
DECLARE place session := seen(p_session); holder record; may_write boolean;
BEGIN
    PERFORM beat(p_store, p_process);
    -- another may claim it at the same moment
    PERFORM FROM session WHERE number = place.number FOR UPDATE;
    may_write := FOUND;
    SELECT writer.*, claim.since INTO holder FROM claim JOIN writer USING (store)
    WHERE claim.session = place.number AND claim.store NOT IN (p_store, p_gone)
        AND writer.beat > clock_timestamp() - patience();
    IF holder.store IS NOT NULL THEN
        other := row_to_json(holder);
    ELSIF NOT may_write THEN
        other := json_build_object('pid', 0, 'host', place.owner, 'since', place.updated_at);
    END IF;
    IF other IS NOT NULL THEN
        INSERT INTO follower (session, store, until)
        VALUES (place.number, p_store, clock_timestamp() + 2 * patience())
        ON CONFLICT (session, store) DO UPDATE SET until = excluded.until
        WHERE follower.until < clock_timestamp() + patience();
        RETURN;
    END IF;
    INSERT INTO claim (session, owner, store, since) VALUES (place.number, place.owner, p_store, p_now)
    ON CONFLICT (session) DO UPDATE SET store = excluded.store, since = excluded.since
    WHERE claim.store <> excluded.store;
    IF FOUND THEN
        DELETE FROM follower WHERE session = place.number AND store = p_store;
        SELECT json_agg(message.id) INTO abandoned FROM growing JOIN message ON message.number = growing.message
        WHERE growing.session = place.number AND growing.store <> p_store AND NOT EXISTS (
            SELECT FROM writer WHERE writer.store = growing.store AND writer.store <> p_gone
                AND writer.beat > clock_timestamp() - patience()
        );
    END IF;
END $$;

CREATE OR REPLACE FUNCTION release(p_session text, p_store text) RETURNS void LANGUAGE sql AS $$
    WITH left_now AS (
        DELETE FROM claim USING session
        WHERE session.id = p_session AND claim.session = session.number AND claim.store = p_store
        RETURNING session.number, session.id
    ) SELECT tell_followers(number, id) FROM left_now;
    DELETE FROM follower USING session
    WHERE session.id = p_session AND follower.session = session.number AND follower.store = p_store;
$$;

-- A store closed, after it has sealed the replies that it still wrote.
CREATE OR REPLACE FUNCTION release_all(p_store text) RETURNS void LANGUAGE sql AS $$
    WITH left_now AS (
        DELETE FROM claim USING session WHERE claim.store = p_store AND session.number = claim.session
        RETURNING session.number, session.id
    ) SELECT tell_followers(number, id) FROM left_now;
    DELETE FROM follower WHERE store = p_store;
    DELETE FROM writer WHERE store = p_store;
    DELETE FROM writer WHERE owner = session_user AND beat < statement_timestamp() - interval '30 days';
$$;

-- the newest summary whose last message is on the branch of `p_head`
CREATE OR REPLACE FUNCTION newest_summary(p_session bigint, p_head bigint) RETURNS summary LANGUAGE sql STABLE AS $$
    SELECT summary.* FROM summary WHERE session = p_session AND is_on_branch(through, p_head)
    ORDER BY generation DESC LIMIT 1
$$;

CREATE OR REPLACE FUNCTION publish_summary(
    p_session text, p_store text, p_summary json, p_expected integer, p_now double precision
) RETURNS SETOF summary LANGUAGE plpgsql ROWS 1 AS $$
DECLARE
    place session := opened(p_session, p_store); before summary;
    through bigint := message_number(p_summary ->> 'through');
BEGIN
    PERFORM FROM summary WHERE id = p_summary ->> 'id';
    IF NOT FOUND THEN
        before := newest_summary(place.number, place.head);
        IF coalesce(before.generation, 0) <> p_expected OR NOT is_on_branch(through, place.head) THEN
            RETURN;
        END IF;
        INSERT INTO summary (
            id, owner, session, generation, made_from, through, text, digest, made_by, tokens_before,
            tokens_after, created_at, skipped
        ) SELECT p_summary ->> 'id', place.owner, place.number,
            coalesce((SELECT max(generation) FROM summary WHERE session = place.number), 0) + 1,
            (p_summary ->> 'made_from')::bigint, through, p_summary ->> 'text', p_summary ->> 'digest',
            p_summary ->> 'made_by', (p_summary ->> 'tokens_before')::bigint,
            (p_summary ->> 'tokens_after')::bigint,
            coalesce(nullif((p_summary ->> 'created_at')::double precision, 0), p_now), p_summary ->> 'skipped';
        PERFORM tell_followers(place.number, p_session);
    END IF;
    RETURN QUERY SELECT * FROM newest_summary(place.number, place.head) AS newest WHERE newest.number IS NOT NULL;
END $$;

-- The plan of the nearest request of a model at or above `p_head`; of a fork, those of the sessions that it
-- shares messages with count as well.
CREATE OR REPLACE FUNCTION plan_at(p_session bigint, p_head bigint, p_model text)
RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE makers bigint[] := ARRAY[p_session]; maker bigint := p_session; found_plan text;
BEGIN
    LOOP
        SELECT message.session INTO maker FROM session JOIN message ON message.number = session.forked_at
        WHERE session.number = maker;
        EXIT WHEN maker IS NULL OR maker = ANY (makers);
        makers := makers || maker;
    END LOOP;
    SELECT request.plan INTO found_plan FROM request JOIN message ON message.id = request.head
    JOIN line_of(p_head) AS line ON line.run = message.run AND message.depth <= line.last
    WHERE request.session = ANY (makers) AND request.model = p_model AND request.plan <> 'null'
    ORDER BY message.depth DESC, request.number DESC LIMIT 1;
    RETURN found_plan;
END $$;

CREATE OR REPLACE FUNCTION move_head(
    p_session text, p_store text, p_head text, p_model text, p_now double precision
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE place session := opened(p_session, p_store); target bigint; found_plan text;
BEGIN
    IF p_head <> '' THEN
        SELECT number INTO target FROM message WHERE id = p_head;
        IF target IS NULL OR NOT is_of(target, place) THEN
            RAISE EXCEPTION USING ERRCODE = 'RC005', MESSAGE = 'not of this session', DETAIL = p_head;
        END IF;
    END IF;
    found_plan := plan_at(place.number, target, p_model);
    UPDATE session SET head = target, plan = coalesce(found_plan, 'null'), updated_at = p_now
    WHERE number = place.number;
    PERFORM tell_followers(place.number, p_session);
    RETURN found_plan;
END $$;

-- Who has set the address of the model's server is noted, whatever the statement says.
CREATE OR REPLACE FUNCTION note_who_chose() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.api_base_by := session_user;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER note_who_chose BEFORE INSERT OR UPDATE OF api_base, api_base_by ON session
    FOR EACH ROW EXECUTE FUNCTION note_who_chose();

-- the nearest message from `p_head` upwards that no longer grows
CREATE OR REPLACE FUNCTION last_sealed(p_head bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    WHILE EXISTS (SELECT FROM growing WHERE message = p_head) LOOP
        SELECT parent INTO p_head FROM message WHERE number = p_head;
    END LOOP;
    RETURN p_head;
END $$;

-- A session made that shares the messages of another; false where that is somebody else's: a fork of it would
-- stand on messages that its owner may delete, or share no longer.
CREATE OR REPLACE FUNCTION fork(p_session text, p_id text, p_now double precision)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE place session := seen(p_session); head_now bigint := last_sealed(place.head); new_number bigint;
BEGIN
    IF place.owner <> session_user THEN RETURN false; END IF;
    PERFORM FROM session WHERE id = p_id;
    IF FOUND THEN RETURN true; END IF;
    INSERT INTO session (
        id, short, title, title_given, title_says, folder, model, api_base, effort, rolling, summary_noted, pins,
        excluded, notes, plan, servers, head, forked_at, parent, is_spoken_in, created_at, updated_at
    ) VALUES (
        p_id, right(p_id, 8), place.title, place.title_given, place.title_says, place.folder, place.model,
        CASE WHEN place.api_base = '' OR place.api_base_by = session_user THEN place.api_base END, place.effort,
        place.rolling, place.summary_noted, place.pins, place.excluded, place.notes, place.plan, place.servers,
        head_now, head_now, place.id, head_now IS NOT NULL, p_now, p_now
    ) RETURNING number INTO new_number;
    INSERT INTO summary (
        id, owner, session, generation, made_from, through, text, digest, made_by, tokens_before, tokens_after,
        created_at, skipped
    )
    SELECT p_id || '/' || generation, session_user, new_number, generation, made_from, through, text, digest,
        made_by, tokens_before, tokens_after, created_at, skipped
    FROM summary WHERE session = place.number AND is_on_branch(through, head_now);
    RETURN true;
END $$;

-- the sessions of the tasks that the calls of a session began
CREATE OR REPLACE FUNCTION tasks_of(p_session bigint) RETURNS SETOF bigint LANGUAGE sql STABLE ROWS 2 AS $$
    SELECT task.number FROM message AS asked JOIN session AS task ON task.asked_by = asked.number
    WHERE asked.session = p_session ORDER BY task.number
$$;

-- What belongs to messages that went to another session goes there, too.
CREATE OR REPLACE FUNCTION take_along(p_messages bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE file SET session = message.session FROM message
    WHERE message.number = ANY (p_messages) AND file.message = message.number;
    UPDATE file_change SET session = message.session FROM message
    WHERE message.number = ANY (p_messages) AND file_change.message = message.number;
    UPDATE picture_of SET session = message.session FROM message
    WHERE message.number = ANY (p_messages) AND picture_of.message = message.number;
END $$;

-- A session deleted with its tasks; what a fork stands on goes to the fork.
CREATE OR REPLACE FUNCTION delete_rows(p_session bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE next_owner record; task bigint; moved bigint[] := '{}'; these bigint[];
BEGIN
    UPDATE session SET head = NULL, forked_at = NULL WHERE number = p_session;
    FOR next_owner IN
        SELECT heir.number AS session, message.number AS shared
        FROM session AS heir JOIN message ON message.number IN (heir.head, heir.forked_at)
        WHERE message.session = p_session
        UNION
        SELECT child.session, message.number FROM message JOIN message AS child ON child.parent = message.number
        WHERE message.session = p_session AND child.session <> p_session
        ORDER BY 1
    LOOP
        WITH given AS (
            UPDATE message SET session = next_owner.session FROM line_of(next_owner.shared) AS line
            WHERE message.run = line.run AND message.depth BETWEEN line.first AND line.last
                AND message.session = p_session
            RETURNING message.number
        ) SELECT array_agg(number) INTO these FROM given;
        moved := moved || these;
    END LOOP;
    PERFORM take_along(moved);
    FOR task IN SELECT * FROM tasks_of(p_session) LOOP
        PERFORM delete_rows(task);
    END LOOP;
    DELETE FROM message WHERE session = p_session;
    DELETE FROM session WHERE number = p_session;
END $$;

CREATE OR REPLACE FUNCTION delete_session(p_session text, p_store text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE place session := opened(p_session, p_store); task bigint; gone bigint[];
    bases text[]; contents text[]; pictures text[];
BEGIN
    IF place.owner <> session_user THEN
        RAISE EXCEPTION USING ERRCODE = 'RC008', MESSAGE = 'not the owner', DETAIL = p_session;
    END IF;
    FOR task IN SELECT * FROM tasks_of(place.number) LOOP
        PERFORM opened(id, p_store) FROM session WHERE number = task;
    END LOOP;
    gone := place.number || ARRAY(SELECT tasks_of(place.number));
    -- what is dropped with it where nothing else refers to it
    SELECT array_agg(DISTINCT settings_digest) INTO bases FROM request WHERE session = ANY (gone);
    SELECT array_agg(DISTINCT each.one) INTO contents
    FROM message JOIN file_change ON file_change.message = message.number,
        LATERAL (VALUES (file_change.before), (file_change.after)) AS each (one)
    WHERE message.session = ANY (gone) AND each.one IS NOT NULL;
    SELECT array_agg(DISTINCT sha256) INTO pictures
    FROM message JOIN picture_of ON picture_of.message = message.number WHERE message.session = ANY (gone);
    PERFORM delete_rows(place.number);
    DELETE FROM basis WHERE owner = place.owner AND digest = ANY (bases) AND NOT EXISTS
        (SELECT FROM request WHERE owner = place.owner AND settings_digest = basis.digest);
    DELETE FROM file_content WHERE owner = place.owner AND sha256 = ANY (contents)
        AND NOT EXISTS (SELECT FROM file_change WHERE owner = place.owner AND before = file_content.sha256)
        AND NOT EXISTS (SELECT FROM file_change WHERE owner = place.owner AND after = file_content.sha256);
    DELETE FROM picture WHERE owner = place.owner AND sha256 = ANY (pictures)
        AND NOT EXISTS (SELECT FROM picture_of WHERE owner = place.owner AND sha256 = picture.sha256);
END $$;

-- A request about to leave; with the store that has the session open its plan becomes the session's.
CREATE OR REPLACE FUNCTION log_request(
    p_session text, p_store text, p_request json, p_basis text, p_now double precision
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE place session;
BEGIN
    IF p_store = '' THEN
        place := seen(p_session);
    ELSE
        place := opened(p_session, p_store);
        UPDATE session SET plan = p_request ->> 'plan' WHERE number = place.number;
        PERFORM tell_followers(place.number, p_session);
    END IF;
    IF p_basis IS NOT NULL THEN
        INSERT INTO basis (owner, digest, value) VALUES (place.owner, p_request ->> 'settings_digest', p_basis)
        ON CONFLICT DO NOTHING;
    END IF;
    INSERT INTO request (
        id, short, owner, session, head, model, plan, settings_digest, pipeline_version, wire_hash, estimated, bound,
        input_tokens, output_tokens, cached_read_tokens, cached_write_tokens, reasoning_tokens, cost, seconds,
        created_at, error, totals, purpose
    ) SELECT given.id, given.short, place.owner, place.number, given.head, given.model, given.plan, given.settings_digest,
        given.pipeline_version, given.wire_hash, given.estimated, given.bound, given.input_tokens,
        given.output_tokens, given.cached_read_tokens, given.cached_write_tokens, given.reasoning_tokens,
        given.cost, given.seconds, coalesce(nullif(given.created_at, 0), p_now), given.error, given.totals,
        given.purpose
    FROM json_populate_record(NULL::request, p_request) AS given ON CONFLICT (id) DO NOTHING;
END $$;

-- Changes of files that are about to be made, and the contents that they name; the oldest contents beyond
-- `p_most` bytes are dropped, but never these.
CREATE OR REPLACE FUNCTION keep_files(
    p_batch text, p_changes json, p_hashes text[], p_contents bytea[], p_most bigint, p_now double precision
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE keeper name; size bigint; old record; place message;
BEGIN
    PERFORM FROM file_change WHERE batch = p_batch;
    IF FOUND THEN RETURN; END IF;
    SELECT message.* INTO place FROM message WHERE id = p_changes -> 0 ->> 'message';
    keeper := coalesce(place.owner, session_user);
    INSERT INTO file_content (owner, sha256, data, kept_at)
    SELECT keeper, one.sha256, one.data, p_now FROM unnest(p_hashes, p_contents) AS one (sha256, data)
    ON CONFLICT (owner, sha256) DO UPDATE SET kept_at = excluded.kept_at;
    INSERT INTO file_change (
        batch, place, message, owner, session, path, before, before_mode, after, after_mode, links, folders
    ) SELECT p_batch, one.at, message_number(given ->> 'message'), keeper, place.session, given ->> 'path',
        given ->> 'before', (given ->> 'before_mode')::integer, given ->> 'after',
        (given ->> 'after_mode')::integer, (given ->> 'links')::integer, given ->> 'folders'
    FROM json_array_elements(p_changes) WITH ORDINALITY AS one (given, at) ORDER BY one.at;
    UPDATE file_change SET first = (SELECT min(number) FROM file_change WHERE batch = p_batch)
    WHERE batch = p_batch;
    SELECT coalesce(sum(octet_length(data)), 0) INTO size FROM file_content WHERE owner = keeper;
    IF size > p_most THEN
        FOR old IN SELECT sha256, octet_length(data) AS length FROM file_content
            WHERE owner = keeper AND sha256 <> ALL (p_hashes) ORDER BY kept_at, number
        LOOP
            EXIT WHEN size <= p_most;
            DELETE FROM file_content WHERE owner = keeper AND sha256 = old.sha256;
            size := size - old.length;
        END LOOP;
    END IF;
END $$;

-- The messages that a search finds, best first: those of everybody's that the login may read. It runs as its
-- owner, whom no policy holds, since the index on words is not used where one does.
CREATE OR REPLACE FUNCTION found_messages(
    p_query tsquery, p_session bigint, p_most integer
) RETURNS SETOF bigint LANGUAGE plpgsql STABLE ROWS 5 SECURITY DEFINER AS $$
BEGIN
    RETURN QUERY SELECT message.number FROM message
    WHERE message.words @@ p_query
        AND (message.owner = session_user
            OR message.session IN (SELECT share.session FROM share WHERE share.member = session_user))
        AND (p_session IS NULL OR message.session = p_session OR EXISTS (
            SELECT FROM session CROSS JOIN line_of(session.head) AS line
            WHERE session.number = p_session AND line.run = message.run AND message.depth <= line.last))
    ORDER BY ts_rank(message.words, p_query, 1) DESC, message.number DESC LIMIT p_most;
END $$;

-- In how many messages each of the words is, up to `p_most`.
CREATE OR REPLACE FUNCTION holders(p_words text[], p_most integer)
RETURNS TABLE (word text, messages bigint) LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT each.word, (SELECT count(*) FROM (
        SELECT FROM message WHERE words @@ (each.word || ':*')::tsquery
            AND (message.owner = session_user
                OR message.session IN (SELECT share.session FROM share WHERE share.member = session_user))
        LIMIT p_most) AS some_of_them)
    FROM unnest(p_words) AS each (word)
$$;

-- The messages that hold every pattern somewhere, the newest first: for scripts without spaces, whose words no
-- index knows, and for what no index found. It reads the login's own messages one by one.
CREATE OR REPLACE FUNCTION scanned_messages(
    p_patterns text[], p_session bigint, p_most integer
) RETURNS SETOF bigint LANGUAGE plpgsql STABLE ROWS 5 AS $$
BEGIN
    RETURN QUERY SELECT message.number FROM message
    WHERE message.content ILIKE ALL (p_patterns)
        AND (p_session IS NULL OR message.session = p_session OR EXISTS (
            SELECT FROM session CROSS JOIN line_of(session.head) AS line
            WHERE session.number = p_session AND line.run = message.run AND message.depth <= line.last))
    ORDER BY message.number DESC LIMIT p_most;
END $$;

-- A session shared with another login, to read or to write; NULL ends that.
CREATE OR REPLACE FUNCTION share_session(p_session text, p_member text, p_may_write boolean)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE place session := seen(p_session);
BEGIN
    IF place.owner <> session_user THEN
        RAISE EXCEPTION USING ERRCODE = 'RC009', MESSAGE = 'not the owner', DETAIL = place.short;
    END IF;
    IF p_may_write IS NULL THEN
        DELETE FROM share WHERE session = place.number AND member = p_member;
        RETURN;
    END IF;
    IF p_member = place.owner OR NOT EXISTS (SELECT FROM pg_roles WHERE rolname = p_member AND rolcanlogin) THEN
        RAISE EXCEPTION USING ERRCODE = 'RC010', MESSAGE = 'no such login', DETAIL = p_member;
    END IF;
    INSERT INTO share (session, member, may_write) VALUES (place.number, p_member, p_may_write)
    ON CONFLICT (session, member) DO UPDATE SET may_write = excluded.may_write;
    PERFORM lend(place.number);
END $$;

CREATE OR REPLACE FUNCTION lend(p_session bigint) RETURNS void LANGUAGE sql AS $$
    INSERT INTO lent (session, message)
    SELECT p_session, message.number FROM tree_of(p_session) AS tree JOIN message USING (number)
    WHERE message.session <> p_session ON CONFLICT DO NOTHING
$$;

-- The claim of a store whose process is known to have ended.
CREATE OR REPLACE FUNCTION forget(p_session text, p_gone text) RETURNS void LANGUAGE sql AS $$
    DELETE FROM claim USING session
    WHERE session.id = p_session AND claim.session = session.number AND claim.store = p_gone
$$;
