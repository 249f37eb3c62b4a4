package api

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"
)

// InstanceID is the id under which every sled knows a VM: the UID of its object.
func InstanceID(vm types.UID) (string, error) {
	id, err := uuid.Parse(string(vm))
	if err != nil || id.String() != string(vm) {
		return "", fmt.Errorf("UID %q of a VirtualMachine is no UUID", vm)
	}
	return id.String(), nil
}

// PropolisID is the id of one run of a VM. It follows from the VM and the generation, so
// that whatever places a generation again names the same run.
func PropolisID(vm types.UID, generation int64) (string, error) {
	id, err := InstanceID(vm)
	if err != nil {
		return "", err
	}
	if generation < 1 {
		return "", fmt.Errorf("generation %d of VM %s: want 1 or more", generation, id)
	}
	return uuid.NewSHA1(uuid.MustParse(id), []byte(strconv.FormatInt(generation, 10))).String(), nil
}

// MigrationID is the id of the migration by which a generation of a VM comes to its sled. Like
// the Propolis id, it follows from the two, so that asking twice makes one migration.
func MigrationID(vm types.UID, generation int64) (string, error) {
	run, err := PropolisID(vm, generation)
	if err != nil {
		return "", err
	}
	return uuid.NewSHA1(uuid.MustParse(run), []byte("migration")).String(), nil
}

// PodName is the name of the pod that claims a sled for a generation of a VM.
func PodName(vm string, generation int64) string {
	return vm + "-" + strconv.FormatInt(generation, 10)
}

// ParsePodName is the VM and the generation that a pod is named by.
func ParsePodName(pod string) (vm string, generation int64, ok bool) {
	at := strings.LastIndexByte(pod, '-')
	if at < 1 {
		return "", 0, false
	}
	generation, err := strconv.ParseInt(pod[at+1:], 10, 64)
	if err != nil || generation < 1 || PodName(pod[:at], generation) != pod {
		return "", 0, false
	}
	return pod[:at], generation, true
}

// InstanceName is what a VM is called on its sled: its name, and the beginning of its id,
// since two namespaces may each have a VM of that name.
func InstanceName(vm string, id types.UID) string { return vm + "." + string(id[:8]) }
