package operation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/engine/plan"
)

// An intent names who began its operation, from before its first step on.
func TestAnIntentNamesWhoBegan(t *testing.T) {
	env := newEnv(t)
	env.By = operation.By{User: "anna", UID: 101, From: "192.0.2.7", Via: operation.ViaCommand}
	broken := plan.Chain(action(fakeStep{name: "a", undo: errBroken}), action(fakeStep{name: "b", fails: errBroken}))
	if _, err := operation.Run(t.Context(), env, request(broken, plan.Undo)); err == nil {
		t.Fatal("no error")
	}
	open := operation.Open(operationtest.View(t, env))
	if len(open) != 1 || open[0].By == nil {
		t.Fatalf("open: %+v", open)
	}
	if diff := cmp.Diff(env.By, *open[0].By); diff != "" {
		t.Error(diff)
	}
}
