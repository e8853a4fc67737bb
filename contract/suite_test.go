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
		seen := watchEvents(t, in)
		w := newWorld(t, in)
		w.events = seen
		steps := []struct {
			name string
			run  func(t *testing.T, w *world)
		}{
			{"every example succeeds", everyExample},
			{"every operation needs a key", everyOperationWantsAKey},
			{"every operation needs its scope", everyOperationWantsItsScope},
			{"the matrix of scopes (H12)", scopeMatrix},
			{"the matrix of keys with inbox_ids", boundKeyMatrix},
			{"resources of other accounts are not found (H11)", othersIDs},
			{"keys work from their allowed IPs only", keysAreForTheirAddresses},
			{"parameters are checked", parametersAreChecked},
			{"unknown parameters are refused", unknownParametersAreRefused},
			{"malformed bodies are refused", bodiesMustBeRead},
			{"bodies of another media type are refused", bodiesMustBeOfTheRightType},
			{"too large bodies are refused", bodiesMustNotBeTooLarge},
			{"unknown ids are not found", idsMustBeOfSomething},
			{"repeats get the same response", repeatsGetTheSameResponse},
			{"a repeat during a call is refused", aRepeatDuringACallIsRefused},
			{"inboxes", inboxes},
			{"domains", domains},
			{"lists", lists},
			{"approval", approval},
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
			{"claims", claims},
			{"contacts", contacts},
			{"files", files},
			{"expired messages", expiredMessages},
			{"events", events},
			{"streams", streams},
			{"the protocol of MCP", mcpProtocol},
			{"paths outside the contract", whatIsNotInTheContract},
			{"the contract itself", theContractItself},
			{"limits", limits},
			{"the database is unreachable", theDatabaseIsGone},
			{"metrics contain no secret (H2)", metricsTellNoSecret},
		}
		done := 0
		for _, step := range steps {
			t.Run(step.name, func(t *testing.T) {
				step.run(t, w)
				done++
			})
		}
		if done < len(steps) {
			t.Log("not all steps were completed, so coverage is not checked")
			return
		}
		reportCoverage(t, check)
	})
}
