/**
 * Fixtures for Playwright:
 *
 *     import { test as base } from "@playwright/test";
 *     import { fixtures, type PostroomFixtures } from "postroom/playwright";
 *     export const test = base.extend<PostroomFixtures>(fixtures);
 *
 *     test("signup", async ({ page, inbox }) => { … await inbox.code() … });
 */
export { fixtures, type PostroomFixtures } from "./fixture.js";
