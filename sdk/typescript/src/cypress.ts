/**
 * Tasks for Cypress, which run in Node.js, where the key is. In cypress.config.ts:
 *
 *     import { postroomTasks } from "postroom/cypress";
 *     export default defineConfig({ e2e: { setupNodeEvents: (on) => { on("task", postroomTasks()); } } });
 *
 * In a test:
 *
 *     cy.task<InboxInfo>("postroom:createInbox").then((inbox) => {
 *       cy.get("#email").type(inbox.address);
 *       cy.task<string>("postroom:code", inbox.id, { timeout: 70_000 }).then((code) => cy.get("#code").type(code));
 *     });
 */
import { type Inbox, Postroom } from "./client.js";
import type { ClientOptions } from "./http.js";
import type { WaitOptions } from "./wait.js";

/** An inbox as tasks return it. */
export interface InboxInfo {
  id: string;
  address: string;
}

/** What the waiting tasks take: the ID of an inbox, alone or with a filter. */
export type WaitTask = string | ({ inboxId: string } & Omit<WaitOptions, "signal">);

/** Returns the tasks to register with `on("task", ...)`. */
export function postroomTasks(options?: ClientOptions) {
  const client = new Postroom(options);
  const wait = (task: WaitTask): [string, WaitOptions] => {
    if (typeof task === "string") return [task, {}];
    const { inboxId, ...filter } = task;
    return [inboxId, filter];
  };
  return {
    "postroom:createInbox": async (): Promise<InboxInfo> => info(await client.createInbox({ retention_days: 1 })),
    "postroom:code": (task: WaitTask): Promise<string> => client.waitForCode(...wait(task)),
    "postroom:link": (task: WaitTask): Promise<string> => client.waitForLink(...wait(task)),
    "postroom:deleteInbox": async (id: string): Promise<null> => {
      await client.inboxes.delete(id);
      return null;
    },
  };
}

const info = ({ id, address }: Inbox): InboxInfo => ({ id, address });
