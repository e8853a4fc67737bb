import { type Inbox, Postroom } from "./client.js";

/** The fixtures of a test: a client, and an inbox of the test's own. */
export interface PostroomFixtures {
  postroom: Postroom;
  inbox: Inbox;
}

type Use<T> = (value: T) => Promise<void>;

/** Fixtures in the form that both Playwright and Vitest take. */
export const fixtures = {
  // The first argument must be destructured: both read from it what a fixture needs.
  postroom: async ({}: object, use: Use<Postroom>): Promise<void> => {
    await use(new Postroom());
  },
  inbox: async ({ postroom }: { postroom: Postroom }, use: Use<Inbox>): Promise<void> => {
    const inbox = await postroom.createInbox({ retention_days: 1 });
    try {
      await use(inbox);
    } finally {
      await inbox.delete();
    }
  },
};
