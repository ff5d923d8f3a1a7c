-- Roles for a store that several people use, each by a login of their own. Run this once as an administrator,
-- in the database that the store is to be in:
--
--     psql -v ON_ERROR_STOP=1 -d DATABASE -f roles.sql
--     CREATE ROLE ada LOGIN IN ROLE rolling_chat_member;      -- and a password by \password
--
-- The tables are made, and changed by a newer version, by whoever opens the store as a member of
-- rolling_chat_owner. Members of rolling_chat_member read and write rows: their own and those shared with
-- them, as the policies of the tables say. They own nothing, and change no table.

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rolling_chat_owner') THEN
        CREATE ROLE rolling_chat_owner NOLOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rolling_chat_member') THEN
        CREATE ROLE rolling_chat_member NOLOGIN;
    END IF;
END $$;

CREATE SCHEMA IF NOT EXISTS rolling_chat AUTHORIZATION rolling_chat_owner;
REVOKE ALL ON SCHEMA rolling_chat FROM PUBLIC;
GRANT USAGE ON SCHEMA rolling_chat TO rolling_chat_member;
