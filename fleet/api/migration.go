package api

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The phases of a migration.
const (
	MigrationPending   = "Pending"   // it waits for its turn, or for a sled
	MigrationRunning   = "Running"   // the VM moves
	MigrationSucceeded = "Succeeded" // it arrived
	MigrationFailed    = "Failed"    // the VM stays where it was
)

// ConditionArrivedVM is the condition of a migration that is over: whether the VM is on its target.
const ConditionArrivedVM = "Arrived"

// VirtualMachineMigrationSpec is what is to move.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a migration is not changed: delete it, and create another one"
type VirtualMachineMigrationSpec struct {
	// VM is the name of the VirtualMachine, in the same namespace.
	//
	// +kubebuilder:validation:MinLength=1
	VM string `json:"vm"`

	// Target is the sled to move it to; without one the scheduler chooses.
	//
	// +optional
	Target string `json:"target,omitempty"`
}

// VirtualMachineMigrationStatus is how far a migration is.
type VirtualMachineMigrationStatus struct {
	// +optional
	Phase string `json:"phase,omitempty"`

	// Generation is the one of the VM on its target.
	//
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// +optional
	Source string `json:"source,omitempty"`
	// +optional
	Target string `json:"target,omitempty"`

	// Reason says why it failed, or what it waits for.
	//
	// +optional
	Reason string `json:"reason,omitempty"`
	// +optional
	Started *metav1.Time `json:"started,omitempty"`
	// +optional
	Finished *metav1.Time `json:"finished,omitempty"`

	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// VirtualMachineMigration moves a VM to another sled while it runs. One that fails leaves
// the VM where it was.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=vmm
// +kubebuilder:printcolumn:name="VM",type=string,JSONPath=".spec.vm"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=".status.source"
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=".status.target"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=".status.reason",priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type VirtualMachineMigration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec VirtualMachineMigrationSpec `json:"spec"`
	// +optional
	Status VirtualMachineMigrationStatus `json:"status,omitempty"`
}

// VirtualMachineMigrationList is a list of migrations.
//
// +kubebuilder:object:root=true
type VirtualMachineMigrationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VirtualMachineMigration `json:"items"`
}
