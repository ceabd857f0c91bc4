-- The schema after all migrations, as the database describes it. Not to be edited:
-- go test ./migrations -run SchemaDump -update

CREATE TABLE log (
    id bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    create_id bigint NOT NULL,
    deleted boolean NOT NULL,
    at bigint NOT NULL,
    value bytea NOT NULL,
    CONSTRAINT log_pkey PRIMARY KEY (id)
) WITH (autovacuum_vacuum_scale_factor=0.05);

CREATE TABLE meta (
    name text COLLATE "C" NOT NULL,
    value text COLLATE "default" NOT NULL,
    CONSTRAINT meta_pkey PRIMARY KEY (name)
) WITH (fillfactor=50);

CREATE UNIQUE INDEX log_key_id ON public.log USING btree (key, id);

-- VIEW objects:
--     api_version text
--     kind text
--     namespace text
--     name text
--     resource_version bigint
--     created_at timestamp with time zone
--     updated_at timestamp with time zone
--     object json
--     key text
