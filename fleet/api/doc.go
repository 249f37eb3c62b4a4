// Package api has the objects of a fleet, as Kubernetes keeps them: VirtualMachine,
// VirtualMachineMigration, SledMaintenance and SledBMC, and what a VM and its runs are called.
//
// crds.yaml and zz_generated.deepcopy.go are made from it: `make fleet-generate`.
//
// +kubebuilder:object:generate=true
// +groupName=sledctl.dev
// +versionName=v1alpha1
package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	_ "embed"
)

// Group is the API group, and the prefix of labels, annotations and taints.
const Group = "sledctl.dev"

// GroupVersion is the version of the objects.
var GroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

// AddToScheme makes the objects known to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&VirtualMachine{}, &VirtualMachineList{},
		&VirtualMachineMigration{}, &VirtualMachineMigrationList{},
		&SledMaintenance{}, &SledMaintenanceList{},
		&SledBMC{}, &SledBMCList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// CRDs are the definitions of the objects, as YAML.
//
//go:embed crds.yaml
var CRDs []byte
