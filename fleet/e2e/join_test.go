package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sledctl/sledctl/fleet/join"
)

// aSledJoins: by a token it gets the certificate of its own Node, and the next one by that. A token that nobody has made is
// refused.
func aSledJoins(t *testing.T, f *Fleet) {
	program := filepath.Join(f.dir, "sledctl-fleet")
	token, err := exec.Command(program, "token", "--lasts", "10m").Output()
	f.ok(err)
	f.Apply(string(token))
	_, secret, _ := strings.Cut(string(token), "echo ")
	secret, _, _ = strings.Cut(secret, " ")
	dir, authority := filepath.Join(f.dir, "joined"), filepath.Join(f.dir, "authority.pem")
	f.ok(os.WriteFile(authority, f.Authority(), 0o600))
	joins := func(name, secret string) (string, error) {
		file := filepath.Join(f.dir, "token")
		f.ok(os.WriteFile(file, []byte(secret+"\n"), 0o600))
		said, err := exec.Command(program, "join", "--server", "https://"+f.Address(), "--ca-file", authority, "--token-file", file, "--name", name, "--dir", dir, "--timeout", "30s").CombinedOutput()
		return string(said), err
	}
	if said, err := joins("sled9", "abcdef.0123456789abcdef"); err == nil || !strings.Contains(said, "does not accept the token") {
		t.Errorf("a token that nobody has made: %v: %s", err, said)
	}
	var said string
	t.Logf("it has joined after %v", f.Until("a sled has joined", func() bool { // the API server learns of a token soon
		said, err = joins("sled9", secret)
		return err == nil
	}))
	if !strings.HasPrefix(said, "sled9 has joined: ") {
		t.Errorf("it says %q", said)
	}
	if said, err := joins("sled8", secret); err == nil || !strings.Contains(said, "is of sled sled9") {
		t.Errorf("under another name: %v: %s", err, said)
	}

	ctx := t.Context()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, join.Kubeconfig))
	f.ok(err)
	c, err := client.New(config, client.Options{Scheme: f.scheme})
	f.ok(err)
	f.ok(c.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "sled9"}}))
	defer f.Must("delete", "node", "sled9")
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))
	if err := c.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "sled1"}}, label); !apierrors.IsForbidden(err) {
		t.Errorf("another sled's node: %v", err)
	}

	first, err := join.Certificate(dir)
	f.ok(err)
	f.ok(join.Renew(ctx, dir))
	next, err := join.Certificate(dir)
	f.ok(err)
	if bytes.Equal(first.Raw, next.Raw) || next.Subject.CommonName != "system:node:sled9" {
		t.Errorf("the next certificate is of %s", next.Subject.CommonName)
	}
	f.ok(os.Remove(filepath.Join(f.dir, "token")))
	again, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, join.Kubeconfig))
	f.ok(err)
	c, err = client.New(again, client.Options{Scheme: f.scheme})
	f.ok(err)
	f.ok(c.Get(ctx, client.ObjectKey{Name: "sled9"}, &corev1.Node{}))
}
