CREATE TABLE public.kine (
    id bigint NOT NULL,
    name text COLLATE pg_catalog."C",
    created integer,
    deleted integer,
    create_revision bigint,
    prev_revision bigint,
    lease integer,
    value bytea,
    old_value bytea
);
CREATE SEQUENCE public.kine_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.kine_id_seq OWNED BY public.kine.id;
ALTER TABLE ONLY public.kine ALTER COLUMN id SET DEFAULT nextval('public.kine_id_seq'::regclass);
INSERT INTO public.kine VALUES (2, '/registry/health', 1, 0, NULL, 0, 0, '\x7b226865616c7468223a2274727565227d', NULL);
INSERT INTO public.kine VALUES (4, '/registry/b', 1, 0, NULL, 0, 0, '\x6200ff', NULL);
INSERT INTO public.kine VALUES (8, '/registry/a', 0, 0, 3, 5, 0, '\x7468726565', '\x74776f');
INSERT INTO public.kine VALUES (1, 'compact_rev_key', 1, 0, NULL, 8, 0, '\x', NULL);
INSERT INTO public.kine VALUES (9, '/registry/a', 0, 0, 3, 8, 0, '\x666f7572', '\x7468726565');
INSERT INTO public.kine VALUES (10, '/registry/event', 1, 0, NULL, 0, 3600, '\x736f6f6e', NULL);
INSERT INTO public.kine VALUES (11, '/registry/c', 1, 0, NULL, 0, 0, '\x6331', NULL);
INSERT INTO public.kine VALUES (12, '/registry/c', 0, 1, 11, 11, 0, NULL, '\x6331');
INSERT INTO public.kine VALUES (13, '/registry/c', 1, 0, NULL, 12, 0, '\x6332', NULL);
INSERT INTO public.kine VALUES (14, '/registry/b', 0, 0, 4, 4, 0, NULL, '\x6200ff');
INSERT INTO public.kine VALUES (15, '/registry/last', 1, 0, NULL, 0, 0, '\x6c617374', NULL);
SELECT pg_catalog.setval('public.kine_id_seq', 15, true);
ALTER TABLE ONLY public.kine
    ADD CONSTRAINT kine_pkey PRIMARY KEY (id);
CREATE INDEX kine_id_deleted_index ON public.kine USING btree (id, deleted);
CREATE INDEX kine_list_query_index ON public.kine USING btree (name, id DESC, deleted);
CREATE INDEX kine_name_id_index ON public.kine USING btree (name, id);
CREATE INDEX kine_name_index ON public.kine USING btree (name);
CREATE UNIQUE INDEX kine_name_prev_revision_uindex ON public.kine USING btree (name, prev_revision);
CREATE INDEX kine_prev_revision_index ON public.kine USING btree (prev_revision);
