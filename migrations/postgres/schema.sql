-- The schema after all migrations, as the database describes it. Not to be edited:
-- go test ./migrations -run SchemaDump -update

CREATE TABLE log (
    id bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    create_id bigint NOT NULL,
    deleted boolean NOT NULL,
    at bigint NOT NULL,
    value bytea NOT NULL,
    version bigint,
    lease bigint,
    author integer,
    audit_id bytea,
    CONSTRAINT log_pkey PRIMARY KEY (id)
) WITH (autovacuum_vacuum_scale_factor=0.05);

CREATE TABLE meta (
    name text COLLATE "C" NOT NULL,
    value text COLLATE "default" NOT NULL,
    CONSTRAINT meta_pkey PRIMARY KEY (name)
) WITH (fillfactor=50);

CREATE TABLE lease (
    id bigint NOT NULL,
    ttl bigint NOT NULL,
    expires bigint NOT NULL,
    CONSTRAINT lease_pkey PRIMARY KEY (id)
);

CREATE TABLE author (
    id integer NOT NULL,
    who text COLLATE "default" NOT NULL,
    impersonator text COLLATE "default" NOT NULL,
    verb text COLLATE "default" NOT NULL,
    subresource text COLLATE "default" NOT NULL,
    manager text COLLATE "default" NOT NULL,
    CONSTRAINT author_pkey PRIMARY KEY (id)
);

CREATE TABLE past (
    id bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    create_id bigint NOT NULL,
    deleted boolean NOT NULL,
    at bigint NOT NULL,
    until_id bigint NOT NULL,
    until_at bigint NOT NULL,
    expires bigint NOT NULL,
    author integer,
    audit_id bytea,
    value bytea NOT NULL,
    CONSTRAINT past_pkey PRIMARY KEY (id)
);

CREATE TABLE kept (
    prefix text COLLATE "C" NOT NULL,
    lost bigint NOT NULL,
    CONSTRAINT kept_pkey PRIMARY KEY (prefix)
);

CREATE UNIQUE INDEX past_key_id ON public.past USING btree (key, id);

CREATE INDEX past_expires ON public.past USING btree (expires);

CREATE UNIQUE INDEX log_key_id ON public.log USING btree (key, id);

CREATE INDEX lease_expires ON public.lease USING btree (expires);

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

-- VIEW kv:
--     key text
--     value bytea
--     create_revision bigint
--     mod_revision bigint
--     version bigint
--     lease bigint

-- VIEW history:
--     time timestamp with time zone
--     who text
--     impersonator text
--     verb text
--     subresource text
--     manager text
--     action text
--     resource text
--     kind text
--     namespace text
--     name text
--     revision bigint
--     audit_id text
--     key text
