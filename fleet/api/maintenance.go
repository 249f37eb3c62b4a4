package api

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The phases of a maintenance.
const (
	MaintenanceDraining = "Draining" // VMs leave the sled
	MaintenanceReady    = "Ready"    // none is left: the sled may be worked on
	MaintenanceBlocked  = "Blocked"  // a VM cannot leave, and Reason says which
)

// ConditionEmpty is the condition of a maintenance: whether its sled has no VM.
const ConditionEmpty = "Empty"

// SledMaintenanceSpec is which sled is to be emptied.
//
// +kubebuilder:validation:XValidation:rule="self.sled == oldSelf.sled",message="the sled of a maintenance is not changed"
type SledMaintenanceSpec struct {
	// Sled is the name of the sled's Node.
	//
	// +kubebuilder:validation:MinLength=1
	Sled string `json:"sled"`

	// Note is for people.
	//
	// +optional
	Note string `json:"note,omitempty"`
}

// SledMaintenanceStatus is how far a sled is emptied.
type SledMaintenanceStatus struct {
	// +optional
	Phase string `json:"phase,omitempty"`

	// Remaining is the number of VMs that are still on the sled.
	//
	// +optional
	Remaining int32 `json:"remaining,omitempty"`

	// +optional
	Reason string `json:"reason,omitempty"`

	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SledMaintenance empties a sled and keeps it empty until it is deleted.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="Sled",type=string,JSONPath=".spec.sled"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="Remaining",type=integer,JSONPath=".status.remaining"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type SledMaintenance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec SledMaintenanceSpec `json:"spec"`
	// +optional
	Status SledMaintenanceStatus `json:"status,omitempty"`
}

// SledMaintenanceList is a list of maintenances.
//
// +kubebuilder:object:root=true
type SledMaintenanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SledMaintenance `json:"items"`
}
