package contract_test

import (
	"testing"

	"github.com/postroom/postroom/store/storetest"
)

// TestContract replays the contract. The steps on one engine share an
// installation and a coverage count.
func TestContract(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e storetest.Engine) {
		check := newChecker(t)
		in := start(t, e, check, "POSTROOM_RATE_LIMITS=off", "POSTROOM_LOG_LEVEL=debug")
		told := watchEvents(t, in)
		w := newWorld(t, in)
		w.events = told
		steps := []struct {
			name string
			run  func(t *testing.T, w *world)
		}{
			{"every example is answered", everyExample},
			{"every operation wants a key", everyOperationWantsAKey},
			{"every operation wants its scope", everyOperationWantsItsScope},
			{"the matrix of scopes (H12)", scopeMatrix},
			{"the matrix of keys with inbox_ids", boundKeyMatrix},
			{"what others have is not there (H11)", othersIDs},
			{"keys are for their addresses", keysAreForTheirAddresses},
			{"parameters are checked", parametersAreChecked},
			{"unknown parameters are refused", unknownParametersAreRefused},
			{"bodies must be read", bodiesMustBeRead},
			{"bodies must be of the right type", bodiesMustBeOfTheRightType},
			{"bodies must not be too large", bodiesMustNotBeTooLarge},
			{"ids must be of something", idsMustBeOfSomething},
			{"repeats get the same answer", repeatsGetTheSameAnswer},
			{"a repeat during a call is refused", aRepeatDuringACallIsRefused},
			{"inboxes", inboxes},
			{"domains", domains},
			{"lists", lists},
			{"policies", policies},
			{"drafts", drafts},
			{"webhooks", webhooks},
			{"deleted messages", deletedMessages},
			{"simulated messages", simulatedMessages},
			{"templates", templates},
			{"emails", emails},
			{"over limits", overLimits},
			{"stops", stops},
			{"list entries", listEntries},
			{"quarantine", quarantine},
			{"contacts", contacts},
			{"suppressions", suppressions},
			{"files", files},
			{"expired messages", expiredMessages},
			{"events", events},
			{"streams", streams},
			{"the protocol of MCP", mcpProtocol},
			{"what is not in the contract", whatIsNotInTheContract},
			{"the contract itself", theContractItself},
			{"limits", limits},
			{"the database is gone", theDatabaseIsGone},
			{"metrics tell no secret (H2)", metricsTellNoSecret},
		}
		done := 0
		for _, step := range steps {
			t.Run(step.name, func(t *testing.T) {
				step.run(t, w)
				done++
			})
		}
		if done < len(steps) {
			t.Log("not all steps ran to their end, so what was not seen is not looked for")
			return
		}
		reportCoverage(t, check)
	})
}
