package store

import (
	"fmt"
	"time"
)

// Plan says how much an account may use. A limit of 0 is none.
type Plan struct {
	Name string
	// Inboxes is how many there may be that are not deleted.
	Inboxes int64
	// Daily and Monthly are how many recipients may be sent to on a UTC day and
	// in a UTC month.
	Daily, Monthly int64
}

// The built-in plans.
const (
	// PlanSelfHosted has no limits.
	PlanSelfHosted = "self_hosted"
	// PlanFree has 10 inboxes, 200 recipients a day and 3,000 a month.
	PlanFree = "free"
)

func builtinPlans() []Plan {
	return []Plan{{Name: PlanSelfHosted}, {Name: PlanFree, Inboxes: 10, Daily: 200, Monthly: 3000}}
}

// plans are those of an install.
type plans struct {
	byName   map[string]Plan
	fallback Plan
}

// newPlans adds more to the built-in plans, or puts them in their place.
func newPlans(more []Plan, fallback string) (plans, error) {
	p := plans{byName: map[string]Plan{}}
	for _, plan := range append(builtinPlans(), more...) {
		p.byName[plan.Name] = plan
	}
	if fallback == "" {
		fallback = PlanSelfHosted
	}
	var ok bool
	if p.fallback, ok = p.byName[fallback]; !ok {
		return p, fmt.Errorf("there is no plan %q", fallback)
	}
	return p, nil
}

// of is the plan of that name. Who has none, or one that the install no longer
// knows, is on the install's own.
func (p plans) of(name *string) Plan {
	if name != nil {
		if plan, ok := p.byName[*name]; ok {
			return plan
		}
	}
	return p.fallback
}

// Plan is the plan that the account is on.
func (s *Store) Plan(a Account) Plan { return s.plans.of(a.Plan) }

// KnowsPlan says whether name is a built-in plan or one of more.
func KnowsPlan(more []Plan, name string) bool {
	_, err := newPlans(more, name)
	return err == nil
}

// HasPlan says whether the install knows a plan of that name.
func (s *Store) HasPlan(name string) bool {
	_, ok := s.plans.byName[name]
	return ok
}

// Period is what a limit is counted over.
type Period string

// The periods of limits.
const (
	PerInboxes Period = "inboxes" // at a time
	PerDay     Period = "day"
	PerMonth   Period = "month"
)

// LimitError means that a plan allows no more.
type LimitError struct {
	Period Period
	Limit  int64
	Plan   string
	// Resets is when there is room again; zero for inboxes.
	Resets time.Time
}

// Error implements error.
func (e *LimitError) Error() string {
	if e.Period == PerInboxes {
		return fmt.Sprintf("the plan %s has %d inboxes", e.Plan, e.Limit)
	}
	return fmt.Sprintf("the plan %s has %d recipients a %s", e.Plan, e.Limit, e.Period)
}

// PausedError means that the account may not send until its operator resumes it.
type PausedError struct{ Reason string }

// Error implements error.
func (e *PausedError) Error() string { return "sending is paused: " + e.Reason }

// check says whether n more recipients fit, of which there were today and month.
func (p Plan) check(today, month, n int64, now time.Time) error {
	switch {
	case p.Monthly > 0 && month+n > p.Monthly:
		_, next := monthOf(now)
		return &LimitError{PerMonth, p.Monthly, p.Name, dayTime(next)}
	case p.Daily > 0 && today+n > p.Daily:
		return &LimitError{PerDay, p.Daily, p.Name, dayTime(dayOf(now) + 1)}
	}
	return nil
}
