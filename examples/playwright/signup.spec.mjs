// Each test has an address of its own, so tests may run at the same time.
import { expect, test as base } from "@playwright/test";
import { fixtures } from "postroom/playwright";

const test = base.extend(fixtures);

test("a new user gets a code", async ({ page, inbox }) => {
  await page.goto("/");
  await page.getByLabel("Email").fill(inbox.address);
  await page.getByRole("button", { name: "Sign up" }).click();
  await page.getByLabel("Code").fill(await inbox.code());
  await page.getByRole("button", { name: "Confirm" }).click();
  await expect(page.getByRole("heading")).toHaveText("Welcome");
});
