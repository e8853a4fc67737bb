// The app is that of ../../../playwright: node app.mjs
describe("sign up", () => {
  it("emails a code", () => {
    cy.task("postroom:createInbox").then((inbox) => {
      cy.visit("/");
      cy.get("input").type(inbox.address);
      cy.contains("button", "Sign up").click();
      cy.task("postroom:code", inbox.id, { timeout: 70_000 }).then((code) => cy.get("input").type(code));
      cy.contains("button", "Confirm").click();
      cy.get("h1").should("have.text", "Welcome");
      cy.task("postroom:deleteInbox", inbox.id);
    });
  });
});
