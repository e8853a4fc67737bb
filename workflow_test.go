package postroom_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var (
	pinnedAction = regexp.MustCompile(`^\s*(?:- )?uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	pinnedImage  = regexp.MustCompile(`^FROM (?:scratch|\S+@sha256:[0-9a-f]{64})(?: AS \w+)?$`)
)

// A moved tag cannot change what a release is made of: actions are pinned by commit, and
// images by digest.
func TestWhatReleasesAreMadeOfIsPinned(t *testing.T) {
	t.Parallel()
	lines := func(files []string, prefix string, pinned *regexp.Regexp) {
		seen := 0
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				if line = strings.TrimRight(line, "\n"); strings.Contains(line, prefix) {
					seen++
					if !pinned.MatchString(line) {
						t.Errorf("%s: not pinned: %s", name, line)
					}
				}
			}
		}
		if seen == 0 {
			t.Errorf("no %q in %v", prefix, files)
		}
	}
	lines(workflows(t), "uses: ", pinnedAction)
	lines([]string{"Dockerfile", "deploy/package/Dockerfile"}, "FROM ", pinnedImage)
}

// A workflow as a whole may only read. A job that may sign, publish or attest runs no code
// of the repository or of its dependencies.
func TestWorkflowsHaveFewPermissions(t *testing.T) {
	t.Parallel()
	runsOurs := regexp.MustCompile(`\b(make|go|bin/\S+|\.ci/run|npm)\b`)
	for _, name := range workflows(t) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var w struct {
			Permissions map[string]string
			Jobs        map[string]struct {
				Permissions map[string]string
				Steps       []struct{ Run string }
			}
		}
		if err := yaml.Unmarshal(text, &w); err != nil {
			t.Fatal(err)
		}
		if len(w.Permissions) == 0 || slices.Contains(slices.Collect(maps.Values(w.Permissions)), "write") {
			t.Errorf("%s may write as a whole: %v", name, w.Permissions)
		}
		for job, j := range w.Jobs {
			for permission, level := range j.Permissions {
				for _, step := range j.Steps {
					if level == "write" && runsOurs.MatchString(step.Run) {
						t.Errorf("%s: the job %s has %s: write and runs %q", name, job, permission, step.Run)
					}
				}
			}
		}
	}
}

// The packages of sdk/ have the licence of the repository. A release builds both and
// publishes each only with its token, in a job that does not read the repository.
func TestReleasePublishesPackages(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"sdk/typescript/package.json": `"license": "Apache-2.0"`, "sdk/python/pyproject.toml": `license = { text = "Apache-2.0" }`,
	} {
		if text, err := os.ReadFile(name); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s does not contain %s: %v", name, want, err)
		}
	}
	text, err := os.ReadFile(".github/workflows/release.yml")
	if err != nil {
		t.Fatal(err)
	}
	var w struct {
		Jobs map[string]struct {
			Steps []struct {
				Uses, Run string
				Env       map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &w); err != nil {
		t.Fatal(err)
	}
	for _, registry := range []string{"npm", "pypi"} {
		built := false
		for _, step := range w.Jobs["build"].Steps {
			built = built || strings.Contains(step.Run, "scripts/sdk-packages "+registry+" ")
		}
		if !built {
			t.Errorf("the release does not build the package for %s", registry)
		}
	}
	publishes := map[string]string{"npm publish": "NODE_AUTH_TOKEN", "twine==": "TWINE_PASSWORD"}
	found := 0
	for _, step := range w.Jobs["packages"].Steps {
		if strings.HasPrefix(step.Uses, "actions/checkout@") {
			t.Error("the job with the tokens checks out the repository")
		}
		for command, token := range publishes {
			if !strings.Contains(step.Run, command) {
				continue
			}
			found++
			if step.Env[token] == "" || !strings.HasPrefix(step.Run, `[ -n "$`+token+`" ] ||`) {
				t.Errorf("%q does not stop without %s", command, token)
			}
		}
	}
	if found != len(publishes) {
		t.Errorf("%d of %d registries are published to", found, len(publishes))
	}
}

func workflows(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(".github/workflows/*.yml")
	if err != nil || len(all) == 0 {
		t.Fatalf("workflows: %v %v", all, err)
	}
	return all
}
