-- Sessions that come from another store, with the ids that they have everywhere: one transaction calls
-- `adopt_session`, `adopt_messages` and `adopt_requests` part by part, and `adopt_state`. What is there already
-- is passed over.

-- The session, made if it is not there; locked until all of it is.
CREATE OR REPLACE FUNCTION adopt_session(p_store text, p_copy json) RETURNS void LANGUAGE plpgsql AS $$
DECLARE place session; asked bigint;
BEGIN
    -- a login's one after the other: two that come at once may have messages in common
    PERFORM pg_advisory_xact_lock(hashtext('rolling_chat.adopt'), hashtext(session_user));
    IF p_copy ->> 'asked_by' <> '' THEN asked := message_number(p_copy ->> 'asked_by'); END IF;
    INSERT INTO session (
        id, short, title, title_given, title_says, folder, model, api_base, rolling, parent, asked_by, asked_call,
        created_at, updated_at
    ) VALUES (
        p_copy ->> 'id', p_copy ->> 'short', '', false, false, p_copy ->> 'folder', p_copy ->> 'model',
        p_copy ->> 'api_base', (p_copy ->> 'rolling')::boolean, p_copy ->> 'parent', asked,
        (p_copy ->> 'asked_call')::integer, (p_copy ->> 'created_at')::double precision, '-infinity'
    ) ON CONFLICT (id) DO NOTHING;
    SELECT * INTO place FROM session WHERE id = p_copy ->> 'id';
    IF place.number IS NULL OR NOT may_write(place.number, place.owner)
        OR EXISTS (SELECT FROM message WHERE number = asked AND owner <> place.owner)
    THEN
        RAISE EXCEPTION USING ERRCODE = 'RC007', MESSAGE = 'not the owner', DETAIL = p_copy ->> 'short';
    END IF;
    PERFORM opened(place.id, p_store);
END $$;

-- Messages of its tree, each behind the one above it.
CREATE OR REPLACE FUNCTION adopt_messages(p_session text, p_messages json) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    place session := seen(p_session); origin bigint; origin_id text; above message; one json; moved bigint[];
    below bigint; violated text; ids text[]; parents text[]; said_here text[];
BEGIN
    SELECT array_agg(given ->> 'id'), array_agg(given ->> 'parent'),
        array_agg(given ->> 'id') FILTER (WHERE given ->> 'session' = p_session)
    INTO ids, parents, said_here FROM json_array_elements(p_messages) AS given;
    -- nothing stands on what somebody else may delete
    PERFORM FROM message WHERE id = ANY (ids || parents) AND owner <> place.owner;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'RC007', MESSAGE = 'not the owner', DETAIL = place.short;
    END IF;
    -- a fork may have come first, and brought what it shares
    WITH gone_over AS (
        UPDATE message SET session = place.number WHERE id = ANY (said_here) AND session <> place.number
        RETURNING number
    ) SELECT array_agg(number) INTO moved FROM gone_over;
    PERFORM take_along(moved);
    FOR one IN SELECT * FROM json_array_elements(p_messages) LOOP
        CONTINUE WHEN EXISTS (SELECT FROM message WHERE id = one ->> 'id');
        IF one ->> 'session' IS DISTINCT FROM origin_id THEN
            origin_id := one ->> 'session';
            SELECT number INTO origin FROM session WHERE id = origin_id AND owner = place.owner;
        END IF;
        IF one ->> 'parent' = '' THEN
            above := NULL;
        ELSIF above.id IS DISTINCT FROM one ->> 'parent' THEN
            -- by a variable: the planner would look for it among what was there before this function
            below := message_number(one ->> 'parent');
            SELECT * INTO above FROM message WHERE number = below;
        END IF;
        above := insert_message(
            coalesce(origin, place.number), place.owner, above, one, (one ->> 'created_at')::double precision
        );
    END LOOP;
EXCEPTION WHEN unique_violation THEN
    GET STACKED DIAGNOSTICS violated = CONSTRAINT_NAME;
    IF violated <> 'message_id_key' THEN RAISE; END IF;
    -- there is one of that id, which is not for this login to see
    RAISE EXCEPTION USING ERRCODE = 'RC007', MESSAGE = 'not the owner', DETAIL = place.short;
END $$;

-- Its requests, and what they were made from by digest; one that was under way has come back by now.
CREATE OR REPLACE FUNCTION adopt_requests(p_session text, p_requests json, p_bases json)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE place session := seen(p_session);
BEGIN
    INSERT INTO basis (owner, digest, value)
    SELECT place.owner, key, value FROM json_each_text(p_bases) ON CONFLICT DO NOTHING;
    UPDATE request SET
        input_tokens = given.input_tokens, output_tokens = given.output_tokens,
        cached_read_tokens = given.cached_read_tokens, cached_write_tokens = given.cached_write_tokens,
        reasoning_tokens = given.reasoning_tokens, cost = given.cost, seconds = given.seconds,
        error = given.error, cache_miss = given.cache_miss, missed_tokens = given.missed_tokens
    FROM json_populate_recordset(NULL::request, p_requests) AS given
    WHERE request.id = given.id AND request.session = place.number AND (given.seconds > 0 OR given.error <> '');
    INSERT INTO request (
        id, short, owner, session, head, model, plan, settings_digest, pipeline_version, wire_hash, estimated, bound,
        input_tokens, output_tokens, cached_read_tokens, cached_write_tokens, reasoning_tokens, cost, seconds,
        created_at, error, totals, purpose, cache_miss, missed_tokens
    ) SELECT given.id, given.short, place.owner, place.number, given.head, given.model, given.plan,
        given.settings_digest, given.pipeline_version, given.wire_hash, given.estimated, given.bound,
        given.input_tokens, given.output_tokens, given.cached_read_tokens, given.cached_write_tokens,
        given.reasoning_tokens, given.cost, given.seconds, given.created_at, given.error, given.totals,
        given.purpose, given.cache_miss, given.missed_tokens
    FROM json_populate_recordset(NULL::request, p_requests) AS given ON CONFLICT (id) DO NOTHING;
END $$;

-- Summaries that are not there; where both stores have had new ones, these come behind.
CREATE OR REPLACE FUNCTION adopt_summaries(p_session session, p_summaries json) RETURNS void LANGUAGE plpgsql AS $$
DECLARE one json; stands_on bigint; place integer; newest integer; now_called jsonb := '{}';
BEGIN
    SELECT coalesce(max(generation), 0) INTO newest FROM summary WHERE session = p_session.number;
    FOR one IN SELECT * FROM json_array_elements(p_summaries) LOOP
        stands_on := message_number(one ->> 'through');
        SELECT generation INTO place FROM summary WHERE session = p_session.number AND through = stands_on
            AND text = one ->> 'text' AND created_at = (one ->> 'created_at')::double precision;
        IF place IS NULL THEN
            place := (one ->> 'generation')::integer;
            PERFORM FROM summary WHERE session = p_session.number AND generation = place;
            IF FOUND THEN place := newest + 1; END IF;
            newest := greatest(newest, place);
            INSERT INTO summary (
                id, owner, session, generation, made_from, through, text, digest, made_by, tokens_before,
                tokens_after, created_at, skipped
            ) VALUES (
                one ->> 'id', p_session.owner, p_session.number, place,
                coalesce(now_called ->> (one ->> 'made_from'), one ->> 'made_from')::bigint, stands_on,
                one ->> 'text', one ->> 'digest', one ->> 'made_by', (one ->> 'tokens_before')::bigint,
                (one ->> 'tokens_after')::bigint, (one ->> 'created_at')::double precision, one ->> 'skipped'
            );
        END IF;
        now_called := now_called || jsonb_build_object(one ->> 'generation', place);
    END LOOP;
END $$;

-- What is of the session as a whole, unless it was written to since, and its summaries.
CREATE OR REPLACE FUNCTION adopt_state(p_copy json) RETURNS void LANGUAGE plpgsql AS $$
DECLARE place session := seen(p_copy ->> 'id'); new_head bigint; fork_point bigint;
BEGIN
    IF p_copy ->> 'head' <> '' THEN new_head := message_number(p_copy ->> 'head'); END IF;
    IF p_copy ->> 'forked_at' <> '' THEN fork_point := message_number(p_copy ->> 'forked_at'); END IF;
    PERFORM FROM message WHERE number IN (new_head, fork_point) AND owner <> place.owner;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'RC007', MESSAGE = 'not the owner', DETAIL = place.short;
    END IF;
    IF place.updated_at <= (p_copy ->> 'updated_at')::double precision THEN
        UPDATE session SET
            title = p_copy ->> 'title', title_given = (p_copy ->> 'title_given')::boolean,
            title_says = (p_copy ->> 'title_says')::boolean, folder = p_copy ->> 'folder',
            model = p_copy ->> 'model', effort = p_copy ->> 'effort',
            rolling = (p_copy ->> 'rolling')::boolean, summary_noted = (p_copy ->> 'summary_noted')::boolean,
            pins = p_copy ->> 'pins', excluded = p_copy ->> 'excluded', notes = p_copy ->> 'notes',
            plan = p_copy ->> 'plan', servers = p_copy ->> 'servers', head = new_head,
            forked_at = coalesce(fork_point, forked_at),
            updated_at = (p_copy ->> 'updated_at')::double precision
        WHERE number = place.number;
        -- where it is not known, it may be somebody else's choice
        UPDATE session SET api_base = p_copy ->> 'api_base'
        WHERE number = place.number AND p_copy ->> 'api_base' IS NOT NULL;
    END IF;
    UPDATE session SET is_spoken_in = true WHERE number = place.number AND NOT is_spoken_in
        AND (head IS NOT NULL OR forked_at IS NOT NULL
            OR EXISTS (SELECT FROM message WHERE message.session = place.number));
    PERFORM lend(place.number) FROM share WHERE share.session = place.number AND share.owner = session_user LIMIT 1;
    PERFORM adopt_summaries(place, p_copy -> 'summaries');
    PERFORM tell_followers(place.number, place.id);
END $$;
