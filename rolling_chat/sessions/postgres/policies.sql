-- Who sees what: the owner of a session everything of it, whom it is shared with the same, to write where the
-- owner said so. The login decides (`session_user`), which no `SET ROLE` changes.

-- Policies call these whatever path the login has set: no table of its own stands in for one of these.
CREATE OR REPLACE FUNCTION may_write(p_session bigint, p_owner name) RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, rolling_chat, pg_temp AS $$
    SELECT EXISTS (
        SELECT FROM session WHERE number = p_session AND owner = p_owner AND (
            owner = session_user
            OR number IN (SELECT share.session FROM share WHERE share.member = session_user AND share.may_write)
        )
    )
$$;

-- whether a message, if any, is one that the login may read: nothing can be made to stand on another
CREATE OR REPLACE FUNCTION sees(p_message bigint) RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, rolling_chat, pg_temp AS $$
    SELECT p_message IS NULL OR EXISTS (SELECT FROM message WHERE number = p_message)
$$;

CREATE OR REPLACE FUNCTION is_mine(p_message bigint) RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, rolling_chat, pg_temp AS $$
    SELECT EXISTS (SELECT FROM message WHERE number = p_message AND owner = session_user)
$$;

DO $$
DECLARE the_table text; old record;
BEGIN
    FOR old IN SELECT tablename, policyname FROM pg_policies WHERE schemaname = 'rolling_chat' LOOP
        EXECUTE format('DROP POLICY %I ON rolling_chat.%I', old.policyname, old.tablename);
    END LOOP;
    FOR the_table IN SELECT tablename FROM pg_tables WHERE schemaname = 'rolling_chat' AND tablename <> 'version'
    LOOP
        EXECUTE format('ALTER TABLE rolling_chat.%I ENABLE ROW LEVEL SECURITY', the_table);
    END LOOP;
    FOREACH the_table IN ARRAY ARRAY['message', 'claim', 'growing', 'chunk', 'request', 'summary', 'file',
        'file_change', 'picture_of']
    LOOP
        EXECUTE format('CREATE POLICY readers ON rolling_chat.%I FOR SELECT USING (owner = session_user
            OR session IN (SELECT share.session FROM share WHERE share.member = session_user))', the_table);
        EXECUTE format('CREATE POLICY adding ON rolling_chat.%I FOR INSERT
            WITH CHECK (may_write(session, owner))', the_table);
        EXECUTE format('CREATE POLICY changing ON rolling_chat.%I FOR UPDATE USING (owner = session_user
            OR session IN (SELECT share.session FROM share WHERE share.member = session_user AND may_write))
            WITH CHECK (may_write(session, owner))', the_table);
        EXECUTE format('CREATE POLICY deleting ON rolling_chat.%I FOR DELETE USING (owner = session_user
            OR session IN (SELECT share.session FROM share WHERE share.member = session_user AND may_write))',
            the_table);
    END LOOP;
    FOREACH the_table IN ARRAY ARRAY['message', 'file', 'file_change', 'picture_of'] LOOP
        EXECUTE format('CREATE POLICY borrowers ON rolling_chat.%I FOR SELECT USING (%I IN (
            SELECT lent.message FROM lent JOIN share ON share.session = lent.session
            WHERE share.member = session_user))', the_table,
            CASE the_table WHEN 'message' THEN 'number' ELSE 'message' END);
    END LOOP;
    DROP POLICY adding ON rolling_chat.message;
    CREATE POLICY adding ON rolling_chat.message FOR INSERT
        WITH CHECK (may_write(session, owner) AND sees(parent));
    -- whom a session is shared with adds to it, and changes nothing that was said
    DROP POLICY changing ON rolling_chat.message;
    DROP POLICY deleting ON rolling_chat.message;
    FOREACH the_table IN ARRAY ARRAY['UPDATE', 'DELETE'] LOOP
        EXECUTE format('CREATE POLICY %I ON rolling_chat.message FOR %s USING (owner = session_user
            OR (EXISTS (SELECT FROM growing WHERE growing.message = message.number)
                AND session IN (SELECT share.session FROM share
                    WHERE share.member = session_user AND may_write)))', lower(the_table), the_table);
    END LOOP;
    -- kept once for each owner, by what it holds
    FOREACH the_table IN ARRAY ARRAY['basis', 'file_content', 'picture'] LOOP
        EXECUTE format('CREATE POLICY adding ON rolling_chat.%I FOR INSERT WITH CHECK (owner = session_user
            OR owner IN (SELECT share.owner FROM share WHERE share.member = session_user AND may_write))',
            the_table);
        EXECUTE format('CREATE POLICY changing ON rolling_chat.%I FOR UPDATE USING (owner = session_user
            OR owner IN (SELECT share.owner FROM share WHERE share.member = session_user AND may_write))',
            the_table);
        EXECUTE format('CREATE POLICY deleting ON rolling_chat.%I FOR DELETE USING (owner = session_user)',
            the_table);
    END LOOP;
    FOREACH the_table IN ARRAY ARRAY['learned', 'measured'] LOOP
        EXECUTE format('CREATE POLICY own ON rolling_chat.%I USING (owner = session_user)', the_table);
    END LOOP;
END $$;

CREATE POLICY readers ON session FOR SELECT USING (owner = session_user
    OR number IN (SELECT share.session FROM share WHERE share.member = session_user));
CREATE POLICY adding ON session FOR INSERT
    WITH CHECK (owner = session_user AND sees(head) AND sees(forked_at) AND sees(asked_by));
CREATE POLICY changing ON session FOR UPDATE USING (owner = session_user
    OR number IN (SELECT share.session FROM share WHERE share.member = session_user AND may_write))
    WITH CHECK (sees(head) AND sees(forked_at) AND sees(asked_by));
CREATE POLICY deleting ON session FOR DELETE USING (owner = session_user);

CREATE POLICY readers ON share FOR SELECT USING (owner = session_user OR member = session_user);
CREATE POLICY adding ON share FOR INSERT WITH CHECK (owner = session_user
    AND EXISTS (SELECT FROM session WHERE session.number = share.session AND session.owner = session_user));
CREATE POLICY changing ON share FOR UPDATE USING (owner = session_user) WITH CHECK (owner = session_user
    AND EXISTS (SELECT FROM session WHERE session.number = share.session AND session.owner = session_user));
CREATE POLICY deleting ON share FOR DELETE USING (owner = session_user OR member = session_user);

CREATE POLICY readers ON lent FOR SELECT USING (owner = session_user
    OR session IN (SELECT share.session FROM share WHERE share.member = session_user));
CREATE POLICY adding ON lent FOR INSERT
    WITH CHECK (owner = session_user AND may_write(session, owner) AND is_mine(message));
CREATE POLICY deleting ON lent FOR DELETE USING (owner = session_user);

CREATE POLICY readers ON writer FOR SELECT USING (owner = session_user
    OR EXISTS (SELECT FROM claim WHERE claim.store = writer.store)
    OR EXISTS (SELECT FROM growing WHERE growing.store = writer.store));
CREATE POLICY adding ON writer FOR INSERT WITH CHECK (owner = session_user);
CREATE POLICY changing ON writer FOR UPDATE USING (owner = session_user);
CREATE POLICY deleting ON writer FOR DELETE USING (owner = session_user);

CREATE POLICY readers ON follower FOR SELECT USING (owner = session_user
    OR EXISTS (SELECT FROM session WHERE session.number = follower.session));
CREATE POLICY adding ON follower FOR INSERT WITH CHECK (owner = session_user
    AND EXISTS (SELECT FROM session WHERE session.number = follower.session));
CREATE POLICY changing ON follower FOR UPDATE USING (owner = session_user);
CREATE POLICY deleting ON follower FOR DELETE USING (owner = session_user);

CREATE POLICY readers ON basis FOR SELECT USING (owner = session_user OR EXISTS (
    SELECT FROM request WHERE request.owner = basis.owner AND request.settings_digest = basis.digest));
CREATE POLICY readers ON picture FOR SELECT USING (owner = session_user OR EXISTS (
    SELECT FROM picture_of WHERE picture_of.owner = picture.owner AND picture_of.sha256 = picture.sha256));
CREATE POLICY readers ON file_content FOR SELECT USING (owner = session_user OR EXISTS (
    SELECT FROM file_change WHERE file_change.owner = file_content.owner AND before = file_content.sha256)
    OR EXISTS (SELECT FROM file_change WHERE file_change.owner = file_content.owner
        AND after = file_content.sha256));

-- the rights of those who use the store: rows, and nothing else; neither an owner nor an id can be changed
DO $$
DECLARE the_table text; columns text;
BEGIN
    REVOKE ALL ON ALL FUNCTIONS IN SCHEMA rolling_chat FROM PUBLIC;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rolling_chat_member') THEN RETURN; END IF;
    GRANT USAGE ON SCHEMA rolling_chat TO rolling_chat_member;
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA rolling_chat TO rolling_chat_member;
    GRANT USAGE ON ALL SEQUENCES IN SCHEMA rolling_chat TO rolling_chat_member;
    FOR the_table IN SELECT tablename FROM pg_tables WHERE schemaname = 'rolling_chat' LOOP
        IF the_table = 'version' THEN
            GRANT SELECT ON rolling_chat.version TO rolling_chat_member;
            CONTINUE;
        END IF;
        EXECUTE format('GRANT SELECT, INSERT, DELETE ON rolling_chat.%I TO rolling_chat_member', the_table);
        SELECT string_agg(format('%I', column_name), ', ') INTO columns FROM information_schema.columns
        WHERE table_schema = 'rolling_chat' AND table_name = the_table
            AND column_name NOT IN ('owner', 'id', 'number', 'api_base_by') AND is_generated = 'NEVER';
        EXECUTE format('GRANT UPDATE (%s) ON rolling_chat.%I TO rolling_chat_member', columns, the_table);
    END LOOP;
END $$;
