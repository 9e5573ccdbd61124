import { query } from "./test-database.ts";

/** A database that can be made to refuse every write with an error of the server, as a full disk does. */
export interface FailingDatabase {
  /** Every insert, update and delete fails with this SQLSTATE from now on; `none` writes again. */
  refuse(state: string): Promise<void>;
  /** How many transactions were taken back so far, a moment late. */
  refused(): Promise<number>;
}

/** Triggers on every table of the store and of its scheduler, which look at one row that is not theirs. */
export async function makeFailing(url: string): Promise<FailingDatabase> {
  await query(
    url,
    `CREATE TABLE public.fault (state text NOT NULL);
     INSERT INTO public.fault VALUES ('none');
     CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $body$
       DECLARE current text := (SELECT state FROM public.fault);
       BEGIN
         IF current <> 'none' THEN
           RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = current;
         END IF;
         RETURN NULL;
       END $body$;
     DO $$ DECLARE found record; BEGIN
       FOR found IN SELECT schemaname, tablename FROM pg_tables WHERE schemaname LIKE 'retinue%' LOOP
         EXECUTE format('CREATE TRIGGER refuse BEFORE INSERT OR UPDATE OR DELETE ON %I.%I FOR EACH STATEMENT EXECUTE FUNCTION public.refuse()',
           found.schemaname, found.tablename);
       END LOOP;
     END $$`,
  );
  return {
    async refused() {
      const text = "SELECT xact_rollback AS count FROM pg_stat_database WHERE datname = current_database()";
      return Number((await query(url, text))[0]?.["count"]);
    },
    async refuse(state) {
      await query(url, `UPDATE public.fault SET state = '${state}'`);
    },
  };
}
