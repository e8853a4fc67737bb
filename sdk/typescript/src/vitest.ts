/**
 * Fixtures for Vitest:
 *
 *     import { test as base } from "vitest";
 *     import { fixtures, type PostroomFixtures } from "postroom/vitest";
 *     export const test = base.extend<PostroomFixtures>(fixtures);
 *
 *     test("signup", async ({ inbox }) => { … await inbox.code() … });
 */
export { fixtures, type PostroomFixtures } from "./fixture.js";
